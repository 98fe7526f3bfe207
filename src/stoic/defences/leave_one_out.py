"""Each result is judged by all the others: a plateau about the leave-one-out mean. Ours.

Notation: given the other rows, each with the row noise in force, f(x_i) ~ N(mu_i, v_i), so that a
result there is expected at mu_i, give or take s_i = sqrt(v_i + sigma_i^2). With e = y_i - mu_i, a
half-width k and a shape c, the row's *excess* is z / c, z = max(|e| - k s_i, 0), and its noise
variance sigma_i^2 + z^2 / c^2, which is sigma_i^2 J_i of a plateau-IMQ weight with shape c sigma_i
[Altamirano2024]_, [Ezzerg2026]_. Values are kept: without the shift of a generalised posterior the
model is an ordinary Gaussian process with a noise per row, whose marginal likelihood is one.

All excesses depend on each other, through mu and v: what is looked for is a fixed point.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from stoic import linalg
from stoic.data import Array, Observations, Targets
from stoic.defences.base import Defence
from stoic.defences.plateau import NEGLIGIBLE, small_sample_factor
from stoic.defences.replicates import confirmed
from stoic.domains import Domain
from stoic.kernels import at_one_place
from stoic.posteriors.base import Stance
from stoic.posteriors.cavity import given_the_others
from stoic.posteriors.exact import Exact
from stoic.posteriors.fitting import Fitting, Given, marginal_likelihood
from stoic.posteriors.prior import Prior
from stoic.posteriors.sampling import sample_hyperparameters
from stoic.posteriors.scales import median_and_mad, median_and_spread_in_space

_SAME = 0.1  # two fixed points of which no row's trust differs by more are one, found twice
_BETTER = 0.1  # nats; less is how exactly a fit ends
_SETTLED = 1e-3  # an iteration stops when no row's trust changes by more


@dataclass(frozen=True, eq=False)
class LeaveOneOut(Defence):
    """A plateau about the mean given all other rows, iterated to a fixed point.

    Settling alternates: excesses for given hyperparameters, by at most ``iterations`` steps of
    simultaneous updates; then hyperparameters for given excesses, by ``fitting``, in units of the
    mean and standard deviation of what is believed; at most ``rounds`` times. Lies that agree
    vouch for each other, so there are many fixed points. These starts are climbed from:

    - *believing*: every finite result is trusted, hyperparameters are fitted to all of them. It
      finds the plain Gaussian process if that leaves nothing outside;
    - *doubting*: excesses about the median in units of a robust spread, under the fitting's typical
      prior, whose lengthscale is long: where a believer explains three lies that agree by a short
      lengthscale, a smooth prior asks the whole neighbourhood;
    - *remembering*: what was settled before, with the new rows judged by the old ones;
    - *reversing*: the best of these the other way round wherever, among results at one place, more
      are distrusted than believed. What is settled once holds out against ever more evidence.

    The fixed point with the highest evidence is taken; :class:`~stoic.models.Explained` keeps the
    others, and that nobody lies, for as long as they are likely. Evidence is the log marginal
    likelihood under its row noise, less a price for each row that lost its say, which plays the
    part of log odds against a lie. Hyperparameters that are fitted to few rows are too sure of
    themselves, and a first glimpse of a summit looks like a lie: so the price is multiplied by
    :func:`~stoic.defences.plateau.small_sample_factor`, 3.8 for 8 results and 1.3 for 30. On its
    own a residual e makes a row noise of e^2 - s^2 likeliest, which an excess with c = 1 tends to
    as e grows. So it is the likelihood that relevance pursuit [Ament2024]_ climbs one row and one
    fit at a time; here all rows move at once.

    Parameters
    ----------
    prior:
        The prior; if ``fitting`` refits, the family that is fitted while settling.
    fitting:
        How hyperparameters are found between two judgements; ``Given()`` keeps those of the prior.
        Its ``scale`` is not used. :class:`~stoic.models.Explained` takes over what it found.
    half_width:
        k > 0, in leave-one-out standard deviations.
    shape:
        c > 0: an excess of z adds the variance z^2 / c^2.
    price:
        Evidence, in nats, that it takes to distrust one row altogether among many; at least 0.
    iterations, rounds:
        Bounds on the steps of an iteration, and on the alternations.
    negligible:
        Rows whose trust falls below this are left out of the solve.
    replicates:
        Whether observations that are :func:`~stoic.defences.replicates.confirmed` at their own
        input are always trusted, even where a smooth function contradicts them.
    extreme:
        Robust spreads from the median beyond which a further start trusts no row, and all others:
        where a huge outlier lies on a summit, the other starts reject the summit with it.

    Guarantee
    ---------
    At a fixed point under its prior: whatever y_i is, row i moves the posterior mean at any x by at
    most (k + sqrt(k^2 + c^2)) / 2 standard deviations of f(x) given the other rows, whose row
    noises are held. For the mean moves by cov(f(x), f(x_i)) e / (v_i + sigma_i^2 + z^2 / c^2), the
    covariance is at most std(x) sqrt(v_i), and the largest value of
    s (k s + z) / (s^2 + z^2 / c^2) over z >= 0 is this number: 2.6 for k = 2.5 and c = 1. It
    vanishes as 1 / |e| beyond; a row of 1e300, infinity or nan is left out.

    While nothing is outside of the plateau of the believing start, and no other fixed point has
    more evidence, the targets are the observations, bit for bit, and the hyperparameters those of a
    plain Gaussian process in units of mean and standard deviation.

    Not proved: that the fixed point is unique (it is not), that the best one is found, that the
    simultaneous updates converge. They may cycle; then the last step is taken, and the bound holds
    for the mean that the step before it had computed. Several rows may move each other's noise, so
    there is no bound for lies together: those that agree where little else was measured are
    believed. So is one of moderate size that nobody can contradict, such as a low result at the
    edge where the maximum is; a search that believes it may never come back. Under hyperparameters
    other than those it settled with the bound is in units of the old standard deviations. Regret:
    nothing is known.
    """

    prior: Prior
    fitting: Fitting | Given = field(default_factory=lambda: Fitting(marginal_likelihood))
    half_width: float = 2.5
    shape: float = 1.0
    price: float = 3.0
    iterations: int = 10
    rounds: int = 5
    negligible: float = NEGLIGIBLE
    replicates: bool = False
    extreme: float = math.inf
    revises = True

    def __post_init__(self) -> None:
        for name, least in (("half_width", 0.0), ("shape", 0.0)):
            value = getattr(self, name)
            if not (value > least and np.isfinite(value)):
                raise ValueError(f"A leave-one-out plateau needs a {name} > 0, got {value!r}.")
        if not (self.price >= 0.0 and np.isfinite(self.price)):
            raise ValueError(f"The price of distrust is a number >= 0, got {self.price!r}.")
        if self.iterations < 1 or self.rounds < 1:
            raise ValueError(
                "Settling takes at least one iteration and one round, got "
                f"iterations={self.iterations!r} and rounds={self.rounds!r}."
            )

    def settle(
        self, domain: Domain, observations: Observations, previous: Stance | None = None
    ) -> Settled:
        finite = np.isfinite(observations.observed)
        trusting = Settled(np.where(finite, 0.0, np.inf), self.negligible)
        search = _Search(self, domain, observations)
        earlier = previous if isinstance(previous, Settled) else None
        believing = search.fit(trusting, None, None if earlier is None else earlier.believing)
        if np.count_nonzero(finite) < 2:  # nobody to ask
            return trusting if believing is None else believing
        found: list[Settled] = []
        for start in (search.remembering(earlier), believing, search.doubting(), search.trimming()):
            found = search.with_climbed(start, found)
        best = search.likeliest(found, believing or trusting)
        found = search.with_climbed(search.reversing(best), found)
        best = search.likeliest(found, best)
        if believing is None:
            return replace(best, explanations=tuple(found))
        if not any(search.same(believing, fixed) for fixed in found):
            found.append(search.weighed(believing))
        return replace(best, believing=believing.posterior, explanations=tuple(found))

    def hyperparameters(
        self,
        domain: Domain,
        observations: Observations,
        posterior: Exact,
        draws: int,
        rng: np.random.Generator,
    ) -> list[Prior]:
        """Draws from the posterior of the hyperparameters under the explanation of ``posterior``.

        Only that one if they are given, or if there are not two results to fit them to.
        """
        settled, fitting = posterior.stance, self.fitting
        assert isinstance(settled, Settled)
        if not isinstance(fitting, Fitting) or np.isfinite(settled.excess).sum() < 2:
            return [posterior.prior]
        judgement = _Search(self, domain, observations).judge(replace(settled, posterior=posterior))
        weighted = replace(fitting, scale=_Weighted(judgement.say(settled.excess)))
        return sample_hyperparameters(
            weighted, domain, observations, settled, posterior.prior, draws, rng
        )

    def __call__(self, observations: Observations, prior: Prior) -> Targets:
        raise TypeError("A leave-one-out plateau must settle on the data before it has targets.")


@dataclass(frozen=True, eq=False)
class Settled(Defence):
    """The observations with a noise of their own for each row.

    Attributes
    ----------
    excess:
        z / c of each row, in units of f, shape (n,): its square is added to the noise.
    negligible:
        As in :class:`LeaveOneOut`.
    posterior:
        Under the hyperparameters it settled with; ``None`` if none could be fitted.
    believing:
        That of the believing start, before any doubt: where the next one is fitted from.
    evidence:
        Log marginal likelihood less the price of distrust, in nats.
    explanations:
        All fixed points that were found, this one among them, and that nobody lies. Each has its
        own posterior; those of one result are none.
    """

    excess: Array
    negligible: float = NEGLIGIBLE
    posterior: Exact | None = None
    believing: Exact | None = None
    evidence: float = -np.inf
    explanations: tuple[Settled, ...] = ()

    def __call__(self, observations: Observations, prior: Prior) -> Targets:
        own = observations.own_noise(prior.noise)
        with np.errstate(over="ignore"):
            noise = own + self.excess**2
        trust = own / noise
        left_out = ~(trust >= self.negligible)
        return Targets(
            np.where(left_out, prior.mean, observations.observed),
            np.where(left_out, np.inf, noise),
            np.where(left_out, 0.0, trust),
        )

    def slopes(self, observations: Observations, prior: Prior) -> tuple[Array, Array]:
        fixed = ~np.isnan(observations.noise) | np.isinf(self(observations, prior).noise)
        return np.zeros(len(observations)), np.where(fixed, 0.0, prior.noise)

    def under(self, prior: Prior, observations: Observations) -> Settled:
        """The same, with the posterior under ``prior``."""
        return replace(self, posterior=self.condition(prior, observations))

    def condition(self, prior: Prior, observations: Observations) -> Exact:
        """The posterior under ``prior``, which remembers none of those before it."""
        bare = Settled(self.excess, self.negligible)
        return Exact.condition(prior, bare, observations, bare(observations, prior))


@dataclass(frozen=True, eq=False, slots=True)
class _Judgement:
    """What the others say about each row: the residual e and the deviation s, both (n,)."""

    residual: Array
    deviation: Array

    def excess(self, half_width: float, shape: float) -> Array:
        """z / c, infinite where nothing finite was observed."""
        with np.errstate(over="ignore", invalid="ignore"):
            beyond = np.maximum(np.abs(self.residual) - half_width * self.deviation, 0.0) / shape
        return np.where(np.isnan(beyond), np.inf, beyond)

    def say(self, excess: Array) -> Array:
        """s^2 / (s^2 + excess^2): how much of its say a row has kept, shape (n,), from 1 to 0.

        Its trust compares the excess with the noise alone. Where little is known around a row, one
        of small trust may still be the best that is known.
        """
        with np.errstate(over="ignore"):
            return np.asarray(1.0 / (1.0 + (excess / self.deviation) ** 2))


class _Search:
    """For fixed points, by the rules of one defence on one set of observations."""

    def __init__(self, rules: LeaveOneOut, domain: Domain, observations: Observations) -> None:
        self.rules, self.domain, self.observations = rules, domain, observations

    def remembering(self, earlier: Settled | None) -> Settled | None:
        """What was settled before; new rows are judged by the old ones alone."""
        if earlier is None or earlier.posterior is None:
            return None
        n, k = len(self.observations), len(earlier.excess)
        excess = np.concatenate([earlier.excess, np.full(n - k, np.inf)])
        known = replace(earlier, excess=excess).under(earlier.posterior.prior, self.observations)
        judgement = self.judge(known)
        judged = np.concatenate(
            [earlier.excess, self._excess(judgement, earlier.posterior.prior)[k:]]
        )
        # The posterior of fewer rows tells the fitting how many have come since.
        return self.fit(replace(known, excess=judged), judgement, earlier.posterior)

    def doubting(self) -> Settled | None:
        """Excesses about the median, and what comes of them under a smooth prior."""
        centre, spread = median_and_spread_in_space(self.domain, self.observations)
        prior = self.rules.prior
        if isinstance(self.rules.fitting, Fitting):  # without data it returns what is typical
            typical = replace(self.rules.fitting, scale=lambda *_: (centre, spread))
            prior = typical(self.domain, self.observations.until(0), Settled(np.empty(0)), prior)
        with np.errstate(over="ignore", invalid="ignore"):
            residual = self.observations.observed - centre
        about = _Judgement(residual, np.full(len(residual), spread))
        excess = self._excess(about, prior)
        if np.count_nonzero(np.isfinite(excess)) < 2:
            return None
        doubtful = Settled(excess, self.rules.negligible).under(prior, self.observations)
        smooth, judgement, _ = self._iterate(doubtful)
        return self.fit(smooth, judgement, smooth.posterior)

    def trimming(self) -> Settled | None:
        """All rows but those of an extreme size; ``None`` if there are none."""
        centre, spread = median_and_spread_in_space(self.domain, self.observations)
        finite = np.isfinite(self.observations.observed)
        with np.errstate(over="ignore", invalid="ignore"):
            apart = np.abs(self.observations.observed - centre)
            extreme = finite & ~(apart <= self.rules.extreme * spread)
        if not extreme.any() or np.count_nonzero(finite & ~extreme) < 2:
            return None
        excess = np.where(extreme, apart, np.where(finite, 0.0, np.inf))
        return self.fit(Settled(excess, self.rules.negligible), None, None)

    def reversing(self, settled: Settled) -> Settled | None:
        """The other way round where more is distrusted than believed; ``None`` if nowhere."""
        if settled.posterior is None:
            return None
        prior = settled.posterior.prior
        believed = settled(self.observations, prior).trust >= 0.5
        refused = ~believed & np.isfinite(self.observations.observed)
        if not refused.any():
            return None
        together = at_one_place(prior.kernel, self.observations.x, self.observations.x)
        against, for_it = together[:, believed].sum(axis=1), together[:, refused].sum(axis=1)
        outvoting = refused & (for_it > against) & (against > 0)
        if not outvoting.any():
            return None
        excess = np.where(outvoting, 0.0, settled.excess)
        excess[believed & together[:, outvoting].any(axis=1)] = np.inf
        return self.fit(replace(settled, excess=excess), None, settled.posterior)

    @staticmethod
    def likeliest(found: list[Settled], otherwise: Settled) -> Settled:
        """The fixed point with the highest evidence."""
        return max(found, key=lambda settled: settled.evidence, default=otherwise)

    def with_climbed(self, start: Settled | None, found: list[Settled]) -> list[Settled]:
        """``found`` and the fixed point that a start leads to, if there is one and it is news."""
        climbed = None if start is None else self.climb(start, found)
        if climbed is None:
            return found
        # Of those that trust alike, the one that is fitted better.
        return [other for other in found if not self.same(climbed, other)] + [climbed]

    def climb(self, settled: Settled, found: list[Settled]) -> Settled | None:
        """The fixed point that a start leads to; ``None`` if none better than those ``found``.

        Two that trust alike may still differ in their hyperparameters, whose fit has local maxima.
        """

        def known() -> bool:
            alike = [other.evidence for other in found if self.same(settled, other)]
            return bool(alike) and self._evidence(settled, judgement) <= max(alike) + _BETTER

        settled, judgement, moved = self._iterate(settled)
        for _ in range(self.rules.rounds - 1):
            if known():
                return None
            if not moved or not self.rules.fitting.refits:
                break
            refitted = self.fit(settled, judgement, settled.posterior)
            if refitted is None:
                return None
            settled, judgement, moved = self._iterate(refitted)
        if known():
            return None
        return replace(settled, evidence=self._evidence(settled, judgement))

    def weighed(self, settled: Settled) -> Settled:
        """The same, with its evidence."""
        return replace(settled, evidence=self._evidence(settled, self.judge(settled)))

    def same(self, one: Settled, other: Settled) -> bool:
        """Whether both trust all rows alike."""
        return self._apart(one, other) < _SAME

    def fit(
        self, settled: Settled, judgement: _Judgement | None, previous: Exact | None
    ) -> Settled | None:
        """The same excesses under the hyperparameters that are fitted to them.

        ``None`` if there are none, which takes results of 1e300 that are believed.
        """
        fitting = self.rules.fitting
        if isinstance(fitting, Fitting):
            say = np.isfinite(settled.excess).astype(float)
            if judgement is not None:
                say = judgement.say(settled.excess)
            fitting = replace(fitting, scale=_Weighted(say))
        try:
            prior = fitting(self.domain, self.observations, settled, self.rules.prior, previous)
            return settled.under(prior, self.observations)
        except linalg.NotPositiveDefiniteError:
            return None

    def _iterate(self, settled: Settled) -> tuple[Settled, _Judgement, bool]:
        """All rows are judged and weighed again until no trust changes, and whether any did."""
        assert settled.posterior is not None
        prior, moved = settled.posterior.prior, False
        for _ in range(self.rules.iterations):
            judgement = self.judge(settled)
            excess = self._excess(judgement, prior)
            following = replace(settled, excess=excess)
            step = self._apart(settled, following)
            if step <= _SETTLED:
                break
            settled, moved = following.under(prior, self.observations), True
        return settled, judgement, moved

    def _excess(self, judgement: _Judgement, prior: Prior) -> Array:
        """The excess of each row, none where others at the same input confirm it."""
        excess = judgement.excess(self.rules.half_width, self.rules.shape)
        if self.rules.replicates:
            noise = self.observations.own_noise(prior.noise)
            rows = confirmed(self.domain, self.observations, noise, self.rules.half_width)
            excess[rows] = 0.0
        return excess

    def judge(self, settled: Settled) -> _Judgement:
        posterior = settled.posterior
        assert posterior is not None
        mean, std = given_the_others(posterior, self.observations)
        own = self.observations.own_noise(posterior.prior.noise)
        with np.errstate(over="ignore", invalid="ignore"):
            return _Judgement(self.observations.observed - mean, np.hypot(std, np.sqrt(own)))

    def _apart(self, one: Settled, other: Settled) -> float:
        """The largest difference of a row's trust, each under its own prior or the one's."""
        assert one.posterior is not None
        other_prior = (other.posterior or one.posterior).prior
        mine = one(self.observations, one.posterior.prior).trust
        return float(np.abs(mine - other(self.observations, other_prior).trust).max())

    def _evidence(self, settled: Settled, judgement: _Judgement) -> float:
        """Log marginal likelihood of all finite rows, those left out included, less the price."""
        posterior = settled.posterior
        assert posterior is not None
        with np.errstate(over="ignore"):
            solved = -0.5 * np.dot(posterior.residual, posterior.residual)
        solved -= np.log(np.diagonal(posterior.L)).sum()
        noise = settled(self.observations, posterior.prior).noise
        alone = np.isinf(noise) & np.isfinite(self.observations.observed)
        # Of a row on its own: N(e; 0, s^2 + excess^2), whose square may overflow.
        spread = np.hypot(judgement.deviation[alone], settled.excess[alone])
        ratio = np.minimum(np.abs(judgement.residual[alone]) / spread, 1e100)
        solved -= np.sum(np.log(spread) + 0.5 * ratio**2)
        price = self.rules.price * small_sample_factor(self.observations)
        return float(solved - price * np.sum(1.0 - judgement.say(settled.excess)))


@dataclass(frozen=True, eq=False)
class _Weighted:
    """Mean and standard deviation of the results; each has the say that it has kept."""

    say: Array

    def __call__(self, domain: Domain, observations: Observations) -> tuple[float, float]:
        kept = (self.say > NEGLIGIBLE) & np.isfinite(observations.observed)
        y, say = observations.observed[kept], self.say[kept]
        if not len(y):
            return median_and_mad(domain, observations)
        say = say / say.sum()
        with np.errstate(over="ignore", invalid="ignore"):
            mean = float(np.dot(say, y))
            sd = float(np.sqrt(np.dot(say, (y - mean) ** 2)))
        if not (np.isfinite(mean) and np.isfinite(sd)):
            return median_and_mad(domain, observations)
        return mean, sd if sd > 0.0 else 1.0
