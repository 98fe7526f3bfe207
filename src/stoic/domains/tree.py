"""Conditional coordinates: which of them a point has, by decision trees over the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stoic.data import Array, Booleans, Integers

_NO_GAIN = 1e-9  # of impurity: rounding


@dataclass(frozen=True)
class Node:
    """Leaf of a binary decision tree, or a split by one coordinate.

    Attributes
    ----------
    answer:
        True if some point of this node has the coordinates in question.
    column, threshold:
        Points with more than ``threshold`` in this coordinate belong to ``above``.
    below, above:
        The two parts; None in a leaf.
    """

    answer: bool
    column: int = 0
    threshold: float = 0.0
    below: Node | None = None
    above: Node | None = None

    def __call__(self, x: Array) -> Booleans:
        """Answers for points ``x`` (n, d), shape (n,)."""
        if self.below is None or self.above is None:
            return np.full(len(x), self.answer)
        upper = x[:, self.column] > self.threshold
        return np.where(upper, self.above(x), self.below(x))

    def columns(self) -> Iterator[int]:
        """Coordinates that decide."""
        if self.below is not None and self.above is not None:
            yield self.column
            yield from self.below.columns()
            yield from self.above.columns()


@dataclass(frozen=True, eq=False)
class Tree:
    """Rules for the coordinates that points have; all others are at the place of ``absent``.

    So two points that both lack a coordinate have no distance there, and one that has it differs
    from one that lacks it in the coordinates that decide about it, too.

    Attributes
    ----------
    rules:
        Coordinates, shape (c,), and the rule that says which points have them; they need no others
        that a point may lack. Every point has the coordinates without a rule.
    absent:
        Coordinates of a point that lacks all, shape (d,). One of a coordinate that no later point
        lacks may be below the domain: earlier points are at a distance from all later ones.
    loose:
        Mask of the coordinates that follow no rule, though some points lack them, shape (d,).
    """

    rules: tuple[tuple[Integers, Node], ...]
    absent: Array
    loose: Booleans

    @classmethod
    def learned(cls, x: Array, has: Booleans, deciding: Booleans, absent: Array) -> Tree:
        """Learn the smallest greedy trees that are right about all points seen.

        Parameters
        ----------
        x:
            Points, shape (n, d).
        has:
            Mask of the coordinates that each of them has, shape (n, d).
        deciding:
            Mask of the coordinates that others may depend on, shape (d,).
        absent:
            As of the tree.
        """
        # Each combination once: how often it was tried does not matter.
        kinds = np.unique(np.hstack([x * deciding, has]), axis=0, return_index=True)[1]
        x, has, loose = x[kinds], has[kinds], np.zeros(x.shape[1], dtype=bool)
        while True:
            # All points count as having loose coordinates, which may decide about others now
            has = has | loose
            rules = []
            for pattern in np.unique(has[:, ~has.all(axis=0)], axis=1).T:
                # Coordinates that the same points have share a rule
                columns = np.flatnonzero((has == pattern[:, None]).all(axis=0))
                rules.append((columns, _grow(x, pattern, has, deciding)))
                loose[columns] = (rules[-1][1](x) != pattern).any()
            if has[:, loose].all():
                return cls(tuple(rules), absent, loose)

    def has(self, x: Array) -> Booleans:
        """Mask of the coordinates that points ``x`` (n, d) have, shape (n, d)."""
        found = np.ones(x.shape, dtype=bool)
        for columns, rule in self.rules:
            found[:, columns] = rule(x)[:, None]
        return found

    def explains(self, x: Array, has: Booleans) -> bool:
        """Return True if a point ``x`` (d,) that has these coordinates (d,) follows the rules."""
        return bool(((self.has(x[None])[0] == has) | self.loose).all())

    def fill(self, x: Array) -> Array:
        """Put the coordinates that points (n, d) lack into their place."""
        return np.where(self.has(x), x, self.absent)


def _impurity(answers: Booleans) -> float:
    """Gini impurity of answers (n,), times n."""
    share = float(answers.mean())
    return len(answers) * share * (1.0 - share)


def _grow(x: Array, answers: Booleans, has: Booleans, deciding: Booleans) -> Node:
    """Grow the tree for ``answers`` (n,), of splits by coordinates that all points there have."""
    answer, least = bool(answers.any()), _impurity(answers) - _NO_GAIN
    best = None
    columns = np.flatnonzero(deciding & has.all(axis=0)).tolist() if least > 0.0 else []
    for column in columns:
        values = np.unique(x[:, column])
        for threshold in (values[1:] + values[:-1]) / 2.0:
            upper = x[:, column] > threshold
            impurity = _impurity(answers[upper]) + _impurity(answers[~upper])
            if impurity < least - _NO_GAIN:  # of equal ones the first
                best, least = (column, float(threshold), upper), impurity
    if best is None:
        return Node(answer)
    column, threshold, upper = best
    below, above = (_grow(x[s], answers[s], has[s], deciding) for s in (~upper, upper))
    return Node(answer, column, threshold, below, above)
