"""History of evaluations on one domain: results, failures, pending choices; append-only."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from stoic.data import (
    FAILURES,
    VARIANCES,
    Array,
    Booleans,
    Choice,
    FailureKind,
    Failures,
    Integers,
    Observations,
    are_variances,
    as_results,
    numbers,
)
from stoic.domains import PLACE, SAME, Domain
from stoic.pending import Pending

_ROOM = 64  # rows of memory at the start; doubled when it is full
# Transient failures in a row at one place, before the next: some settings take down their machine,
# transient each time, and would be queried for ever.
_TRANSIENT = 2
# Places that fail in a row, from which on it is the machine: as with confirming measurements. Until
# something answers again a place counts all the same, or nothing else would be tried, and from the
# second such row on as well: settings that take down their machine look like that, too.
_MACHINE = 3


class Evaluations(NamedTuple):
    """Checked evaluations of executed inputs (k, d): results (k,), or the kind of their failure.

    ``noise`` has a variance for each, or one for all, nan where none was reported; ``choices`` are
    those that they answer, ``None`` if nothing is said about that. Results that are ``censored``,
    all or those of a mask (k,), are upper bounds.
    """

    x: Array
    arms: Integers | None
    observed: Array | None
    noise: Array | float
    failed: FailureKind | None
    choices: Sequence[Choice | None] | None
    censored: Booleans | bool = False

    def row(self, i: int) -> Evaluations:
        """Return one of them."""
        at, noise = slice(i, i + 1), np.broadcast_to(self.noise, len(self.x))[i : i + 1]
        return Evaluations(
            self.x[at],
            None if self.arms is None else self.arms[at],
            None if self.observed is None else self.observed[at],
            noise,
            self.failed,
            None if self.choices is None else self.choices[at],
            bool(np.broadcast_to(self.censored, len(self.x))[i]),
        )


class _Failure(NamedTuple):
    """Failed evaluation.

    Attributes
    ----------
    x, kind:
        Its input (d,), and its kind as reported.
    before:
        For a transient one the number of answers before it, finite results and failures that
        settings caused: those with the same one are in a row.
    place, since:
        For a transient one the number of its place, and how many answers there had been with the
        last result there.
    """

    x: Array
    kind: FailureKind
    before: int = 0
    place: int = -1
    since: int = 0


class _Place:
    """Transient failures at a place since the last result there, of which a row is the latest."""

    def __init__(self, row: int, since: int) -> None:
        self._row, self._since = row, since
        self._here = self._earlier = 0  # in the row, and as much as the earlier ones count
        self._forgiven = False

    def count(self, row: int, since: int, ended: Container[int]) -> int:
        """Count the next one; a first row that has ``ended`` with the machine's counts once."""
        if row != self._row:
            self._earlier += self._counted(ended)
            self._forgiven |= self._row in ended
            self._row, self._here = row, 0
        if since > self._since:
            self._since, self._earlier = since, 0
        self._here += 1
        return self._earlier + self._counted(ended)

    def _counted(self, ended: Container[int]) -> int:
        return 1 if self._row in ended and not self._forgiven else self._here


