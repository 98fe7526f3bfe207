"""Checkpoint of a leave-one-out mixture: what its fit has settled on, as plain numbers.

Hyperparameters, the excess of each row, evidence and odds, and the window: all that takes a fit to
find. The posterior follows from them and the observations, to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from stoic import linalg
from stoic.data import Array, Integers, Observations
from stoic.models.bounded import assembled
from stoic.models.hypotheses import Hypothesis
from stoic.posteriors.absorbed import WindowPosterior
from stoic.posteriors.base import Model, Posterior, Windowed
from stoic.posteriors.exact import Exact
from stoic.posteriors.hyperparameters import Hyperparameters
from stoic.posteriors.mixture import MixturePosterior

if TYPE_CHECKING:
    from stoic.models.leave_one_out import LeaveOneOutGP


@dataclass(frozen=True, eq=False)
class SettledHypothesis:
    """Outlier hypothesis: hyperparameters, excess of each row (m,), evidence and probability.

    Its ``credit`` is that of :class:`~stoic.models.hypotheses.Hypothesis`.
    """

    hyperparameters: Hyperparameters
    excess: Array
    evidence: float
    weight: float
    credit: float = 0.0


@dataclass(frozen=True, eq=False)
class Window:
    """Window of rows, as of :class:`~stoic.posteriors.absorbed.WindowPosterior`.

    ``excess`` (n,) is that of all rows.
    """

    rows: Integers
    inducing: Integers
    fitted_to: int
    chosen_at: int
    excess: Array


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Checkpoint of the posterior given ``n`` observations.

    Attributes
    ----------
    n:
        Number of observations.
    hypotheses:
        The likeliest first; their rows are all, or those of the window.
    all_trusted:
        Hyperparameters of the fit that trusts all rows, and the number of its rows; None if there
        is none.
    window:
        None where the model is exact.
    """

    n: int
    hypotheses: tuple[SettledHypothesis, ...]
    all_trusted: tuple[Hyperparameters, int] | None
    window: Window | None = None

    @classmethod
    def of(cls, posterior: Posterior) -> Checkpoint | None:
        """Return that of a posterior; None where it has no such numbers."""
        fitted, window = posterior.fitted_defence, None
        if not isinstance(fitted, Hypothesis):
            return None
        parts: tuple[Posterior, ...] = (posterior,)
        weights = np.ones(1)
        if isinstance(posterior, MixturePosterior):
            parts, weights = posterior.parts, posterior.weights
        if isinstance(posterior, WindowPosterior):
            found = list(fitted.explanations)
            window = Window(
                posterior.rows, posterior.inducing, posterior.fitted_to, posterior.chosen_at,
                fitted.excess,
            )  # fmt: skip
        else:
            evidence = fitted.evidence + np.log(weights / weights[0])
            found = [
                replace(part.fitted_defence, evidence=float(e))
                for part, e in zip(parts, evidence, strict=True)
                if isinstance(part.fitted_defence, Hypothesis)
            ]
        hypotheses = []
        for each, part, weight in zip(found, parts, weights, strict=True):
            numbers = Hyperparameters.of(part.prior)
            if numbers is None or not math.isfinite(each.evidence):
                return None
            hypotheses.append(
                SettledHypothesis(numbers, each.excess, each.evidence, float(weight), each.credit)
            )
        trusting, all_trusted = fitted.all_trusted, None
        if trusting is not None:
            numbers = Hyperparameters.of(trusting.prior)
            all_trusted = None if numbers is None else (numbers, trusting.n)
        return cls(posterior.n, tuple(hypotheses), all_trusted, window)

    def posterior(self, model: LeaveOneOutGP, observations: Observations) -> Posterior | None:
        """Return the posterior given the ``n`` observations; None if it cannot be theirs."""
        if len(observations) != self.n or not self._fits(model, observations):
            return None
        try:
            with np.errstate(all="ignore"):
                found = self._posterior(model, observations)
        except (ValueError, linalg.NotPositiveDefiniteError):
            return None
        parts = found.parts if isinstance(found, MixturePosterior) else (found,)
        known = (part.alpha for part in parts if isinstance(part, Exact))
        return found if all(np.isfinite(alpha).all() for alpha in known) else None

    def _fits(self, model: LeaveOneOutGP, observations: Observations) -> bool:
        """Return True if the model has a window where this has one, and about as large a one."""
        bounded = len(observations) > model.exact
        if self.window is None or model.bounds is None:
            return self.window is None and not bounded
        return bounded and len(self.window.rows) <= 2 * model.bounds.full

    def _posterior(self, model: LeaveOneOutGP, observations: Observations) -> Posterior:
        # Explanations of one fit share its prior, so that rows are absorbed once for each
        numbers = {each.hyperparameters for each in self.hypotheses}
        priors = {those: those.prior(model.prior) for those in numbers}
        window = observations if self.window is None else observations.only(self.window.rows)
        found = [
            Hypothesis(
                each.excess, model.negligible, evidence=each.evidence, credit=each.credit
            ).under(priors[each.hyperparameters], window)
            for each in self.hypotheses
        ]
        trusting = self._all_trusted(model, window)
        if self.window is None:
            parts = tuple(each.posterior for each in found if each.posterior is not None)
            fitted = replace(found[0], all_trusted=trusting, explanations=tuple(found))
            if len(parts) == 1:
                return replace(parts[0], fitted_defence=fitted)
            weights = np.array([each.weight for each in self.hypotheses])
            return MixturePosterior(parts, weights, fitted)
        known = self.window
        whole = Hypothesis(
            known.excess, model.negligible, all_trusted=trusting, explanations=tuple(found)
        )
        return assembled(
            observations, whole, known.rows, known.inducing, known.fitted_to, known.chosen_at
        )

    def _all_trusted(self, model: LeaveOneOutGP, window: Observations) -> Exact | None:
        """Return the fit that trusts all rows, of which the next one needs its prior alone."""
        if self.all_trusted is None:
            return None
        numbers, n = self.all_trusted
        none = window.until(0)
        empty = Hypothesis(np.empty(0), model.negligible)
        return replace(empty.condition(numbers.prior(model.prior), none), n=n)


