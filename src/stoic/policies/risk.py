"""Acquisition under unknown constraints: expected gain less the cost of a failure. Ours."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import betaln, expit

from stoic.data import Array, Booleans
from stoic.domains import Acquisition, Domain, Peak
from stoic.models.constraints import Constraints
from stoic.models.feasibility import Feasibility
from stoic.policies.base import LOG_TOLERANCE, View

# Prior log odds that failures without a kind are confined to a region: in doubt they are not, since
# a region that is not there would hide a part of the domain.
_PRIOR = -math.log(3.0)
# Cost of a failure, for each before it, in prior standard deviations. If half of the domain always
# crashes, 7 to 13 of 50 trials are lost without a cost, and more than five in 5 of 40 studies with
# 0.05 and in 1 with 0.1. With more it is as few, but an optimum near the border of the region is
# then approached in ever smaller steps: in one study of ten it is .0006 away with 0.1, .008 with
# 0.2, and on the border itself 1e-3 with 3 and 3e-3 with 20.
_COST = 0.1
# Failures in a row that may be an outage, its prior log odds, and how often a state stays by its
# prior, Beta(1, 9). Of six searches whose first 15 trials fail, 20 more trials come to .12 to .0001
# of a quadratic without outages and to 1.4e-4 or better with them. Where a tenth of two to six
# dimensions works it makes no difference.
_OUTAGE, _OUTAGES, _STAYS = 10, -3.0, 9.0
# Log odds of outages where the first trial failed: what is new often does not work yet.
# Of 40 searches of 30 trials in two categories and a number whose first five (two) fail, the mean
# of what is found is .72 (.75), with -2 it is .88, and without outages .92 (.90), where .72 is the
# optimum. Where a tenth to a half of two and four dimensions works it makes no difference.
_AT_FIRST = 0.0
_LEAST = 1e-6  # probability of a result
NOTHING = 1e-100  # utility, in prior standard deviations


class Outages(NamedTuple):
    """Failures in time: what worked goes on to work, and what failed to fail, until it changes.

    Attributes
    ----------
    evidence:
        Log probability of the order of results and failures, less that under one rate.
    prior:
        Log odds of outages before that.
    now:
        P(result) of the next trial.
    """

    evidence: float
    prior: float
    now: float

    @staticmethod
    def of(worked: Booleans) -> Outages | None:
        """Look at trials in their order (n,).

        None unless ten in a row failed, or the first one: other outages do not spoil a search.
        """
        changes = np.flatnonzero(worked[1:] != worked[:-1]) + 1
        runs = np.diff([0, *changes, len(worked)])
        if worked[0] and not (runs[1::2] >= _OUTAGE).any():
            return None
        after = worked[:-1]
        left = worked[1:] != after
        good, n = np.count_nonzero(worked), len(worked)
        rates = {True: (good + 1.0) / (n + 2.0), False: (n - good + 1.0) / (n + 2.0)}
        log, leave = math.log(rates[bool(worked[0])]), 0.0
        for state in (True, False):
            leaves, stays = np.count_nonzero(left[after == state]), np.count_nonzero(after == state)
            stays -= leaves
            log += float(betaln(1.0 + leaves, _STAYS + stays) - betaln(1.0, _STAYS))
            if state == worked[-1]:
                leave = (1.0 + leaves) / (1.0 + _STAYS + leaves + stays)
        flat = good * math.log(rates[True]) + (n - good) * math.log(rates[False])
        prior = _OUTAGES if worked[0] else _AT_FIRST
        return Outages(log - flat, prior, 1.0 - leave if worked[-1] else leave)


class Chance(NamedTuple):
    """Probability of a result at x, relative to its largest value at an observed input.

    Failures without a kind are confined to a region, which a classifier learns, or they happen
    everywhere at one rate: P is w P(result | region) + (1 - w) P(result | rate), where w is the
    posterior probability of the region. If the rate is the same everywhere, P is 1. Where many
    have failed in a row, or the first trial, they may also have been outages, which have their own
    rate now.

    Attributes
    ----------
    region:
        P(result | region).
    otherwise:
        P(result | rate), or the classifier of the inputs reported infeasible alone.
    weight:
        w.
    most:
        The largest P at an observed input.
    failures:
        Number of failures.
    """

    region: Feasibility
    otherwise: Feasibility | float
    weight: float
    most: float
    failures: int

    @classmethod
    def of(cls, view: View) -> Self | None:
        """Estimate it from the failures of a view; ``None`` if there are none."""
        observations, known = view.observations, view.failures.of_settings
        finite = np.isfinite(observations.observed)
        constraints = view.constraints()
        if constraints is not None and len(constraints.unknown):  # a constraint failed there
            finite &= (cdist(observations.x, constraints.unknown) > 0.0).all(axis=1)
        reported = view.feasibility()
        if not finite.all() and finite.any():
            chance = cls.learned(view.domain, observations.x, finite, known, reported)
        elif reported is not None:
            chance = cls(reported, 1.0, 1.0, 1.0, len(known) + int((~finite).sum()))
        else:
            return None
        most = float(chance(observations.x[finite]).max(initial=_LEAST))  # relative to 1 as yet
        return chance._replace(most=most)

    @classmethod
    def learned(
        cls,
        domain: Domain,
        x: Array,
        worked: Booleans,
        known: Array,
        reported: Feasibility | None,
    ) -> Self:
        """Estimate it from all trials ``x`` (n, d), in their order, relative to 1.

        Besides those without a kind, settings are ``known`` (k, d) to fail, of which ``reported``
        is the classifier.
        """
        failed = np.concatenate([known, x[~worked]])
        region = Feasibility.learned(domain, x[worked], failed)
        log_odds, rate = region.evidence + _PRIOR, region.share
        if (outages := Outages.of(worked)) is not None:
            # Of many labels the classifier has seen a part
            log_odds += ((len(worked) + len(known)) / len(region.x) - 1.0) * region.evidence
            # Against the one rate or the outages, whose odds to each other are these
            odds = outages.evidence + outages.prior
            log_odds -= float(np.logaddexp(0.0, odds))
            rate += float(expit(odds)) * (outages.now - rate)
        return cls(region, reported or rate, float(expit(log_odds)), 1.0, len(failed))

    @property
    def share(self) -> float:
        """P far from all observed inputs, and of the region at most."""
        share, other = self.region.share, self.otherwise
        rate = other.share if isinstance(other, Feasibility) else other
        return min(share, self.weight * share + (1.0 - self.weight) * rate)

    def __call__(self, x: Array) -> Array:
        other = self.otherwise(x) if isinstance(self.otherwise, Feasibility) else self.otherwise
        p: Array = (self.weight * self.region(x) + (1.0 - self.weight) * other) / self.most
        return np.clip(p, _LEAST, 1.0)

    def with_gradient(self, x: Array) -> tuple[Array, Array]:
        p, slope = self.region.with_gradient(x)
        p, slope = self.weight * p, self.weight * slope
        if isinstance(self.otherwise, Feasibility):
            other, other_slope = self.otherwise.with_gradient(x)
            p, slope = p + (1.0 - self.weight) * other, slope + (1.0 - self.weight) * other_slope
        else:
            p = p + (1.0 - self.weight) * self.otherwise
        p = p / self.most
        # A clipped P is a constant
        inside = (p > _LEAST) & (p < 1.0)
        return np.clip(p, _LEAST, 1.0), np.where(inside[:, None], slope / self.most, 0.0)


class Risky(NamedTuple):
    """Expected utility of a trial that may fail, P gain - (1 - P) cost, on a logarithmic scale.

    That is ln u above e, and 2 ln e - ln(2 e - u) below, where u is the utility and e is tiny: it
    orders points as u does, and both gains and losses may differ by any factor.

    Attributes
    ----------
    surface:
        The logarithm of the gain where there is a result.
    chance:
        P.
    cost:
        Cost of a failure, in units of the gain.
    least:
        e, in the same units.
    """

    surface: Acquisition
    chance: Chance
    cost: float
    least: float

    def __call__(self, x: Array) -> Array:
        return self._scaled(self.surface(x), self.chance(x))[0]

    def with_gradient(self, x: Array) -> tuple[Array, Array]:
        height, slope = self.surface.with_gradient(x)
        p, p_slope = self.chance.with_gradient(x)
        value, by_height, by_p = self._scaled(height, p)
        return value, by_height[:, None] * slope + by_p[:, None] * p_slope

    def _scaled(self, height: Array, p: Array) -> tuple[Array, Array, Array]:
        """Compute the scaled utility and its derivatives in the log gain and in P, all (m,)."""
        gain = np.exp(height)
        utility = p * gain - (1.0 - p) * self.cost
        above = utility >= self.least
        distance = np.where(above, utility, 2.0 * self.least - utility)
        log = np.log(distance)
        value = np.where(above, log, 2.0 * math.log(self.least) - log)
        # dvalue / du = 1 / distance on both branches
        return value, p * gain / distance, (gain + self.cost) / distance


class Constrained(NamedTuple):
    """Log gain weighted by the probability that all constraints hold: log (P gain).

    Attributes
    ----------
    surface:
        The logarithm of the gain; without one it is 1 everywhere, and P alone counts.
    constraints:
        P.
    unit:
        Unit of the gain.
    """

    surface: Acquisition | None
    constraints: Constraints
    unit: float = 1.0

    def __call__(self, x: Array) -> Array:
        log = self.constraints.log(x)
        return log + (math.log(self.unit) if self.surface is None else self.surface(x))

    def with_gradient(self, x: Array) -> tuple[Array, Array]:
        log, slope = self.constraints.log_with_gradient(x)
        if self.surface is None:
            return log + math.log(self.unit), slope
        height, by_x = self.surface.with_gradient(x)
        return height + log, by_x + slope


def at_risk(surface: Acquisition, chance: Chance | None, unit: float) -> Acquisition:
    """Weigh ``surface``, a log gain in units of f, by the risk; ``unit`` is the prior std of f."""
    if chance is None:
        return surface
    # Only failures of a region can be avoided: the share w of those so far, and of those to come.
    avoidable = chance.failures * chance.weight**2
    return Risky(surface, chance, _COST * avoidable * unit, NOTHING * unit)


class Risk(NamedTuple):
    """Probabilities of a result, and that all constraints hold; None where they are certain."""

    chance: Chance | None
    constraints: Constraints | None


def peak_at(view: View, surface: Acquisition | None, risk: Risk, unit: float) -> Peak:
    """Maximise a log acquisition ``surface`` at a risk; without one, the probability alone."""
    if risk.constraints is not None:
        # Before the risk: a gain where constraints fail is not worth a failure
        surface = Constrained(surface, risk.constraints, unit if 0.0 < unit < math.inf else 1.0)
    assert surface is not None
    if risk.chance is not None:
        surface = at_risk(surface, risk.chance, unit)
    return view.among.maximise(surface, view.rng, view.observations.x, LOG_TOLERANCE)
