"""Leave-one-out diagnostics of the trials of a study."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from optuna.trial import FrozenTrial

from stoic.balancing import Balanced
from stoic.data import DISTRUSTED, Array, Observations
from stoic.defences.plateau import Plateau
from stoic.integrations.optuna.executed import executed
from stoic.learner import Learner, has_scale
from stoic.posteriors.base import FittedDefence, Posterior
from stoic.posteriors.cavity import given_the_others
from stoic.posteriors.refined import Refined


@dataclass(frozen=True)
class Row:
    """Leave-one-out diagnostics of one complete trial, in the user's units.

    With several objectives, of one of its values.

    Attributes
    ----------
    number:
        Of the trial.
    value:
        The observed value.
    expected, sd:
        Posterior mean and standard deviation of the objective there, given all other trials, by the
        one fit that decides on trust. An estimate of an explanation averages over others, too.
    trust:
        From 0 to 1; below 0.5 the trial is called distrusted. nan, not judged, where nothing is
        modelled, and of a finite value where no two results differ.
    noise_sd:
        Standard deviation of the noise of this value: as reported, else as estimated.
    centre, half_width:
        Of the plateau, within which a value is trusted entirely: its centre may rest on
        more, or less, than all other trials. None if the method has no plateau.
    executed:
        All parameters as they were run, if the trial reports them.
    refused:
        Why parts of that report were not used.
    params:
        Parameters as they were suggested.
    objective:
        Name of the objective, if there are several.
    """

    number: int
    value: float
    expected: float
    sd: float
    trust: float
    noise_sd: float = 0.0
    centre: float | None = None
    half_width: float | None = None
    executed: Mapping[str, Any] | None = None
    refused: tuple[str, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    objective: str | None = None

    @property
    def distrusted(self) -> bool:
        """True if the trust is below 0.5; what was not judged is not distrusted."""
        return self.trust < DISTRUSTED

    @property
    def of(self) -> str:
        """The trial, and with several objectives which value of it, in words."""
        return f"trial {self.number}" + (f", {self.objective}" if self.objective else "")

    @property
    def predicted(self) -> bool:
        """True if others predict this value: of infinite values alone there is no scale."""
        return math.isfinite(self.sd) or math.isfinite(self.value)

    @property
    def residual(self) -> float:
        """Leave-one-out residual, in standard deviations of the predicted value."""
        if self.value == self.expected:  # also two infinities, whose difference is nan
            return 0.0
        spread = math.hypot(self.sd, self.noise_sd)
        apart = self.value - self.expected
        return apart / spread if spread else math.copysign(math.inf, apart)


@dataclass(frozen=True)
class PartialRow:
    """What a trial without a final value says about it, in the user's units.

    Attributes
    ----------
    number, state:
        Of the trial; the state is "pruned", "fail" or "complete".
    value:
        Estimate of the final value, or the bound that it is at least as bad as.
    sd:
        Standard deviation of its error; None if unknown.
    source:
        "curve": by its intermediate values and the finished trials; "bound": a bound that the trial
        has; "pruned": the second best value when it was pruned, as a bound.
    censored:
        True for a bound.
    trust:
        From 0 to 1, as of a row.
    """

    number: int
    state: str
    value: float
    sd: float | None
    source: str
    censored: bool
    trust: float = 1.0

    def sentence(self) -> str:
        """State it in words."""
        error = "" if self.sd is None else f" +- {self.sd:.2g}"
        value = f"{self.value:.6g}{error}" + " or worse" * self.censored
        why = {"curve": " by its intermediate values", "pruned": " when it was pruned"}
        return value + why.get(self.source, "")


def scaled(learner: Learner | Balanced) -> bool:
    """Return True if deviations have a scale: a given one, or results that differ."""
    leader = learner.learners[learner.leader] if isinstance(learner, Balanced) else learner
    return has_scale(getattr(leader, "model", None), learner.observations)


def judged(
    learner: Learner | Balanced, posterior: Posterior, observations: Observations
) -> tuple[Array, Array, list[float]]:
    """Mean and deviation of each observation given all others, and the trust in it, all (n,).

    Without a scale the deviation is infinite, and what is not distrusted was not judged: math.nan
    itself, so that equal rows compare equal.
    """
    expected, sd = given_the_others(posterior, observations)
    if isinstance(estimate := learner.estimate, Refined):
        near = estimate.rows
        expected[near], sd[near] = given_the_others(estimate.near, observations.only(near))
    trust: list[float] = learner.trust.tolist()
    if scaled(learner):
        return expected, sd, trust
    trust = [each if each < DISTRUSTED else math.nan for each in trust]
    return expected, np.full_like(sd, np.inf), trust


def plateau_of(defence: FittedDefence, rows: int) -> tuple[Array, Array] | None:
    """Centre and half-width for each observation, both (n,), if the defence has a plateau."""
    plateau = getattr(defence, "plateau", None)
    if not isinstance(plateau, Plateau):
        return None
    return np.broadcast_to(plateau.centre, rows), np.broadcast_to(plateau.half_width, rows)


def run_of(trial: FrozenTrial) -> dict[str, Any]:
    """Arguments of a row on how a trial was run."""
    run = executed(trial)
    return {} if run is None else {"executed": run.params, "refused": run.refused}
