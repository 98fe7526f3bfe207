"""Outcome of confirming measurements, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stoic.printable import ShownAsText, probability, written


@dataclass(frozen=True)
class Candidate:
    """Setting that may be the best, in the user's units.

    Attributes
    ----------
    number:
        Of a trial that has it.
    params:
        As they were run.
    mean, std:
        Posterior mean and standard deviation of the objective there.
    probability:
        That it is the best of those tried.
    measurements, confirmations, failures:
        Numbers of trusted results there, of the confirming ones among all results, and of
        confirming measurements that failed.
    """

    number: int
    params: Mapping[str, Any]
    mean: float
    std: float
    probability: float
    measurements: int
    confirmations: int
    failures: int


@dataclass(frozen=True, repr=False)
class Confirmation(ShownAsText):
    """Outcome of the confirming measurements so far, in the user's units.

    Attributes
    ----------
    candidates:
        The recommended setting, and all others whose probability is 1 % or more, the likeliest
        first.
    lower, upper:
        95 % interval of the objective at the recommended setting. It comes from the joint posterior
        of all candidates given all results, which accounts for the selection.
    expected_loss:
        By how much the best setting tried is expected to be better than the recommended one.
    largest_loss:
        The loss that is exceeded with a probability of 5 %.
    measurements:
        Number of confirming measurements that ended.
    failed:
        How many of them failed.
    uncounted:
        How many of these failed at three settings or more without a success between, or at two
        before any: they are taken for the program's, and count against no setting.
    left_out:
        Numbers of trials that are not compared, since measurements of their settings failed.
    settled:
        True if the recommended setting was measured again, and either is the best with a
        probability of at least 0.95 or is expected to lose at most 2 % of the noise's standard
        deviation. Where constraints are modelled, it must also be ``safe``.
    feasible:
        Probability that it satisfies the constraints; None without any.
    safe:
        True without constraints, or if it satisfies them with a probability of 0.9, of one that is
        only known to hold or not 1/2. Only safe settings are compared, or else the likeliest.
    """

    candidates: tuple[Candidate, ...]
    lower: float
    upper: float
    expected_loss: float
    largest_loss: float
    measurements: int
    failed: int
    uncounted: int
    left_out: tuple[int, ...]
    settled: bool
    feasible: float | None = None
    safe: bool = True

    @property
    def recommended(self) -> Candidate:
        """The first candidate."""
        return self.candidates[0]

    @property
    def probability(self) -> float:
        """Probability that the recommended setting is the best of those tried."""
        return self.recommended.probability

    def __str__(self) -> str:
        return f"trial {self.recommended.number}, {self.sentence()}"

    def sentence(self) -> str:
        """State the outcome in words."""
        count, failed = self.measurements, f", {self.failed} failed" * bool(self.failed)
        if self.uncounted:
            failed += f" (not counted against a setting: {self.uncounted})"
        if self.left_out:
            numbers = ", ".join(map(str, self.left_out))
            failed += f", left out: trial{'s' * (len(self.left_out) > 1)} {numbers}"
        # A mean may be above the quantile, where a large loss is unlikely
        certain = f"with 95 % below {self.largest_loss:.3g}"
        most = certain if self.largest_loss > 0.0 else "most likely none"
        loss = f"expected loss {self.expected_loss:.3g}, {most}"
        lower, upper = (written(end, self.recommended.std) for end in (self.lower, self.upper))
        here = self.recommended.confirmations + self.recommended.failures
        none = ", none of them a result of this setting" * (count > 0 and not here)
        safe = "" if self.feasible is None else " that are likely to be feasible"
        if not self.safe:
            safe = f" and likeliest to be feasible ({probability(self.feasible or 0.0)})"
        return (
            f"{count} measurement{'s' * (count != 1)}{none}{failed}: the best of those tried{safe} "
            f"with probability {self.probability:.2f}, 95 % interval {lower} to "
            f"{upper}, {loss}, {'settled' if self.settled else 'not settled yet'}"
        )

    def record(self) -> dict[str, Any]:
        """Return a JSON object for programs."""
        return {
            "measurements": self.measurements,
            "failed": self.failed,
            "uncounted": self.uncounted,
            "left_out": list(self.left_out),
            "settled": self.settled,
            "feasible": self.feasible,
            "safe": self.safe,
            "probability": self.probability,
            "interval": [self.lower, self.upper],
            "expected_loss": self.expected_loss,
            "largest_loss": self.largest_loss,
            "candidates": [{**vars(c), "params": dict(c.params)} for c in self.candidates],
        }
