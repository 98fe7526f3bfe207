"""Probability that constraints hold, each an output with a model behind the same defence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import log_ndtr, logsumexp

from stoic.data import Array, Booleans, Observations, as_results
from stoic.domains import Domain
from stoic.models.censored import hazard
from stoic.models.checkpoint import Checkpoint, Resumable, resumed
from stoic.models.feasibility import Feasibility
from stoic.models.leave_one_out import LeaveOneOutGP
from stoic.posteriors.base import Integrating, Model, Posterior
from stoic.posteriors.mixture import Averaged, MixturePosterior
from stoic.refusal import nearest

_LEAST = 1e-10  # prior standard deviations: floor of the posterior standard deviation
_TINY = float(np.finfo(float).tiny ** 0.5)  # the same floor where the prior variance is nearly 0
SURE = 0.9  # probability that all constraints hold at a recommended input
_LIMIT = 1e50  # of |z|, whose square is a number
# Median sizes of a value, from which on it is compressed. Limits of an exponential, a ratio and a
# product of two sizes, 5 studies of 36 trials each: losses of 1.6e-5, 1.6e-5 and 1.1e-4, without
# 6e-3, 1.5e-2 and 3e-4; of a product of three 1.1e-3 and 1.6e-4.
_LARGE = 8.0


@dataclass(frozen=True, eq=False)
class Constraints:
    """Probability that all constraints hold at x: c_k(x) <= 0, independently for each k.

    For one normal posterior it is Phi(-mean / std), see [Gardner2014]_; for a mixture over outlier
    hypotheses the weighted mean of these.

    Attributes
    ----------
    posteriors:
        Of each constraint function c_k, noiseless.
    unknown:
        Inputs where a constraint was not a number, shape (m, d).
    classifiers:
        Of each constraint that is only known to hold or not.
    """

    posteriors: tuple[Posterior, ...]
    unknown: Array
    classifiers: tuple[Feasibility, ...] = ()

    def log(self, x: Array) -> Array:
        """Log probability at ``x`` (m, d), shape (m,)."""
        return np.asarray(self._log_of_each(x).sum(axis=0))

    def hold(self, x: Array) -> Booleans:
        """Mask of points (m,) where each constraint holds with a probability of at least 1/2."""
        return np.asarray((self._log_of_each(x) >= -math.log(2.0)).all(axis=0))

    def sure(self, x: Array) -> Booleans:
        """Mask of points (m,) where all hold with a probability of 0.9.

        Of one that is classified 1/2 is enough: only far from any limit is it 0.9.
        """
        return self._sure(self._log_of_each(x))

    def safest(self, x: Array) -> Booleans:
        """Mask of points (m,) where that is :meth:`sure`, or if none is, likeliest."""
        each = self._log_of_each(x)
        sure, total = self._sure(each), each.sum(axis=0)
        return sure if sure.any() else np.asarray(total >= total.max())

    def _sure(self, each: Array) -> Booleans:
        k = len(self.posteriors)
        sure: Booleans = each[:k].sum(axis=0) >= math.log(SURE)
        return sure & (each[k:] >= -math.log(2.0)).all(axis=0)

    def _log_of_each(self, x: Array) -> Array:
        """Log probability of each constraint at ``x`` (m, d), shape (k, m)."""
        modelled = [
            logsumexp(
                [
                    log_weight + log_ndtr(_z(posterior, *part.predict(x)))
                    for log_weight, part in _parts(posterior)
                ],
                axis=0,
            )
            for posterior in self.posteriors
        ]
        return np.array(modelled + [np.log(classifier(x)) for classifier in self.classifiers])

    def log_with_gradient(self, x: Array) -> tuple[Array, Array]:
        """Log probability at ``x`` (m, d), shape (m,), and its gradients, shape (m, d)."""
        total, gradient = np.zeros(len(x)), np.zeros(x.shape)
        for posterior in self.posteriors:
            each, slopes = [], []
            for log_weight, part in _parts(posterior):
                mean, std, mean_slope, std_slope = part.predict_with_gradient(x)
                z, least = _z(posterior, mean, std), _least(posterior)
                log_cdf = log_ndtr(z)
                ratio = hazard(z)  # d log Phi / dz
                # Where z is clipped, or the deviation below its floor, the deviation has no effect
                free = (np.abs(z) < _LIMIT) & (std > least)
                by_mean = -ratio / (_widening(posterior) * np.maximum(std, least))
                by_std = np.where(free, -ratio * z / np.maximum(std, least), 0.0)
                each.append(log_weight + log_cdf)
                slopes.append(by_mean[:, None] * mean_slope + by_std[:, None] * std_slope)
            together = logsumexp(each, axis=0)
            total += together
            for log, slope in zip(each, slopes, strict=True):
                gradient += np.exp(log - together)[:, None] * slope  # each part's share of P
        for classifier in self.classifiers:
            p, p_slope = classifier.with_gradient(x)
            total += np.log(p)
            gradient += p_slope / p[:, None]
        return total, gradient

    def __call__(self, x: Array) -> Array:
        """Probability at ``x`` (m, d), shape (m,)."""
        return np.asarray(np.exp(self.log(x)))

    def with_gradient(self, x: Array) -> tuple[Array, Array]:
        """Probability at ``x`` (m, d), shape (m,), and its gradients, shape (m, d)."""
        log, slope = self.log_with_gradient(x)
        return np.exp(log), np.exp(log)[:, None] * slope

    def fantasise(self, x: Array) -> Constraints:
        """Hallucinate results at pending points (k, d): the means are held."""
        return replace(self, posteriors=tuple(p.fantasise(x, None) for p in self.posteriors))


class ConstraintHistory:
    """Observed values of each constraint, by name, and its model given these.

    A constraint has a history of its own: an input without a value of it is no evidence about it.
    One that has had two values, one satisfied and one not, is classified, by
    :class:`~stoic.models.feasibility.Feasibility`: a Gaussian process would take what is rare for
    outliers of what is not. Sizes far beyond the others are compressed, as in [Eriksson2021]_.

    Parameters
    ----------
    domain:
        The search space.
    model:
        Model of each constraint.
    """

    def __init__(self, domain: Domain, model: Model) -> None:
        self.domain = domain
        self.model = replace(model, few_good=False) if isinstance(model, LeaveOneOutGP) else model
        self._rules: set[str] = set()  # names of constraints that excluded an input
        self._results: dict[str, tuple[list[Array], list[float]]] = {}
        self._posteriors: dict[str, Posterior] = {}  # caches
        self._reported: dict[str, Posterior] = {}
        self._classifiers: dict[str, tuple[int, Feasibility]] = {}  # with the number of values

    @staticmethod
    def check(constraints: Mapping[str, object], count: int) -> dict[str, Array]:
        """Return the values of each constraint at ``count`` inputs, (count,) each."""
        if not isinstance(constraints, Mapping):
            raise ValueError(
                "Constraints are values by name, as {'pressure': -0.3}, which satisfy them up to "
                f"0: got {constraints!r}."
            )
        checked = {name: as_results(values) for name, values in constraints.items()}
        for name, values in checked.items():
            if len(values) != count:
                raise ValueError(
                    f"Got {count} inputs but {len(values)} values of the constraint {name!r}: give "
                    "one for each."
                )
        return checked

    def misspelt(self, constraints: Iterable[str]) -> list[str]:
        """Say which of these names are new and like one that is not among them."""
        names = set(constraints)
        lacking = sorted(self._results.keys() - names)
        return [
            f"The constraint {name!r} is new, and {near!r} has no value here: if that is the "
            "same one, start again and give it one name."
            for name in sorted(names - self._results.keys())
            if (near := nearest(name, lacking)) is not None
        ]

    def tell(self, x: Array, constraints: Mapping[str, Array], excluded: bool = False) -> None:
        """Append the values (n,) of some constraints at inputs (n, d).

        Where these ``excluded`` the inputs, so that nothing was run, those violated are rules. They
        need not be exact: a limit may be measured before the objective is.
        """
        for name, values in constraints.items():
            if excluded and (values > 0.0).any():
                self._rules.add(name)
            points, results = self._results.setdefault(name, ([], []))
            points += list(x.copy())
            results += values.tolist()

    def __call__(self, integrated: bool = False) -> Constraints | None:
        """Condition the models on all values; None before there is one.

        With ``integrated``, marginalise over hyperparameters, for reports.
        """
        if not self._results:
            return None
        posteriors, classifiers, unknown = [], [], [np.empty((0, self.domain.dim))]
        for name in self._results:
            observations = self._observations(name)
            unknown.append(observations.x[np.isnan(observations.observed)])
            if self._labelled(name):
                classifiers.append(self._classifier(name))
                continue
            posterior = self._posterior(name, observations)
            if integrated and isinstance(self.model, Integrating):
                reported = self._reported.get(name)
                if reported is None or reported.n != len(observations):
                    reported = self.model.integrated(self.domain, observations, posterior)
                    self._reported[name] = reported
                posterior = reported
            posteriors.append(posterior)
        return Constraints(tuple(posteriors), np.concatenate(unknown), tuple(classifiers))

    def rules(self) -> Constraints | None:
        """Condition the models of rules alone, each from a cold start; None without any."""
        alone = ConstraintHistory(self.domain, self.model)
        alone._results = {name: of for name, of in self._results.items() if name in self._rules}
        return alone()

    def trust(self) -> dict[str, Array]:
        """Trust of each value of each constraint, in the order of values; nan of no finite one.

        That of a value which only says whether a constraint holds is 1.
        """
        found = {}
        for name, (_, results) in self._results.items():
            observations, trust = self._observations(name), np.ones(len(results))
            if not self._labelled(name):
                trust = self._posterior(name, observations).trust(observations)
            found[name] = np.where(np.isfinite(results), trust, np.nan)
        return found

    def checkpoints(self) -> dict[str, Checkpoint]:
        """Return what the models have settled on, by name, as far as it can be stored."""
        found: dict[str, Checkpoint] = {}
        for name, posterior in self._posteriors.items():
            if isinstance(self.model, Resumable):
                checkpoint = self.model.checkpoint(posterior)
                found |= {} if checkpoint is None else {name: checkpoint}
        return found

    def resume(self, checkpoints: Mapping[str, Checkpoint]) -> None:
        """Begin with what models had settled on given the first values of each constraint."""
        for name in self._results.keys() & checkpoints.keys():
            known = resumed(self.model, self._observations(name), checkpoints[name])
            if known is not None:
                self._posteriors[name] = known

    def _labelled(self, name: str) -> bool:
        """Return True if the values of a constraint say no more than whether it holds.

        Of numbers with digits no two would be equal.
        """
        values = np.array(self._results[name][1])
        values = values[~np.isnan(values)]
        different = np.unique(values)
        violated = np.count_nonzero(different > 0.0)
        return len(values) > len(different) and violated == 1 and len(different) <= 2

    def _classifier(self, name: str) -> Feasibility:
        points, results = self._results[name]
        known = self._classifiers.get(name)
        if known is None or known[0] != len(results):
            x, values = np.array(points), np.array(results)
            known = (
                len(results),
                Feasibility.learned(self.domain, x[values <= 0.0], x[values > 0.0]),
            )
            self._classifiers[name] = known
        return known[1]

    def _observations(self, name: str) -> Observations:
        points, results = self._results[name]
        x = np.array(points)
        values, unknown = _compressed(_apart(np.array(results))), np.full(len(x), np.nan)
        return Observations(x, values, unknown, self.domain.locate(x))

    def _posterior(self, name: str, observations: Observations) -> Posterior:
        posterior = self._posteriors.get(name)
        if posterior is None or posterior.n != len(observations):
            posterior = self.model(self.domain, observations, posterior)
            self._posteriors[name] = posterior
        return posterior


def _apart(values: Array) -> Array:
    """Move zeros below 0 where all satisfied values are 0, as of max(violation, 0) or of 0 and 1.

    Else no value would be safely below 0, and the probability nowhere above 1/2. One of minus
    infinity is satisfied as well as any other, or by 1.
    """
    if (endless := values == -np.inf).any():
        values = np.where(endless, values[np.isfinite(values)].min(initial=-1.0), values)
    positive = values[values > 0.0]
    if (values == 0.0).any() and not (values < 0.0).any():
        values = np.where(values == 0.0, -np.median(positive) if len(positive) else -1.0, values)
    return values


def _compressed(values: Array) -> Array:
    """Return values whose sizes grow with the logarithm where they are large.

    A violation of 190 where all others are below 1 would look like an outlier.
    """
    sizes = np.abs(values[np.isfinite(values) & (values != 0.0)])
    if not len(sizes):
        return values
    # A power of 2, so that another value hardly ever changes all
    scale = _LARGE * 2.0 ** round(math.log2(np.median(sizes)))
    return np.asarray(scale * np.arcsinh(values / scale))


def _parts(posterior: Posterior) -> list[tuple[float, Posterior]]:
    """Log weights and posteriors of a mixture, or of the only hypothesis."""
    if not isinstance(posterior, MixturePosterior):
        return [(0.0, posterior)]
    return list(zip(np.log(posterior.weights).tolist(), posterior.parts, strict=True))


def _widening(posterior: Posterior) -> float:
    return posterior.widening if isinstance(posterior, Averaged) else 1.0


def _least(posterior: Posterior) -> float:
    return float(max(_LEAST * posterior.max_variance**0.5, _TINY))


def _z(posterior: Posterior, mean: Array, std: Array) -> Array:
    """Standardised distance below 0 of a part of ``posterior``, shape (m,)."""
    spread = _widening(posterior) * np.maximum(std, _least(posterior))
    with np.errstate(over="ignore"):
        return np.clip(-mean / spread, -_LIMIT, _LIMIT)