@dataclass(frozen=True, eq=False)
class Checkpoints:
    """Checkpoints of the models of a learner.

    Attributes
    ----------
    objective:
        Of the model of the objective.
    sites:
        Row of a censored result -> value and noise variance of the pseudo-observation instead.
    constraints:
        Name of a constraint -> checkpoint of its model.
    """

    objective: Checkpoint
    sites: Mapping[int, tuple[float, float]]
    constraints: Mapping[str, Checkpoint]


@runtime_checkable
class Resumable(Protocol):
    """Model whose posterior follows from a checkpoint and the observations."""

    def checkpoint(self, posterior: Posterior) -> Checkpoint | None:
        """Return what a posterior has settled on; None if that cannot be stored."""

    def resumed(self, observations: Observations, checkpoint: Checkpoint) -> Posterior | None:
        """Return the posterior of a checkpoint; None if it is of another model."""


def resumed(
    model: Model,
    observations: Observations,
    checkpoint: Checkpoint,
    sites: Observations | None = None,
) -> Posterior | None:
    """Return the posterior of the observations up to a checkpoint.

    None where it is of no use: it is of other observations; or there are more by now, and the model
    is exact. That is fitted from a cold start, which is cheap, so that nobody's earlier fit decides
    what it finds. ``sites`` are the observations up to it as the model had them, if some are
    censored.
    """
    n = len(observations)
    bounded = isinstance(model, Windowed) and n > model.exact
    if not isinstance(model, Resumable) or checkpoint.n > n:
        return None
    if checkpoint.n < n and not bounded:
        return None
    return model.resumed(sites or observations.until(checkpoint.n), checkpoint)
