"""Censored results in any model, by expectation propagation [Minka2001]_.

A censored row says that its result y = f(x) + noise is at most a bound b: the likelihood of f is
Phi((b - f) / sigma). Expectation propagation replaces it by a normal *site*, a pseudo-observation
and its noise variance, with which f(x) has the mean and the variance that it has given the other
rows and that likelihood. A model is given the sites as it is given any observation. With

    z = (b - mu) / s,  s^2 = v + sigma^2,  r = phi(z) / Phi(z),

where N(mu, v) is f(x) given the others, the site is mu - s / (z + r), of variance
s^2 / (r (z + r)) - v. It is at least sigma^2, and f moves by r standard deviations or less: a
weak bound says next to nothing, and one far below what the others say is an observation of b.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from stoic.data import Array, Observations
from stoic.domains import Domain
from stoic.posteriors.absorbed import WindowPosterior
from stoic.posteriors.arms import Arms
from stoic.posteriors.base import Model, Posterior, Windowed
from stoic.posteriors.cavity import given_the_others
from stoic.posteriors.exact import Exact
from stoic.posteriors.mixture import MixturePosterior
from stoic.posteriors.scales import median_and_mad

_LEAST_Z = -1e6  # below, z + r has no digits
_VAGUE = 1e6  # noise variances of a site, in s^2, beyond which it says nothing
_DAMPING = 0.5  # of simultaneous updates, which without it may cycle
_SWEEPS = 40
# Moves of f at a censored row: of the mean in standard deviations, or of their logarithm.
_CONVERGED = 1e-3  # in a sweep
_SETTLED = 0.02  # in a round
_ROUNDS = 2  # of sites and hyperparameters in turn


def hazard(z: Array) -> Array:
    """phi(z) / Phi(z), without underflow: near to -z far below 0."""
    with np.errstate(over="ignore"):
        return np.asarray(np.sqrt(2.0 / np.pi) / special.erfcx(-z / np.sqrt(2.0)))


def censored_site(bound: Array, mu: Array, v: Array, noise: Array) -> tuple[Array, Array]:
    """Value and noise variance of the sites of censored results, both (n,).

    Parameters
    ----------
    bound:
        Upper bounds of the results, shape (n,).
    mu, v:
        Mean and variance of f at each, given the others, shape (n,).
    noise:
        Noise variance of each result, shape (n,).
    """
    s = np.sqrt(v + noise)
    z = np.maximum((bound - mu) / s, _LEAST_Z)
    r = hazard(z)
    h = np.maximum(r * (z + r), 1.0 / _VAGUE)  # -> 0 for a bound far above mu
    return mu - s / np.maximum(z + r, 1.0 / -_LEAST_Z), np.maximum(s**2 / h - v, noise)


@dataclass(frozen=True, eq=False)
class Sites:
    """Sites of the censored rows of some observations.

    Attributes
    ----------
    observations:
        All rows, with a site instead of each censored one: what the model is conditioned on.
    bounds:
        Result or bound of each row, shape (n,).
    noise:
        Reported noise variance of each row, or nan, shape (n,).
    """

    observations: Observations
    bounds: Array
    noise: Array

    @classmethod
    def known(cls, observations: Observations, sites: Mapping[int, tuple[float, float]]) -> Sites:
        """Sites of some rows, a value and a noise variance each; of others the bound itself."""
        begun = cls(observations, observations.observed, observations.noise)
        rows = np.flatnonzero(~observations.measured).tolist()
        bounds = zip(observations.observed[rows], observations.noise[rows], strict=True)
        of_rows = [sites.get(row, bound) for row, bound in zip(rows, bounds, strict=True)]
        return begun._with(*np.array(of_rows).reshape(-1, 2).T)

    def record(self) -> dict[int, tuple[float, float]]:
        """Return the row of each site -> its value and noise variance."""
        rows, given = np.flatnonzero(~self.observations.measured), self.observations
        pairs = zip(given.observed[rows].tolist(), given.noise[rows].tolist(), strict=True)
        return dict(zip(rows.tolist(), pairs, strict=True))

    def updated(self, posterior: Posterior, damping: float) -> Sites:
        """Update all sites by what the others say, under a posterior given these sites."""
        old = self.observations
        rows = np.flatnonzero(~old.measured)
        mu, std = given_the_others(posterior, old)
        own = np.where(np.isnan(self.noise), posterior.prior.noise, self.noise)[rows]
        value, noise = censored_site(self.bounds[rows], mu[rows], std[rows] ** 2, own)
        # The natural parameters are mixed, 1 / noise and value / noise.
        weight = (1.0 - damping) / noise
        rest = damping / old.noise[rows]
        total = weight + rest
        return self._with((weight * value + rest * old.observed[rows]) / total, 1.0 / total)

    def _with(self, value: Array, noise: Array) -> Sites:
        rows = np.flatnonzero(~self.observations.measured)
        observed, variances = self.observations.observed.copy(), self.observations.noise.copy()
        observed[rows], variances[rows] = value, noise
        return replace(
            self, observations=replace(self.observations, observed=observed, noise=variances)
        )


def given_censored(
    model: Model,
    domain: Domain,
    observations: Observations,
    previous: Posterior | None = None,
    sites: Sites | None = None,
) -> tuple[Posterior, Sites]:
    """Condition a model on observations some of which are censored.

    In turn, the model is conditioned on the sites, which fits its hyperparameters and its trust in
    each row, and the sites are iterated to a fixed point under these. At that point the slopes of
    the marginal likelihood of the sites are those of the evidence of expectation propagation, eq.
    (5.27) of [Rasmussen2006]_. A censored row that the others contradict is weighed by a defence as
    any row is: by :class:`~stoic.models.LeaveOneOutGP` where they give its bound a probability
    below 2.4 %.

    Parameters
    ----------
    model:
        Any model.
    domain, observations:
        The search space, and the observations with their bounds.
    previous, sites:
        Result for fewer observations of the same run, or for others of the same rows: a warm start.

    Returns
    -------
    posterior, sites:
        The posterior given ``sites.observations``.

    Guarantee
    ---------
    For one censored row under given hyperparameters the mean and the variance of f at it are those
    of the exact posterior, a truncated normal. For several the fixed point is unproved, and usually
    accurate: the likelihoods are log-concave. Sites are shared by competing outlier hypotheses, and
    are those of the likeliest. Beyond the exact model's number of rows they are updated once or
    twice a call. In a model without a cavity, such as a Student-t process, each site is that of the
    posterior given the measured rows alone.
    """
    current = _begun(domain, observations, previous, sites)
    for _ in range(_ROUNDS):
        posterior = model(domain, current.observations, previous)
        if not isinstance(posterior, Exact | MixturePosterior | Arms):
            alone = model(domain, observations.only(observations.measured))
            current = _begun(domain, observations, alone, None)
            return model(domain, current.observations), current
        following, moved = _iterated(posterior, current)
        if moved <= _SETTLED:
            break
        # Values of earlier rows have changed: only a model that revises can go on from here
        current, previous = following, posterior if isinstance(model, Windowed) else None
    else:
        # The sites moved in the last round, too: condition on them
        posterior = model(domain, current.observations, previous)
    return posterior, current


def _begun(
    domain: Domain, observations: Observations, previous: Posterior | None, sites: Sites | None
) -> Sites:
    """Sites to begin with: the known ones; of new bounds, by what is known of f without them."""
    begun = Sites(observations, observations.observed, observations.noise)
    old = None if sites is None else sites.observations
    known = np.zeros(len(observations), dtype=bool)
    if sites is not None and old is not None and old.censored is not None:
        n = len(old)
        known[:n] = old.censored & observations.censored[:n]  # type: ignore[index]
        known[:n] &= sites.bounds == observations.observed[:n]  # a revised bound has a new site
    location, scale = median_and_mad(domain, observations.only(observations.measured))
    rows = np.flatnonzero(~observations.measured)
    mu, v = np.full(len(rows), location), np.full(len(rows), scale**2)
    own = observations.own_noise(0.0)[rows]  # no prior yet: exact if none was reported
    if previous is not None:
        mean, std = previous.predict(observations.x[rows])
        mu, v = mean, std**2
        own = observations.own_noise(previous.prior.noise)[rows]
    value, noise = censored_site(observations.observed[rows], mu, v, np.maximum(own, 1e-300))
    if known.any():
        assert old is not None
        again = known[rows]
        value[again], noise[again] = old.observed[rows[again]], old.noise[rows[again]]
    return begun._with(value, noise)


def _iterated(posterior: Posterior, sites: Sites) -> tuple[Sites, float]:
    """Iterate sites under the hyperparameters and the trust of a posterior given them.

    The number is the largest move of f at a censored row. A posterior that is not exact allows one
    update alone.
    """
    part = posterior.parts[0] if isinstance(posterior, MixturePosterior) else posterior
    first = sites.observations
    rows = ~first.measured
    begun = part.predict(first.x[rows])
    window = isinstance(posterior, WindowPosterior) and len(posterior.rows) < len(first)
    if not isinstance(part, Exact | Arms) or window:
        following = sites.updated(posterior, _DAMPING)
        apart = np.abs(following.observations.observed - first.observed)[rows]
        return following, float((apart / np.sqrt(first.noise[rows])).max())
    before = begun
    for _ in range(_SWEEPS):
        sites = sites.updated(part, _DAMPING)
        given = sites.observations
        targets = part.fitted_defence(given, part.prior)
        if isinstance(part, Arms):
            part = Arms.condition(part.prior, part.fitted_defence, part.domain, given, targets)
        else:
            part = Exact.condition(part.prior, part.fitted_defence, given, targets)
        after = part.predict(given.x[rows])
        if _move(before, after) <= _CONVERGED:
            break
        before = after
    return sites, _move(begun, after)


def _move(before: tuple[Array, Array], after: tuple[Array, Array]) -> float:
    """Largest move of means, in standard deviations, or of the logarithm of these."""
    std = np.maximum(np.minimum(before[1], after[1]), 1e-300)
    largest = np.maximum(before[1], after[1])
    return float(max(np.max(np.abs(after[0] - before[0]) / std), np.max(largest / std) - 1.0))
