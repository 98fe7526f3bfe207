"""Local search in a trust region, by a model of its own [Eriksson2019]_, and along lines."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np

from stoic.data import DISTRUSTED, Array, Booleans, Integers, Observations
from stoic.domains import SAME, Box, Peak
from stoic.models.constraints import Constraints
from stoic.policies.base import View, apart
from stoic.policies.improvement import over_the_best
from stoic.policies.risk import Risk, peak_at
from stoic.posteriors.base import Posterior, Windowed

# Lengths of a side in widths of the domain, of [Eriksson2019]_ but for the first one. With 0.8 at
# the next point of a sequence four of four searches returned to one summit of the Hartmann function
# in six dimensions, with 0.4 the second one found another.
_FIRST, _LEAST, _MOST = 0.4, 2.0**-7, 1.6
_SUCCESSES = 3  # improvements in a row, after which the sides are doubled
# Results in a row without one, after which the sides are halved. After 1,000 results the loss on a
# rover in 60 dimensions is 0.057, with 10 it is 0.097 and with 40 0.059; on Ackley's function in 10
# dimensions, with wrong results, 0.0010, with 10 0.0017 and with 40 0.0014. After 450 results 10 is
# often ahead.
_FAILURES = 20
# An improvement, of the best result's distance from the median of the region, and from that of the
# first results. With the latter alone, 1e-3, the search of Levy's function in 20 dimensions ends at
# twice the loss.
_IMPROVED, _AT_LEAST = 1e-3, 1e-6
_LATEST = 512  # results among which those of a region are looked for, for their median
# Results in a row that are not near, after which a search ends: more than workers may have begun
# before it. Nothing of a region may be left to choose, or all there fails.
_IDLE = 100
# Results in a row without an improvement, after which a search along a line ends [Kirschner2019]_.
# After 2,000 results the loss on Levy's function in 20 dimensions is 2e-5; without such searches it
# stays at the local maximum of 700 results, 0.0026, for 5,000.
_ALONG = 10
_BLOCK = 64  # results whose distances from a centre are computed at once
_POINTS = 16  # of the sequence, of which one is apart from the best; without one it is the last
_ROWS = 128  # of the local model, at most
# For each parameter, of the nearest results if fewer are in twice the region. On a rover in 60
# dimensions the loss after 550 results is 0.07, 0.16 without them, and 0.11 with 128 everywhere.
_FEW = 2
_FEWEST = 2  # results, before which a search samples its region
_LIKELY = 0.5  # probability of a result where it does
_SAMPLE = 8  # points of a sample


class _Searches:
    """Local searches of a history, to which results are added one by one.

    Attributes
    ----------
    centre, side:
        Of the region.
    best:
        The best result of the search.
    ended, places:
        Numbers of searches that have ended, and of points of the sequence where one was to begin.
    rival:
        The best input before a search elsewhere, which knows later results that are nearer to its
        centre alone; None if the search is about the best of all.
    lines:
        Coordinates of searches along lines through the best, the one in force first; none if it is
        in a cube.
    lined:
        The best result when searches along lines began.
    start:
        First result that a search elsewhere may know.
    since:
        First result after the last change of the region.
    idle:
        Number of the latest results that are not near.
    """

    def __init__(self, domain: Box, x: Array, values: Array, exact: int) -> None:
        self.domain, self.values = domain, values
        self._values: list[float] = values.tolist()  # quicker, one by one
        self.u = (x - domain.lower) / domain.widths
        self.ended, self.places, self.start, self.side = 0, 0, 0, _FIRST
        self.rival: Array | None = None
        self.lines: list[int] = []
        self.lined = -np.inf
        discrete = {int(column) for lattice in domain.lattices for column in lattice.columns}
        self._continuous = [column for column in range(domain.dim) if column not in discrete]
        self._first = 0
        self._distances: list[float] = []  # from the centre, of the results from the first one on
        self.successes = self.failures = self.since = self.idle = 0
        self.enough = 0.0
        self.best, centre = self._best_of(exact)
        self._move(centre)
        self.negligible = _AT_LEAST * self._above_median(values[:exact])
        self._watch(exact)

    def rows(self, n: int, first: int = 0) -> Integers:
        """Return those of the results from ``first`` to ``n`` that the search knows."""
        rows = np.arange(max(self.start, first), n)
        if self.rival is None:
            return rows
        here, there = (
            np.linalg.norm(self.u[rows] - point, axis=1) for point in (self.centre, self.rival)
        )
        nearer: Booleans = here < there
        return rows[nearer]

    def add(self, i: int) -> None:
        """Count result number i, and change the region by it."""
        value = self._values[i]
        if math.isnan(value) or self._away(i) > self.side:
            self.idle += 1
            if self.idle == _IDLE:
                self._begin(i + 1)
            return
        self.idle = 0
        if value > self.best + self.enough:
            self.successes, self.failures = self.successes + 1, 0
        else:
            self.successes, self.failures = 0, self.failures + 1
        if value > self.best:
            self.best = value
            self._move(self.u[i])
        if self._back():
            self._begin(i + 1)
            return
        if self.lines:
            if self.failures == _ALONG:
                self._begin(i + 1)
            return
        if self.successes < _SUCCESSES and self.failures < _FAILURES:
            return
        most = _MOST if self.rival is None else _FIRST
        self.side = min(2.0 * self.side, most) if self.successes else 0.5 * self.side
        if self.side < _LEAST:
            self._begin(i + 1)
        else:
            self._watch(i + 1)

    def away(self, rows: Integers | slice) -> Array:
        """Return the largest distance of a coordinate from the centre, or from the line."""
        distances = np.abs(self.u[rows] - self.centre)
        distances[:, self.lines[:1]] = 0.0
        return np.asarray(distances.max(axis=1, initial=0.0))

    def _away(self, i: int) -> float:
        """Return that of result i."""
        if not 0 <= i - self._first < len(self._distances):
            self._first, self._distances = i, self.away(slice(i, i + _BLOCK)).tolist()
        return self._distances[i - self._first]

    def _move(self, centre: Array) -> None:
        self.centre, self._first, self._distances = centre, 0, []

    def _back(self) -> bool:
        """Return True if a search elsewhere has the best before it in its region."""
        if self.rival is None:
            return False
        return bool(np.abs(self.centre - self.rival).max() <= 0.5 * self.side)

    def _begin(self, n: int) -> None:
        """Begin another search after ``n`` results: at the best of them, or elsewhere."""
        about = self.rival is None and not self.lines
        self.ended, self.idle = self.ended + 1, 0
        self.best, centre = self._best_of(n)
        improved = self.best > self.lined + self.enough
        self.lines = self.lines[1:]
        if about and improved:
            self.lined, self.lines = self.best, self._continuous
        self.side = _LEAST if self.lines else _FIRST
        self._move(centre)
        self.rival, self.start = None, 0
        if not self.lines and (about or not improved):
            self.rival, self.start, self.best = self.centre, n, -np.inf
            for _ in range(_POINTS):
                self.places += 1
                point = self.domain.spread(self.places, np.random.default_rng(0))[-1]
                self._move((point - self.domain.lower) / self.domain.widths)
                if not self._back():
                    break
        self._watch(n)

    def _watch(self, n: int) -> None:
        """Count from here, and say how much an improvement is."""
        self.successes, self.failures, self.since = 0, 0, n
        rows = self.rows(n, n - _LATEST)
        near = self.away(rows) <= self.side
        self.enough = max(_IMPROVED * self._above_median(self.values[rows[near]]), self.negligible)

    def _best_of(self, n: int) -> tuple[float, Array]:
        row = int(np.argmax(np.where(np.isnan(self.values[:n]), -np.inf, self.values[:n])))
        return float(self.values[row]), self.u[row]

    def _above_median(self, values: Array) -> float:
        """Distance of the best result from the median of others."""
        known = values[np.isfinite(values)]
        return self.best - float(np.median(known)) if len(known) else 0.0


class Region(NamedTuple):
    """Trust region: a box about the best result of a local search, or where that begins.

    Attributes
    ----------
    centre:
        In units of the domain's widths, from its lower corner, shape (d,).
    side:
        Length of the sides, in widths.
    rows:
        The results that its model is given, increasing.
    searches:
        Number of searches that have ended.
    along:
        Coordinate of which the region has the whole range; None of a cube.
    """

    centre: Array
    side: float
    rows: Integers
    searches: int
    along: int | None = None

    @classmethod
    def after(cls, domain: Box, x: Array, values: Array, exact: int) -> Self:
        """Replay the local searches of a history, so that a region depends on its arguments alone.

        A search counts the results in twice its region, whatever chose them. The first one begins
        at the best of the first ``exact`` results, and knows all results. Where the sides have
        become too short, or a hundred results in a row were not near, the next one begins. After
        one about the best it is along each continuous coordinate through the best, one after the
        other: of its range in all others it has the shortest sides, and it ends after ten results
        without an improvement. After these, if they have improved on the best, it is about the
        best again, and else elsewhere, at the next point of a Sobol sequence; so it is if there
        were lines through this best before. One elsewhere knows later results alone, and of these
        those that are nearer to its centre than to the best before it; its sides do not become
        longer than at first, and it ends where that best is in its region. After it the next one is
        about the best if that is a better one, and else elsewhere.

        Values of early results that change, because they are not trusted any more or a constraint
        is known better, may change all searches since.

        Parameters
        ----------
        domain:
            The domain.
        x, values:
            Inputs (n, d) and results (n,): -inf of those that cannot be the best, nan of those of
            which nothing is known.
        exact:
            Number of results before the first search; one of them is finite.
        """
        n, searches = len(x), _Searches(domain, x, values, exact)
        for i in range(exact, n):
            searches.add(i)
        rows, centre = searches.rows(n), searches.centre
        away = searches.away(rows)
        near = away <= searches.side
        # First those of this region, or it would choose again what its model does not know
        nearest = np.lexsort([away, ~near | (rows < searches.since)])
        used = min(max(np.count_nonzero(near), _FEW * domain.dim), _ROWS)
        rows, along = np.sort(rows[nearest[:used]]), next(iter(searches.lines), None)
        return cls(centre, searches.side, rows, searches.ended, along)

    def same(self, other: Region) -> bool:
        """Return True if another region is the same part, with the same results."""
        mine, its = (self.side, self.along), (other.side, other.along)
        there = np.array_equal(self.centre, other.centre)
        return mine == its and there and np.array_equal(self.rows, other.rows)

    def box(self, domain: Box) -> Box:
        """Return the part of a domain that it is."""
        centre = domain.lower + domain.widths * self.centre
        half = 0.5 * self.side * domain.widths
        if self.along is not None:
            half[self.along] = domain.widths[self.along]
        return domain.around(centre, half)


class LocalSearch(NamedTuple):
    """Expected improvement in a trust region, by the model fitted to the results near to it.

    A model of all results takes what varies faster than they are dense for noise, and its window
    cannot hold all that matters near the best. Every other choice is local where there is a window.

    Attributes
    ----------
    part:
        The region.
    taken:
        Inputs that are not to be chosen again: of all results, pending ones, and failures.
    near:
        Inputs of the results of the model, shape (n, d).
    posterior:
        Posterior given these alone, failures and pending points; None before there are a few.
    known:
        Their trusted inputs, and pending points, where all constraints hold, shape (k, d).
    """

    part: Box
    taken: Array
    near: Array
    posterior: Posterior | None
    known: Array

    @staticmethod
    def serves(view: View) -> bool:
        """Return True if there is a window, and all of a box may be chosen."""
        domain = view.domain
        windowed = view.surrogate.exact is not None
        return windowed and isinstance(domain, Box) and view.among is domain

    @classmethod
    def of(cls, view: View, constraints: Constraints | None) -> Self | None:
        """Fit the model to the region of a view that it serves; None if nothing is to be chosen."""
        if (found := _settled(view)) is None:
            return None
        region, posterior = found
        assert isinstance(view.domain, Box)
        observations = view.surrogate.modelled()
        part, near = region.box(view.domain), observations.only(region.rows)
        taken = np.concatenate([observations.x, view.failures.x])
        search = cls(part, taken, near.x, None, near.x[:0])
        if posterior is None:
            return search.with_pending(view.pending, constraints)
        known = near.x[(posterior.trust(near) >= DISTRUSTED) & near.measured]
        if constraints is not None:
            known = known[constraints.hold(known)]
        # What failed is not expected to improve, either
        failed = np.concatenate([near.x[~np.isfinite(near.observed)], view.failures.x])
        if len(failed := failed[part.contains(failed)]):
            posterior = posterior.fantasise(failed, None)
        search = search._replace(posterior=posterior, known=known)
        return search.with_pending(view.pending, constraints)

    def with_pending(self, pending: Array, constraints: Constraints | None) -> Self:
        """Count points (k, d) without a result as observed at their posterior mean."""
        if not len(pending):
            return self
        search = self._replace(taken=np.concatenate([self.taken, pending]))
        if self.posterior is None:
            return search
        inside = pending[self.part.contains(pending)]
        if constraints is not None:
            inside = inside[constraints.hold(inside)]
        known = np.concatenate([self.known, inside])
        return search._replace(known=known, posterior=self.posterior.fantasise(pending, None))

    def peak(self, view: View, risk: Risk) -> Peak | None:
        """Choose a point of the region; None if all that are found were chosen, or may fail.

        If the best one was chosen before, it is any other one, so that the search goes on.
        """
        if self.posterior is not None:
            inside = self.near[self.part.contains(self.near)]
            nothing = np.full(len(inside), np.nan)
            around = Observations(inside, nothing, nothing)
            surface = None
            if risk.constraints is None or len(self.known):
                surface = over_the_best(self.posterior, self.known)
            view = view._replace(among=self.part, observations=around)
            peak = peak_at(view, surface, risk, self.posterior.max_variance**0.5)
            if self._new(peak.x, view):
                return peak
        points = self.part.sample(_SAMPLE, view.rng)
        likely = np.ones(len(points), dtype=bool)
        if risk.chance is not None:
            likely &= risk.chance(points) >= _LIKELY
        if risk.constraints is not None:
            likely &= risk.constraints.hold(points)
        for x in points[likely]:
            if self._new(x, view):
                return Peak(x, None, -np.inf)
        return None

    def _new(self, x: Array, view: View) -> bool:
        return bool((apart(self.taken, x, view.domain.widths) > SAME).all())


def _settled(view: View) -> tuple[Region, Posterior | None] | None:
    """Return the region of a view, by what its own model trusts, and that model.

    None if nothing is to be chosen; without a posterior there are too few results near it.
    """
    domain, exact = view.domain, view.surrogate.exact
    assert isinstance(domain, Box)
    assert exact is not None
    observations = view.surrogate.modelled()
    finite = np.isfinite(observations.observed)
    values = np.where(finite & observations.measured, observations.observed, -np.inf)
    if (alone := view.constraints()) is not None:  # whatever is pending
        values[~alone.hold(observations.x)] = -np.inf
    trust = view.surrogate.posterior().trust(observations)
    known = np.where(finite & (trust < DISTRUSTED), np.nan, values)
    if not np.isfinite(known).any():
        return None
    exact = max(exact, int(np.argmax(np.isfinite(known))) + 1)
    region = Region.after(domain, observations.x, known, exact)
    if _single(region.box(domain)):
        return None
    posterior = _fitted(view, region)
    if posterior is None:
        return region, None
    # What varies faster than the model of all results can follow is an outlier to it
    rows = region.rows
    regained = (posterior.trust(observations.only(rows)) >= DISTRUSTED) & np.isnan(known[rows])
    if regained.any():
        known[rows[regained]] = values[rows[regained]]
        before, region = region, Region.after(domain, observations.x, known, exact)
        if not before.same(region):
            posterior = _fitted(view, region)
    return region, posterior


def _fitted(view: View, region: Region) -> Posterior | None:
    """Fit the model to the results near a region; None if they are too few."""
    observations, model = view.surrogate.modelled(), view.surrogate.model
    near = observations.only(region.rows)
    if np.count_nonzero(np.isfinite(near.observed)) < _FEWEST:
        return None
    assert isinstance(view.domain, Box)
    assert isinstance(model, Windowed)
    return model.with_step_of(observations)(region.box(view.domain), near, None)


def _single(part: Box) -> bool:
    """Return True if a part has one point only, all of it on lattices."""
    fixed = np.zeros(part.dim, dtype=bool)
    for lattice in part.lattices:
        fixed[lattice.columns] = len(lattice.values) == 1
    return bool(fixed.all())
