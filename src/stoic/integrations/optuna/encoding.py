"""Encoding of Optuna's parameters as points of a box, and back."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import FrozenTrial

from stoic.data import Array, Booleans
from stoic.domains import Box, Lattice, Tree
from stoic.domains.sobol import sobol
from stoic.integrations.optuna.choices import ChoiceNumbers
from stoic.integrations.optuna.coordinates import (
    ROUNDING,
    Branches,
    Category,
    Coordinate,
    Numbers,
)
from stoic.integrations.optuna.executed import unknown
from stoic.integrations.optuna.internals import possible, same_range
from stoic.refusal import RefusalError

_WIDEST = 2_000  # coordinates of a box: with more, a single matrix takes minutes

# A category with more choices than this has coordinates for those that trials have, and for some
# others, in steps of so many. To a model that knows neither, two others are the same.
_MANY = 128
_STEP = 64
_OTHERS = 16  # at least, so that as many workers may each choose one

# Settings before a parameter was added: of fewer, all have one of two choices in common by chance
# more often than one time in sixteen.
_FEW = 5
# Where trials are, in units of the range, that ended before a number was added: outside, since a
# place inside tells of it what is not so. On eleven problems of two to five parameters, the added
# one with its optimum anywhere, 16 seeds each, the geometric mean of the loss after 20 trials is at
# most .0004, and the largest loss .0016; from the middle .08 and .25, from the low end .03 and .25,
# without the earlier trials .03 and .17. At -1 the largest is .08.
_BEFORE = -0.5

_DIGITS = 20  # of an integer in a message
_CONSTANTS = {
    "True": True,
    "False": False,
    "None": None,
    "true": True,
    "false": False,
    "null": None,
}
_WHOLE = re.compile(r"[+-]?(0|[1-9]\d{0,299})", re.ASCII)  # 08 is none in Python
_FRACTION = re.compile(r"[+-]?(?=.*[.eE])(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def searched(space: Mapping[str, BaseDistribution]) -> dict[str, BaseDistribution]:
    """Return the parameters with more than one value, in the order of their names."""
    return {name: d for name, d in sorted(space.items()) if not d.single()}


def met(
    space: Mapping[str, BaseDistribution], settings: Iterable[Mapping[str, Any]]
) -> dict[str, frozenset[int]]:
    """Return name of a category with many choices -> numbers of those that settings have."""
    many = {
        name: ChoiceNumbers(d)
        for name, d in space.items()
        if isinstance(d, CategoricalDistribution) and len(d.choices) > _MANY
    }
    found: dict[str, set[int]] = {name: set() for name in many}
    for setting in settings if many else ():
        for name in many.keys() & setting.keys():
            if setting[name] in many[name]:
                found[name].add(many[name](setting[name]))
    return {name: frozenset(numbers) for name, numbers in found.items()}


def _numbers(count: int, met: frozenset[int]) -> tuple[int, ...]:
    """Return numbers of choices that get a coordinate: those that were met, and some others.

    The same others as long as these are enough, drawn at random, since neighbours may be alike.
    """
    size = _STEP * math.ceil((len(met) + _OTHERS) / _STEP)
    if size >= count:
        return tuple(range(count))
    order = np.random.default_rng(0).permutation(count).tolist()
    others = [number for number in order if number not in met]
    return tuple(sorted([*met, *others[: size - len(met)]]))


class Encoding:
    """A search space as a box, and back.

    Parameters
    ----------
    space:
        Names and distributions, none of them with a single value; the order is kept.
    tree:
        Rule for the parameters that a setting has, if not all settings have all.
    met:
        As :func:`met` returns it: these categories have coordinates for the choices that were met
        and for some others, all other categories for each choice.
    branches:
        Name of a parameter -> its ranges, which are all in that of the space. Its coordinate goes
        from end to end of the one that the choice has.
    """

    def __init__(
        self,
        space: Mapping[str, BaseDistribution],
        tree: Tree | None = None,
        met: Mapping[str, frozenset[int]] | None = None,
        branches: Mapping[str, Branches] | None = None,
    ) -> None:
        self.space, self.met = dict(space), dict(met or {})
        self.branches = dict(branches or {})
        self.parts: dict[str, Coordinate | Category] = {}
        column = 0
        for name, distribution in space.items():
            part: Coordinate | Category
            if isinstance(distribution, CategoricalDistribution):
                numbers, other = tuple(range(len(distribution.choices))), -1
                if name in self.met:
                    numbers = _numbers(len(numbers), self.met[name])
                    if len(numbers) < len(distribution.choices):
                        other = next(n for n in numbers if n not in self.met[name])
                part = Category(distribution, column, numbers, other)
            elif isinstance(distribution, Numbers):
                _check_range(name, distribution)
                part = Coordinate(distribution, column)
            else:
                raise ValueError(
                    f"Parameter {name!r} has a distribution of an unknown kind, {distribution!r}: "
                    "use a float, integer or categorical one."
                )
            self.parts[name] = part
            column += len(part.columns)
        if column > _WIDEST:
            raise RefusalError(
                f"The search space has {column} coordinates, one for each number and each choice; "
                f"at most {_WIDEST} can be searched."
            )
        # Values of branches have no common grid: they are rounded as those of a fine range are
        lattices = [
            Lattice(np.array(part.columns), grid)
            for name, part in self.parts.items()
            if name not in self.branches and (grid := part.grid()) is not None
        ]
        self.box = Box(np.zeros(column), np.ones(column), tuple(lattices), tree=tree)
        self._in_branch = {
            (name, number): Coordinate(distribution, self.parts[name].columns[0])
            for name, of in self.branches.items()
            for number, distribution in of.ranges.items()
        }

    def part(self, name: str, parameters: Mapping[str, Any]) -> Coordinate | Category:
        """Return the part of a parameter, in the branch of ``parameters`` if it has branches."""
        of = self.branches.get(name)
        number = None if of is None else of.number(parameters)
        return self.parts[name] if number is None else self._in_branch[name, number]

    def within(self, name: str, parameters: Mapping[str, Any]) -> bool:
        """Return True if a parameter of a setting is in its range, that of the branch if any."""
        return possible(self.part(name, parameters).distribution, parameters[name])

    def check(self, parameters: Mapping[str, Any]) -> None:
        """Refuse values that are in the range of another branch."""
        for name in self.branches.keys() & parameters.keys():
            if not self.within(name, parameters):
                by, d = self.branches[name].by, self.part(name, parameters).distribution
                raise RefusalError(
                    f"{name} cannot be {parameters[name]} where {by} is {parameters[by]}: it is "
                    f"{as_written(d)} there."
                )

    @property
    def tree(self) -> Tree | None:
        return self.box.tree

    def encode(self, parameters: Mapping[str, Any]) -> Array:
        """Encode parameters as a point, shape (d,)."""
        if self.tree is not None:
            filled = self.tree.fill(self._known(parameters)[None])[0]
            return np.where(self._apart(parameters), _BEFORE, filled)
        return np.array([
            u for name in self.parts for u in self.part(name, parameters).encode(parameters[name])
        ])  # fmt: skip

    def _known(self, parameters: Mapping[str, Any]) -> Array:
        """Encode the parameters that a setting has, the others as absent, shape (d,)."""
        return np.array([
            u
            for name, part in self.parts.items()
            for u in (
                self.part(name, parameters).encode(parameters[name])
                if name in parameters
                else [part.absent] * len(part.columns)
            )
        ])  # fmt: skip

    def _has(self, parameters: Mapping[str, Any]) -> Booleans:
        """Mask of the coordinates that a setting has, shape (d,)."""
        return np.repeat(
            [name in parameters for name in self.parts],
            [len(part.columns) for part in self.parts.values()],
        )

    def _apart(self, parameters: Mapping[str, Any]) -> Booleans:
        """Mask of the coordinates (d,) that a setting lacks since they were added later."""
        assert self.tree is not None
        added: Booleans = self.tree.absent < 0.0
        return added & ~self._has(parameters) if added.any() else added

    def explains(self, parameters: Mapping[str, Any]) -> bool:
        """Return True if a setting has the parameters that it should have, or shows nothing."""
        if self.tree is None and self.space.keys() <= parameters.keys():
            return True
        return not self._shows(parameters) or (
            self.tree is not None
            and self.tree.explains(self._known(parameters), self._has(parameters))
        )

    def _shows(self, parameters: Mapping[str, Any]) -> bool:
        """Return True if a setting has parameters of the space, all with values in their ranges."""
        names = self.space.keys() & parameters.keys()
        return bool(names) and all(self.within(name, parameters) for name in names)

    def lacks(self, parameters: Mapping[str, Any]) -> bool:
        """Return True if a setting lacks a number that was added before, as far as is known."""
        known = self.tree is not None and self._shows(parameters)
        return known and bool(self._apart(parameters).any())

    def misfit(self, parameters: Mapping[str, Any]) -> str | None:
        """Say which parameter a setting lacks, or has where settings like it have none, if any."""
        if self.tree is None:
            return None
        has, should = self._has(parameters), self.tree.has(self._known(parameters)[None])[0]
        wrong = (has != should) & ~self.tree.loose
        names = [name for name, part in self.parts.items() if wrong[part.columns[0]]]
        if lacking := [name for name in names if name not in parameters]:
            return f"A setting has a value for each parameter, and {lacking[0]} has none."
        return f"A setting like this one has no {names[0]}: leave it out." if names else None

    def learned(self, settings: Iterable[Mapping[str, Any]]) -> Encoding:
        """Learn from settings, in order, which parameters there are, by integers and choices.

        A parameter that no setting lacks once one has it, and either few do before, which may have
        choices in common by chance, or many by no rule, was added on the way: all have it now. The
        earlier settings are apart, since the value that a number had with them is not known. One
        that decides about others stays at its middle, where rules are learned.
        """
        settings = list(filter(self._shows, settings))
        deciding = np.concatenate([
            np.full(len(part.columns), not isinstance(part.distribution, FloatDistribution))
            for part in self.parts.values()
        ])  # fmt: skip
        # Shape (n, d) each
        x, has = (np.array(list(map(of, settings))) for of in (self._known, self._has))
        few = (~has).sum(axis=0) < _FEW
        later = (np.logical_or.accumulate(has) == has).all(axis=0)
        absent = self._known({})
        tree = Tree.learned(x, has | (few & later), deciding, absent)
        # A choice is apart as it is: it has none
        apart = later & ~has.all(axis=0) & (few | tree.loose) & (absent > 0.0)
        apart[[column for _, rule in tree.rules for column in rule.columns()]] = False
        tree = replace(tree, absent=np.where(apart, _BEFORE, absent))
        return Encoding(self.space, tree, self.met, self.branches)

    def having_met(self, met: Mapping[str, frozenset[int]]) -> Encoding:
        """Return the encoding once these choices were met: itself, if they were before."""
        if met == self.met:
            return self
        following = Encoding(self.space, None, met, self.branches)
        same = following.choices == self.choices
        return Encoding(self.space, self.tree, met, self.branches) if same else following

    def branched(self, branches: Mapping[str, Branches]) -> Encoding:
        """Return the encoding once parameters have these branches, with no rule learned."""
        return Encoding(self.space, None, self.met, branches)

    def placed(self, fixed: Mapping[str, Any]) -> dict[str, Any]:
        """Return those of the ``fixed`` values that have a place: others need a choice first."""
        return {
            name: value
            for name, value in fixed.items()
            if name not in self.branches
            or (self.branches[name].by in fixed and self.within(name, fixed))
        }

    def has(self, parameters: Mapping[str, Any], fixed: Mapping[str, Any]) -> bool:
        """Return True if a setting like ``parameters`` can have the values that are ``fixed``."""
        return fixed.keys() <= parameters.keys() and all(
            self.within(name, {**parameters, **fixed}) for name in fixed
        )

    @property
    def choices(self) -> dict[str, tuple[int, ...]]:
        """Name of a category -> numbers of the choices that have a coordinate."""
        return {n: part.numbers for n, part in self.parts.items() if isinstance(part, Category)}

    @property
    def known_space(self) -> dict[str, BaseDistribution]:
        """The space with the choices alone that have a coordinate."""
        return {
            name: CategoricalDistribution([part.distribution.choices[n] for n in part.numbers])
            if isinstance(part, Category) and name in self.met
            else part.distribution
            for name, part in self.parts.items()
        }

    def deciding(self, names: Iterable[str]) -> set[str]:
        """Return the parameters that decide whether a setting has ``names``, or has those.

        Or about their ranges.
        """
        owner = {column: name for name, part in self.parts.items() for column in part.columns}
        rules = () if self.tree is None else self.tree.rules
        names = set(names)
        found = {self.branches[name].by for name in self.branches.keys() & names}
        new = names | found
        while new:
            columns = [column for name in new for column in self.parts[name].columns]
            by = (rule.columns() for of, rule in rules if np.isin(columns, of).any())
            new = {owner[column] for column in chain.from_iterable(by)} - found
            found |= new
        return found

    def untried(self, settings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return a choice on which other parameters depend and that no setting has, if any."""
        rules = () if self.tree is None else self.tree.rules
        decide = {column for _, rule in rules for column in rule.columns()}
        lacked = {int(column) for columns, _ in rules for column in columns}
        for name, part in self.parts.items():
            if name in self.met:  # so many that not each is a branch of its own
                continue
            if isinstance(part, Category) and (decide - lacked) & set(part.columns):
                tried = [setting.get(name) for setting in settings]
                for choice in part.distribution.choices:
                    if choice not in tried:
                        return {name: choice}
        return {}

    def decode(self, point: Array, fixed: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Decode a point (d,) to the parameters it has, rounded to what their ranges allow.

        A choice that is ``fixed`` and has no coordinate replaces the one that stands for it.
        """
        has = None
        if self.tree is not None:
            has = self.tree.has(point[None])[0] & ~self.box.apart(point[None])[0]
        found = {
            name: part.decode(point)
            for name, part in self.parts.items()
            if has is None or has[part.columns[0]]  # a setting has all of them, or none
        }
        for name in self.branches.keys() & found.keys():
            found[name] = self.part(name, found).decode(point)
        for name, value in (fixed or {}).items():
            part = self.part(name, found)
            if name in found and part.encode(value) == part.encode(found[name]):
                found[name] = value
        return found

    def admits(self, name: str, value: Any) -> bool:
        """Return True if ``name`` is a parameter of the space and ``value`` in its range."""
        distribution = self.space.get(name)
        return distribution is not None and possible(distribution, value)

    def contains(self, parameters: Mapping[str, Any], whole: bool = False) -> bool:
        """Return True if these are the parameters of a setting, with values in their ranges.

        ``whole`` if the setting cannot have more parameters than these.
        """
        if self.tree is None:
            known = self.space.keys() <= parameters.keys()
        else:
            known = whole or self.explains(parameters)
        return known and self._shows(parameters)

    def agrees(self, parameters: Mapping[str, Any], fixed: Mapping[str, Any]) -> bool:
        """Return True if parameters have the values that are ``fixed``, up to rounding."""
        return all(
            name in parameters and self.parts[name].same(parameters[name], value)
            for name, value in fixed.items()
        )

    def tolerances(self, given: Mapping[str, float]) -> Array:
        """Tolerance of each coordinate, shape (d,): 0 for parameters that are not ``given``.

        Raises
        ------
        RefusalError
            If a parameter is not in the space or is a choice, if the factor of a logarithmic one is
            below 1, or if nothing moves.
        """
        moves = np.zeros(self.box.dim)
        for name, size in given.items():
            if name not in self.parts:
                raise RefusalError(
                    f"{unknown(name, self.parts)} A tolerance needs one all trials have."
                )
            part = self.parts[name]
            moves[part.columns] = part.tolerance(name, size)
        if not moves.any():
            raise RefusalError(
                "All tolerances are 0, so nothing moves: leave them out, or raise one."
            )
        return moves

    def scaled(self, name: str) -> bool:
        """Return True if a parameter is on a logarithmic scale."""
        part = self.parts[name]
        return isinstance(part, Coordinate) and part.distribution.log

    def sobol(
        self, number: int, seed: int, fixed: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Decode point ``number`` of a scrambled Sobol sequence, one axis for each parameter.

        With the values that are ``fixed``, as far as the setting has these parameters.
        """
        sequence = sobol(len(self.parts), np.random.default_rng(seed))
        if number:
            sequence.fast_forward(number)
        u = sequence.random(1)[0]
        point = np.concatenate([
            part.spread(u[i]) for i, part in enumerate(self.parts.values())
        ])  # fmt: skip
        placed = self.placed(fixed or {})
        for name, value in placed.items():
            part = self.part(name, placed)
            point[part.columns] = part.encode(value)
        return self.decode(point, placed)


def _check_range(name: str, distribution: Numbers) -> None:
    """Refuse a range whose ends are no finite floats; their difference may be none."""
    try:
        ends = float(distribution.low), float(distribution.high)
    except OverflowError:
        ends = math.inf, math.inf
    if not all(map(math.isfinite, ends)):
        raise RefusalError(
            f"The range of {name!r} is too wide: give ends of at most 1e308 in size."
        )


def spanning(one: BaseDistribution, other: BaseDistribution) -> BaseDistribution | None:
    """Return the range from the lower low end of two to the higher high end.

    None if they are of different kinds, on different scales or steps, or have different choices.
    """
    if same_range(one, other):
        return one
    if not isinstance(one, Numbers) or not isinstance(other, Numbers):
        return None
    if type(one) is not type(other) or one.log != other.log or one.step != other.step:
        return None
    if one.step and abs(math.remainder(other.low - one.low, one.step)) > ROUNDING * one.step:
        return None
    kind: Any = type(one)
    low, high = min(one.low, other.low), max(one.high, other.high)
    together: BaseDistribution = kind(low, high, log=one.log, step=one.step)
    return together


def as_written(distribution: BaseDistribution) -> str:
    """Write a range as users do: ``float(0, 1, log)``, ``int(1, 9)``, ``choice(a, b)``."""
    if isinstance(distribution, CategoricalDistribution):
        if any(choice is None or isinstance(choice, bool) for choice in distribution.choices):
            # In choice(...) they are texts
            return json.dumps(distribution.choices, default=str, ensure_ascii=False)
        return f"choice({', '.join(map(_quoted, distribution.choices))})"
    assert isinstance(distribution, Numbers)
    kind, d = ("int" if isinstance(distribution, IntDistribution) else "float"), distribution
    step = f", step={number_text(d.step)}" if d.step not in (None, 1) else ""
    return f"{kind}({number_text(d.low)}, {number_text(d.high)}{', log' * d.log}{step})"


def literal(text: str) -> str | int | float | None:
    """Read a choice as Python does, or JSON: a number, true, null; anything else is a text."""
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _FRACTION.fullmatch(text) and math.isfinite(float(text)) else text


def _quoted(choice: object) -> str:
    """Write a choice; a text in quotes where it would be divided, or read as something else."""
    text = str(choice)
    if not isinstance(choice, str) or (
        text == text.strip() and not set(text) & set(",'\"") and literal(text) == text
    ):
        return text
    return f"'{text}'" if '"' in text else f'"{text}"'


def number_text(number: float | None) -> str:
    """Write a number as people do; a storage may have integers that no float can hold."""
    if isinstance(number, int):
        text = str(number)
        return text if len(text) <= _DIGITS else f"{text[:_DIGITS]}..."
    return f"{number:g}"


def check_fixed(
    fixed: Mapping[str, Any], space: Mapping[str, BaseDistribution], which: str
) -> None:
    """Refuse values that parameters cannot have, and parameters that are none of ``space``.

    ``which`` describes the parameters of ``space`` in the message.

    Raises
    ------
    RefusalError
        With the name, and what it can be.
    """
    for name, value in fixed.items():
        if name not in space:
            raise RefusalError(f"{unknown(name, space)} Values can be given of those that {which}.")
        if not possible(space[name], value):
            raise RefusalError(
                f"{name} cannot be {_quoted(value)}: it is {as_written(space[name])}."
            )


def given_points(
    encoding: Encoding,
    settings: Mapping[str, Any] | Iterable[Mapping[str, Any]],
    ranges: Mapping[str, BaseDistribution],
    trials: Sequence[FrozenTrial],
) -> Array:
    """Encode one setting or several that a caller gives, (k, d).

    Parameters that some of the ``trials`` have are left out if ``ranges`` has not.

    Raises
    ------
    RefusalError
        If one is no mapping, has a parameter that no trial has or a value that cannot be, or lacks
        one, or has one that settings like it have not.
    """
    several = isinstance(settings, Iterable) and not isinstance(settings, Mapping)
    rows: list[Any] = list(settings) if several else [settings]
    if not all(isinstance(row, Mapping) for row in rows):
        raise RefusalError(
            f'A setting has a value for each parameter, as in {{"lr": 0.1}}, got {settings!r}.'
        )
    points = np.empty((len(rows), encoding.box.dim))
    for point, row in zip(points, rows, strict=True):
        given = {
            name: value
            for name, value in row.items()
            if name in ranges or not any(name in t.params for t in trials)
        }
        check_fixed(given, ranges, "complete trials have in the same range")
        encoding.check(given)
        if (misfit := encoding.misfit(given)) is not None:
            raise RefusalError(misfit)
        try:
            point[:] = encoding.encode(given)
        except KeyError as lacking:
            raise RefusalError(
                f"A setting has a value for each parameter, and {lacking.args[0]} has none."
            ) from None
    return points