class History:
    """Record of evaluations and pending choices.

    It only grows, and what it returns does not change, unless a result is revised.

    Parameters
    ----------
    domain:
        The search space.

    Attributes
    ----------
    pending:
        Choices without a result yet.
    revisions:
        Number of results that were revised.
    asked:
        Number of choices since the last result or failure.
    """

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.pending = Pending()
        self.revisions = self.asked = 0
        self._n = 0
        self._x = np.empty((_ROOM, domain.dim))
        self._observed = np.empty(_ROOM)
        self._noise = np.empty(_ROOM)
        self._arms = np.empty(_ROOM, dtype=np.intp) if domain.finite else None
        self._censored = np.zeros(_ROOM, dtype=bool)
        self._any_censored = False
        self._failed: list[_Failure] = []
        self._caused: list[int] = []  # results before each failure that a setting caused
        self._places: list[Array] = []  # of transient failures
        self._in_a_row: set[int] = set()  # those of the failures since the last answer
        self._observations: Observations | None = None  # caches, valid until the next ``add``
        self._failures: Failures | None = None
        self._moved: list[Array] = []
        self._moved_points: Array | None = None

    def __len__(self) -> int:
        return self._n

    @property
    def observations(self) -> Observations:
        """All observations so far, as views: not to be written to."""
        observations = self._observations
        if observations is None:
            n = self._n
            arms = None if self._arms is None else self._arms[:n]
            censored = self._censored[:n] if self._any_censored else None
            observations = Observations(
                self._x[:n], self._observed[:n], self._noise[:n], arms, 0, censored
            )
            self._observations = observations
        return observations

    @property
    def failures(self) -> Failures:
        """Reported failures, in order; a transient one that recurs at its place is infeasible."""
        failures = self._failures
        if failures is None:
            points = np.array([failed.x for failed in self._failed]).reshape(-1, self.domain.dim)
            failures = Failures(points, tuple(self._kinds()))
            self._failures = failures
        return failures

    @property
    def moved(self) -> Array:
        """Inputs that were chosen where another one was executed, as far as known, shape (k, d)."""
        if self._moved_points is None:
            self._moved_points = np.array(self._moved).reshape(-1, self.domain.dim)
        return self._moved_points

    def pending_points(self) -> Array:
        """Points of the pending choices, oldest first, shape (k, d)."""
        if not self.pending:
            return self._x[:0]
        return np.array([choice.x for choice in self.pending])

    def check(
        self,
        x: object,
        y: object = None,
        noise: object = None,
        failed: FailureKind | None = None,
        choice: Choice | Sequence[Choice | None] | None = None,
        censored: object = False,
    ) -> Evaluations:
        """Check evaluations without storing them, as :meth:`stoic.learner.Learner.tell` says."""
        if isinstance(x, Choice):
            raise ValueError("An input is an array, got a choice: tell choice.x, choice=choice.")
        points = numbers(x, "An input")
        if points.ndim < 2:
            points = points.reshape(1, -1)
        arms = self.domain.locate(points)
        k = len(points)
        answered = [choice] if isinstance(choice, Choice) else choice
        if answered is not None:
            if not isinstance(answered, Sequence) or not all(
                each is None or isinstance(each, Choice) for each in answered
            ):
                got = f"{choice!r:.200}"
                raise ValueError(f"A result answers a choice of ask, or None, got {got}.")
            if len(answered) != k:
                raise ValueError(f"Got {k} inputs but {len(answered)} choices: give one for each.")
        for each in answered or ():
            if each is not None and each.x.shape != (self.domain.dim,):
                raise ValueError(
                    f"A choice of this domain has {self.domain.dim} coordinates, got {each.x!r}."
                )
        if (y is None) == (failed is None):
            raise ValueError(
                "Tell a result y, or why there is none: failed='transient', 'infeasible' or 'bad'."
            )
        if failed is not None:
            if failed not in FAILURES:
                raise ValueError(f"failed is one of {', '.join(FAILURES)}, got {failed!r}.")
            return Evaluations(points, arms, None, np.nan, failed, answered)
        observed = as_results(y)
        if len(observed) != k:
            raise ValueError(f"Got {k} inputs but {len(observed)} results: tell one for each.")
        bounds = False if censored is False else _mask(censored, k)
        if bounds is not False and not np.isfinite(observed[bounds]).all():
            raise ValueError(f"The bound of a censored result is a finite number, got {y!r}.")
        variances = np.nan if noise is None else _variances(noise, k)
        return Evaluations(points, arms, observed, variances, None, answered, bounds)

    def add(self, evaluations: Evaluations) -> None:
        """Append checked evaluations."""
        x, arms, observed, noise, failed, *_ = evaluations
        self.asked = 0
        if observed is None:
            assert failed is not None
            for point in x.copy():
                self._failed.append(self._failure(point, failed))
            self._failures = None
            return
        first, last = self._n, self._n + len(x)
        if last > len(self._observed):
            self._grow(last)
        self._x[first:last] = x  # beyond all views that were handed out
        self._observed[first:last] = observed
        self._noise[first:last] = noise
        self._censored[first:last] = evaluations.censored
        self._any_censored |= bool(np.any(evaluations.censored))
        if self._arms is not None and arms is not None:
            self._arms[first:last] = arms
        self._n = last
        self._observations = None
        if self._in_a_row and np.isfinite(observed).any():
            self._end_row()

    def revise(self, row: int, result: Evaluations) -> None:
        """Replace a result by a checked one."""
        assert result.observed is not None
        # Copies: observations that were handed out are views of the arrays before
        observed, noise, censored = map(np.copy, (self._observed, self._noise, self._censored))
        observed[row], censored[row] = result.observed[0], np.any(result.censored)
        noise[row : row + 1] = result.noise
        self._observed, self._noise, self._censored = observed, noise, censored
        self._any_censored = bool(censored[: self._n].any())
        self._observations = None
        self.revisions += 1

    def answer(self, evaluations: Evaluations) -> list[Choice | None]:
        """Remove the choices that evaluations answer from the pending ones, and return them.

        What was chosen and not executed is recorded, also of a choice that is not pending.
        """
        x, given = evaluations.x, evaluations.choices
        if given is None:
            found = self.pending.answer(x, self.domain.widths)
        else:
            found = [None if each is None else self.pending.remove(each) for each in given]
        for row, answered in enumerate(found):
            said = None if given is None else given[row]
            if (chosen := said or answered) is not None and self._apart(chosen, evaluations, row):
                self._moved.append(chosen.x)
                self._moved_points = None
        return found

    def _apart(self, choice: Choice, evaluations: Evaluations, row: int) -> bool:
        """Return True if not the choice was executed, up to rounding."""
        if evaluations.arms is not None and choice.arm is not None:
            return bool(choice.arm != evaluations.arms[row])
        steps = np.abs(evaluations.x[row] - choice.x)
        return bool((steps > SAME * self.domain.widths).any())

    def _answers(self, row: int) -> int:
        """Count the answers up to a result, or all of them by a row that is not there yet."""
        last = min(row + 1, self._n)
        results = int(np.count_nonzero(np.isfinite(self._observed[:last])))
        return results + bisect_right(self._caused, row)

    def _end_row(self) -> None:
        """Note an answer: what fails from now on is another row of failures."""
        if len(self._in_a_row) >= _MACHINE:
            self._failures = None
        self._in_a_row.clear()

    def _failure(self, point: Array, kind: FailureKind) -> _Failure:
        if kind != "transient":
            self._end_row()
            self._caused.append(self._n)
            return _Failure(point, kind)
        reach = 0.0 if self.domain.finite else PLACE * self.domain.widths

        def near(x: Array) -> Booleans:
            return np.asarray((np.abs(x - point) <= reach).all(axis=-1))

        latest = int(np.flatnonzero(near(self._x[: self._n])).max(initial=-1))
        since = self._answers(latest)
        known = np.flatnonzero(near(np.array(self._places).reshape(-1, self.domain.dim)))
        place = int(known[0]) if len(known) else len(self._places)
        if not len(known):
            self._places.append(point)
        self._in_a_row.add(place)
        return _Failure(point, kind, self._answers(self._n), place, since)

    def _kinds(self) -> Iterator[FailureKind]:
        """Iterate over the kinds of the failures, in order."""
        places: dict[int, set[int]] = {}  # of the transient ones in a row
        for failed in self._failed:
            if failed.kind == "transient":
                places.setdefault(failed.before, set()).add(failed.place)
        now = self._answers(self._n)
        ended = {row for row, at in places.items() if len(at) >= _MACHINE and row < now}
        known: dict[int, _Place] = {}
        for _, kind, before, place, since in self._failed:
            if kind == "transient":
                here = known.setdefault(place, _Place(before, since))
                yield "infeasible" if here.count(before, since, ended) > _TRANSIENT else kind
            else:
                yield kind

    def _grow(self, rows: int) -> None:
        for name in ("_x", "_observed", "_noise", "_arms", "_censored"):
            if (old := getattr(self, name)) is not None:
                new = np.zeros((1 << (rows - 1).bit_length(), *old.shape[1:]), dtype=old.dtype)
                new[: self._n] = old[: self._n]
                setattr(self, name, new)


def _variances(noise: object, k: int) -> Array:
    """Noise variances of ``k`` results, (k,) or (1,), in the range that is computed with."""
    variances = numbers(noise, "A noise variance").reshape(-1)
    if len(variances) not in (1, k):
        raise ValueError(
            f"Got {k} results but {len(variances)} noise variances: give one for each, or one for "
            "all."
        )
    if not are_variances(variances):
        raise ValueError(
            f"A noise variance is a positive number, or nan if it is not known, got {noise!r}."
        )
    return np.asarray(np.clip(variances, *VARIANCES))


def _mask(censored: object, k: int) -> Booleans:
    """Mask (k,) of the censored ones of ``k`` results."""
    mask = np.asarray(censored)
    if mask.dtype != np.bool_ or mask.shape not in ((), (k,)):
        raise ValueError(
            f"censored is True or False, for each of {k} results or for all, got {censored!r}."
        )
    return np.array(np.broadcast_to(mask, k))
