"""Log expected improvement over the best trusted posterior mean."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import special

from stoic.confidence.base import Band
from stoic.data import Array, Booleans, Choice
from stoic.domains import Domain, Finite
from stoic.policies.base import Policy, View, choice_of
from stoic.policies.ucb import UpperConfidenceBound, check_retries, given_up
from stoic.posteriors.base import Posterior

_FAR = 50.0  # beyond, a series; within, at most 2500 units of rounding are lost to cancellation
_LIMIT = 1e50  # of |z|, where products with it are numbers and a slope has no meaning
_ROOT_2_PI = float(np.sqrt(2.0 * np.pi))
_LEAST = 1e-10  # prior standard deviations: floor of the posterior standard deviation
_TINY = float(np.finfo(float).tiny ** 0.5)  # the same floor where the prior variance is nearly 0


def log_improvement(z: Array) -> tuple[Array, Array, Array]:
    """log h(z), Phi(z) / h(z) and phi(z) / h(z), where h(z) = phi(z) + z Phi(z); all (m,).

    For z < -1, h(z) = phi(z) (1 - |z| M) with Mills' ratio M = Phi(z) / phi(z), a scaled erfc; far
    below 0 the bracket is a series in 1 / z^2. So neither does h underflow, nor do its two terms
    cancel; [Ament2023]_ has another such form.
    """
    up = z >= -1.0
    if up.all():
        return _middle(z)
    if not up.any():
        return _tail(z)
    value, by_cdf, by_pdf = (np.empty_like(z) for _ in range(3))
    for part, of in ((up, _middle), (~up, _tail)):
        value[part], by_cdf[part], by_pdf[part] = of(z[part])
    return value, by_cdf, by_pdf


def _middle(z: Array) -> tuple[Array, Array, Array]:
    """As ``log_improvement``, from -1 on, where cancellation costs less than a digit."""
    # phi(1e3) is 0 as a float; the square of a huge z would overflow
    cdf, pdf = special.ndtr(z), np.exp(-0.5 * np.minimum(z, 1e3) ** 2) / _ROOT_2_PI
    h = pdf + z * cdf
    return np.log(h), cdf / h, pdf / h


def _tail(z: Array) -> tuple[Array, Array, Array]:
    """As ``log_improvement``, below -1."""
    below = -z
    # erfcx has the factor exp(z^2 / 2): no underflow
    mills = np.sqrt(0.5 * np.pi) * special.erfcx(below / np.sqrt(2.0))
    bracket = 1.0 - below * mills
    if (far := below > _FAR).any():
        q = below[far] ** -2.0
        # 1 - |z| M = q - 3 q^2 + 15 q^3 - ...
        bracket[far] = q * (1.0 - q * (3.0 - q * (15.0 - q * (105.0 - q * 945.0))))
    value = np.log(bracket) - 0.5 * below**2 - np.log(_ROOT_2_PI)
    # Numerators and h divided by phi
    return value, mills / bracket, 1.0 / bracket


@dataclass(frozen=True, eq=False)
class LogExpectedImprovement:
    """Log expected improvement over an incumbent, log E max(f - incumbent, 0).

    It is log s + log h((mean - incumbent) / s), where s is the posterior std times ``factor``.

    With ``noise`` it is the improvement of the posterior mean by one noisy observation, which moves
    the mean by N(0, s^2), s = std^2 / sqrt(std^2 + noise). So it is expected improvement with the
    factor std / sqrt(std^2 + noise) on the deviation; augmented expected improvement [Huang2006]_
    has a factor of the same kind on the improvement.

    Attributes
    ----------
    posterior:
        Posterior over f.
    incumbent:
        The value to improve on, in units of f. For :meth:`height` there may be several, (c,).
    factor:
        s is the posterior standard deviation times this.
    noise:
        Variance of the noise of the next observation; 0 for the improvement by f itself.
    """

    posterior: Posterior
    incumbent: float | Array
    factor: float = 1.0
    noise: float = 0.0

    def height(self, mean: Array, std: Array) -> tuple[Array, Array, Array]:
        """Log expected improvement and its derivatives in mean and std, all (m,).

        Over several incumbents (c,) all are (m, c), for a mean and std of shape (m, 1).
        """
        share = None
        if self.noise:
            spread = np.hypot(std, np.sqrt(self.noise))  # no square under- or overflows
            share = np.divide(std, spread, out=np.ones(std.shape), where=spread > 0.0)
            std = std * share
        least = self._least
        s = self.factor * np.maximum(std, least)
        with np.errstate(over="ignore"):
            z = np.minimum(np.maximum((mean - self.incumbent) / s, -_LIMIT), _LIMIT)
        value, by_cdf, by_pdf = log_improvement(z)
        # Where z is clipped, or s at its floor, it is a constant
        free = np.abs(z) < _LIMIT
        # d/ds (log s + log h(z)) = (1 - z Phi / h) / s = phi / (h s)
        by_mean = np.where(free, by_cdf / s, 0.0)
        by_std = np.where(free & (std > least), by_pdf * (self.factor / s), 0.0)
        if share is not None:
            by_std = by_std * share * (2.0 - share**2)  # d(std share) / dstd
        return np.log(s) + value, by_mean, by_std

    @cached_property
    def _least(self) -> float:
        """Floor of the posterior standard deviation."""
        return max(_LEAST * float(self.posterior.max_variance**0.5), _TINY)

    def __call__(self, x: Array) -> Array:
        return self.height(*self.posterior.predict(x))[0]

    def with_gradient(self, x: Array) -> tuple[Array, Array]:
        mean, std, mean_slope, std_slope = self.posterior.predict_with_gradient(x)
        height, by_mean, by_std = self.height(mean, std)
        return height, by_mean[:, None] * mean_slope + by_std[:, None] * std_slope


def over_the_best(posterior: Posterior, known: Array) -> LogExpectedImprovement:
    """Log expected improvement over the best posterior mean of ``known`` (k, d), with noise.

    Over the prior mean if there are no such points.
    """
    incumbent = float(posterior.predict(known)[0].max()) if len(known) else posterior.prior.mean
    return LogExpectedImprovement(posterior, incumbent, noise=posterior.prior.noise)


@dataclass(frozen=True, slots=True)
class ExpectedImprovement(Policy):
    """Maximise the expected improvement E max(f - incumbent, 0), computed as its logarithm.

    The incumbent is the best posterior mean among the observed inputs with a positive trust, never
    an observed maximum: one lucky or corrupted result would hold the incumbent up for ever, and no
    other point would have a large expected improvement. Pending points count as observed at their
    posterior mean. Before any trusted result, the incumbent is the prior mean. If only a part of
    the domain may be chosen, such as the inputs with a given context, points elsewhere are no
    incumbents; the incumbent is the best posterior mean of that part if no point of it was tried.

    Parameters
    ----------
    widened:
        If true, the standard deviation is multiplied by the width of the band. Otherwise the width
        plays no part, and the search is much greedier than by the upper bound.
    retries:
        Number of times that a place with rejected results is queried again, as in
        :class:`~stoic.policies.ucb.UCB`.

    Notes
    -----
    A batch hallucinates: at pending points the standard deviation shrinks as if they had been
    observed, and the mean is held.

    Guarantee
    ---------
    None. Rates are known without noise, for a given prior and the best observation as the incumbent
    [Bull2011]_; with noise, for a deviation that is multiplied by a factor that grows and the best
    posterior mean of the whole domain as the incumbent [Wang2014]_. ``widened`` is near to the
    latter: its factor is that of the confidence, and its incumbent was tried. Without it, the
    search may converge to a point that is not optimal, and on the Forrester function it does.
    Against outliers it is as good as the posterior mean behind the defence.
    """

    widened: bool = False
    retries: int | None = None
    ordinal = True

    def __post_init__(self) -> None:
        check_retries(self.retries)

    def start(self, domain: Domain) -> None:
        return None

    def choose(self, view: View, state: None, n: int) -> tuple[list[Choice], None]:
        band = view.hallucinated()
        posterior = band.posterior
        trust = posterior.trust(view.observations)
        tried = _Tried(view, posterior, trust > 0.0)
        if self.retries is not None:
            band = band.without_gain(given_up(view, trust, self.retries))

        def pick(band: Band) -> Choice:
            # A width of 0 would divide by 0
            factor = max(band.width, _LEAST) if self.widened else 1.0
            surface = LogExpectedImprovement(
                band.posterior, tried.best_mean(band.posterior), factor
            )
            choice = choice_of(view.maximise(surface, logarithmic=True))
            tried.add(choice)
            return choice

        return view.one_by_one(band, n, pick), None


class _Tried:
    """Incumbent candidates: trusted or pending points of the part that may be chosen."""

    def __init__(self, view: View, posterior: Posterior, trusted: Booleans) -> None:
        domain, observations, pending = view.domain, view.observations, view.pending
        self.domain = domain
        self.otherwise = posterior.prior.mean
        whole = view.among is domain
        tried = np.concatenate([observations.x[trusted], pending])
        inside = slice(None) if whole else view.among.contains(tried)
        if isinstance(domain, Finite):  # row numbers: the lookup of points takes a loop
            assert observations.arms is not None
            self.arms = np.append(observations.arms[trusted], domain.locate(pending))[inside]
        else:
            self.x = tried[inside]
        if not whole and len(tried) and not len(tried[inside]):
            # Width 0: the mean
            peak = view.among.maximise(
                UpperConfidenceBound(Band(posterior, 0.0)), view.rng, observations.x
            )
            self.otherwise = peak.height

    def add(self, choice: Choice) -> None:
        """Add a pending choice."""
        if isinstance(self.domain, Finite):
            self.arms = np.append(self.arms, self.domain.locate(choice.x[None]))
        else:
            self.x = np.concatenate([self.x, choice.x[None]])

    def best_mean(self, posterior: Posterior) -> float:
        """Return the largest posterior mean at the candidates."""
        if isinstance(self.domain, Finite):
            means = posterior.predict(self.domain.points)[0][self.arms]
        else:
            means = posterior.predict(self.x)[0] if len(self.x) else np.empty(0)
        return float(means.max()) if len(means) else self.otherwise
