"""Robust objectives where inputs move: tolerances, and a value that is good enough."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from inspect import Parameter, signature
from typing import Any, Literal, TypedDict, TypeGuard, cast

import numpy as np
from optuna.study import Study

from stoic.confidence import Fixed
from stoic.distances import Distance
from stoic.integrations.optuna.encoding import Encoding
from stoic.policies import Policy, Satisficing, StableOpt
from stoic.recipes import Parts
from stoic.refusal import RefusalError, meant

AIM = "stoic:aim"  # user attribute of a study: the aim of its search

WIDTH = 2.0  # of the band behind choices and certificates, in standard deviations

# Tolerances hold at once: every parameter within its own.
_METRIC = "chebyshev"
_CANDIDATES = 4096
_WITH_FIXED = 16384  # where something never moves: 128 settings, each with 128 moves
_RETRIES = 1
_REFINED = 8
# Choices in a row that seek the best, before one for an adaptive threshold. With none, a region
# where nothing ever happens was certified as soon as the margin reached down to it. Four problems
# of 2 to 6 parameters, margin a fifth of the range, 40 trials, 10 seeds: the worst value within a
# tolerance is .52 of the range below the best with none and .18 with two; with one result in ten
# wrong .69 and .36. With one it is .17 and .57 (five seeds, where two have .13 and .31); if all
# seek, .20 and .30 (five others, where two have .23 and .40).
_SEEKING = 2


class RobustArguments(TypedDict, total=False):
    """Arguments of :class:`RobustObjective`, where they are documented, as far as given."""

    policy: Literal["satisficing", "stable"] | None
    threshold: float | Literal["adaptive"] | None
    margin: float | None
    tolerance: Mapping[str, float] | None
    radius: float | None
    p: float | None
    probe: bool | None


ARGUMENTS = tuple(RobustArguments.__annotations__)


def check_arguments(
    given: Mapping[str, object], function: Callable[..., object] | None = None
) -> RobustArguments:
    """Return the arguments that are not None or empty, each of the right kind.

    The ``function`` that they were given to has others, too, which may have been meant.

    Raises
    ------
    RefusalError
        If one is of another kind.
    TypeError
        If there is no such argument.
    """
    for name in given:
        if name not in ARGUMENTS:
            others = signature(function).parameters.values() if function else ()
            several = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
            known = [each.name for each in others if each.kind not in several]
            known += ARGUMENTS
            raise TypeError(f"There is no argument {name!r}: {meant(name, known)}")
    found = {name: value for name, value in given.items() if value is not None and value != {}}
    for name, value in found.items():
        if name == "policy" and value not in ("satisficing", "stable"):
            raise RefusalError(f"policy must be satisficing or stable, got {value!r}.")
        if name == "tolerance" and not isinstance(value, Mapping):
            raise RefusalError(f"tolerance must name parameters, {{'a': 2.0}}, got {value!r}.")
        if name == "probe" and not isinstance(value, bool):
            raise RefusalError(f"probe must be true or false, got {value!r}.")
        if name == "threshold" and not (_number(value) or value == "adaptive"):
            raise RefusalError(f"threshold must be a number or 'adaptive', got {value!r}.")
        if name in ("margin", "radius", "p") and not _number(value):
            raise RefusalError(f"{name} must be a number, got {value!r}.")
    tolerance = cast("Mapping[str, object]", found.get("tolerance", {}))
    for name, size in tolerance.items():
        if not _number(size) or not (size >= 0.0 and math.isfinite(size)):
            raise RefusalError(f"The tolerance of {name!r} must be a number >= 0, got {size!r}.")
    return cast("RobustArguments", found)


@dataclass(frozen=True)
class RobustObjective:
    """Robust objective: values that stay good when inputs are moved.

    Attributes
    ----------
    policy:
        ``"satisficing"``: a value at least as good as ``threshold``, moved as far as possible
        [Saday2025]_. ``"stable"``: the best worst value within ``radius`` [Bogunovic2018]_. By
        default the first if there is a threshold, else the second.
    threshold:
        In the user's units and direction: at most that when minimising, at least that when
        maximising. ``"adaptive"``: the best pessimistic confidence bound, less ``margin``; it
        follows what is known, so two of three choices search for the best value.
    margin:
        By how much worse than the best an adaptive threshold may be, at least 0.
    tolerance:
        Name of a parameter -> by how much it may be moved, in its own unit; for a parameter on a
        logarithmic scale a factor, such as 1.1 for 10 % either way. A parameter without one is
        never moved. Distance 1 is a move of one tolerance, in as many parameters as may be.
    radius:
        In tolerances, 1 by default.
    p:
        How quickly a value may get worse than the threshold with the distance d, (kappa d)^p, see
        :class:`~stoic.policies.Satisficing`: infinite by default, which is AdveRS-2; 1 is AdveRS-1.
    probe:
        True to run trials where a move of the chosen setting may hurt most, instead of at the
        setting. The default as long as no trial reports what was executed: where nothing moves
        inputs, only probes show what moves do. They make certificates better, and trials worse,
        since half of them look for the border.

    Raises
    ------
    RefusalError
        If these contradict each other. :meth:`distance` checks that the parameters exist, when the
        search space is known.
    """

    policy: Literal["satisficing", "stable"] | None = None
    threshold: float | Literal["adaptive"] | None = None
    margin: float | None = None
    tolerance: Mapping[str, float] | None = None
    radius: float | None = None
    p: float | None = None
    probe: bool | None = None

    def __post_init__(self) -> None:
        check_arguments(vars(self))  # what a storage holds comes here, too
        if not self.tolerance:
            raise RefusalError(
                "Which parameters may be moved, and by how much, is missing: give each of them a "
                "tolerance, as in tolerance={'temperature': 2.0} or --tolerance temperature=2."
            )
        if self.stable:
            self._refuse("threshold", "margin", "p")
        else:
            self._refuse("radius")
            if self.threshold is None:
                raise RefusalError(
                    "A value that is good enough is missing: give a threshold, or 'adaptive' and a "
                    "margin."
                )
            if self.threshold == "adaptive" and self.margin is None:
                raise RefusalError(
                    "By how much worse than the best the value may be is missing: give an adaptive "
                    "threshold a margin, as in margin=0.1 or --margin 0.1."
                )
        # The constructors of policies check the numbers.
        try:
            self._policy(1.0, Distance(), False)
        except ValueError as error:
            raise RefusalError(str(error)) from error

    @classmethod
    def of(cls, given: RobustArguments, study: Study | None = None) -> RobustObjective | None:
        """Build the aim of what is given now, and of what a study recorded; None if neither is."""
        stored = None if study is None else stored_aim(study)
        said = merge_over(check_arguments(given), {} if stored is None else stored.record())
        return cls(**said) if said else None

    @property
    def stable(self) -> bool:
        return self.policy == "stable" or (self.policy is None and self.threshold is None)

    def _refuse(self, *names: str) -> None:
        for name in names:
            if getattr(self, name) is not None:
                word = "stable" if self.stable else "satisficing"
                raise RefusalError(
                    f"A {name} does not go with the policy {word}: leave out one of them."
                )

    def distance(self, encoding: Encoding) -> Distance:
        """Build the distance between points, in tolerances.

        Raises
        ------
        RefusalError
            If a parameter with a tolerance is not in the space or cannot have it, or if nothing
            moves.
        """
        assert self.tolerance is not None
        return Distance(_METRIC, encoding.tolerances(self.tolerance))

    def parts(self, base: Parts, encoding: Encoding, sign: float, probe: bool) -> Parts:
        """Exchange the confidence and the policy of ``base`` for those of this aim.

        Confidence bounds are as wide as those of certificates. With wider ones, made for exploring,
        probes looked farther from the border, and certificates became smaller.

        ``sign`` is -1 where the user minimises.
        """
        policy = self._policy(sign, self.distance(encoding), probe)
        return replace(base, confidence=Fixed(WIDTH), policy=policy)

    def _policy(self, sign: float, distance: Distance, probe: bool) -> Policy:
        n = _CANDIDATES if np.all(np.asarray(distance.tolerance) > 0.0) else _WITH_FIXED
        if self.stable:
            radius = 1.0 if self.radius is None else self.radius
            return StableOpt(radius, distance, probe, n, _RETRIES, _REFINED)
        threshold = self.threshold
        assert threshold is not None
        return Satisficing(
            threshold if isinstance(threshold, str) else sign * threshold,
            math.inf if self.p is None else self.p,
            distance,
            self.margin or 0.0,
            n,
            probe,
            _RETRIES,
            quiet=True,  # its warning would be in the learner's units
            refined=_REFINED,
            seeking=_SEEKING,
        )

    def record(self) -> RobustArguments:
        """Return the given attributes, for JSON; without an infinite ``p``, the default."""
        plain = {
            name: {each: _plain(size) for each, size in value.items()}
            if name == "tolerance"
            else _plain(value)
            for name, value in vars(self).items()
            if value is not None and value != math.inf
        }
        return cast("RobustArguments", plain)


def merge_over(said: RobustArguments, earlier: RobustArguments) -> RobustArguments:
    """Merge the arguments that are given now with earlier ones that still fit.

    A threshold ends an earlier policy with its radius, and a number also an earlier margin. A
    radius, or the policy stable, ends an earlier threshold with its margin and power.
    """
    ended = set()
    if said.keys() & {"threshold", "policy"}:
        ended |= {"policy", "radius"} if said.get("policy") != "stable" else {"policy"}
    if said.get("threshold", "adaptive") != "adaptive":
        ended |= {"margin"}
    elif "radius" in said or said.get("policy") == "stable":
        ended |= {"threshold", "margin", "p"}
    kept = {name: value for name, value in earlier.items() if name not in ended}
    return cast("RobustArguments", kept | said)


def checked_aim(aim: object) -> RobustObjective | None:
    """Refuse what is no aim."""
    if not isinstance(aim, RobustObjective | None):
        example = 'RobustObjective(threshold=0.5, tolerance={"x": 0.1})'
        raise RefusalError(f"aim is a RobustObjective, as in {example}, got {aim!r}.")
    return aim


def stored_aim(study: Study) -> RobustObjective | None:
    """Return the aim that is recorded with a study; None if there is none, or no valid one."""
    record = study.user_attrs.get(AIM)
    if not isinstance(record, dict):
        return None
    try:
        return RobustObjective(**record)
    except (RefusalError, TypeError, ArithmeticError):  # recorded by something else
        return None


def record_aim(study: Study, aim: RobustObjective) -> None:
    """Record an aim with a study, in the place of an earlier one."""
    # Every worker comes here, and all but the first need not write
    if study.user_attrs.get(AIM) != aim.record():
        study.set_user_attr(AIM, aim.record())


def _number(value: object) -> TypeGuard[float]:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        return False
    try:
        float(value)
    except OverflowError:  # a whole number of hundreds of digits
        return False
    return True


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value  # JSON has no numbers of NumPy
