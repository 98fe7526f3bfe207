"""Noise models: the distribution of an uncorrupted observation given f(x).

``moment(a, bound)`` of a noise is v in the assumption of [Chowdhury2019]_: E|y|^(1+a) <= v wherever
|f(x)| <= bound. A learner has its own assumption about v.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.stats import levy_stable

from stoic.data import Array


class Noise(Protocol):
    """Distribution of the noise, drawn before the rounds: every method has the same draws."""

    def draw(self, rng: np.random.Generator, rounds: int) -> Array:
        """One independent draw for each round, shape (rounds,).

        It may not depend on the queries: round t has the same draw for every method.
        """

    def apply(self, value: float, draw: float, arm: int | None = None) -> float:
        """Observe f(x) = ``value`` in a round with this draw.

        ``arm`` is the row of x on a finite domain, None elsewhere: a reward may come from records
        of that row.
        """

    def moment(self, a: float, bound: float) -> float:
        """v with E|y|^(1+a) <= v wherever |f(x)| <= ``bound``; infinite if there is none.

        ``a`` is in (0, 1].
        """


@dataclass(frozen=True, slots=True)
class _Additive:
    """Noise that is added to f(x), with the same distribution everywhere."""

    def apply(self, value: float, draw: float, arm: int | None = None) -> float:
        return value + draw


@dataclass(frozen=True, slots=True)
class Gaussian(_Additive):
    """Additive N(0, sd^2); ``Gaussian(0.0)`` is no noise.

    Attributes
    ----------
    sd:
        Standard deviation in units of f, at least 0.
    """

    sd: float

    def __post_init__(self) -> None:
        if not 0 <= self.sd < np.inf:
            raise ValueError(f"A standard deviation is finite and at least 0, got {self.sd}.")

    def draw(self, rng: np.random.Generator, rounds: int) -> Array:
        return rng.normal(0.0, self.sd, rounds)

    def moment(self, a: float, bound: float) -> float:
        """bound^(1+a) + E|noise|^(1+a); exact for a = 1."""
        p = _order(a, bound)
        # E|z|^p of z ~ N(0, 1)
        absolute = 2.0 ** (p / 2.0) * math.gamma((p + 1.0) / 2.0) / math.sqrt(math.pi)
        return _symmetric(p, bound, self.sd, absolute)


@dataclass(frozen=True, slots=True)
class StudentT(_Additive):
    """Additive, heavy-tailed and symmetric: scale * t with ``df`` degrees of freedom.

    It has moments of orders below ``df`` only. [Chowdhury2019]_, section 6, takes df = 3, where the
    variance is 3 and v = bound^2 + 3.

    Attributes
    ----------
    df:
        Degrees of freedom, positive.
    scale:
        In units of f, positive; the standard deviation is larger, scale (df / (df - 2))^(1/2).
    """

    df: float
    scale: float = 1.0

    def __post_init__(self) -> None:
        _positive(self, df=self.df, scale=self.scale)

    def draw(self, rng: np.random.Generator, rounds: int) -> Array:
        return self.scale * rng.standard_t(self.df, rounds)

    def moment(self, a: float, bound: float) -> float:
        """bound^(1+a) + E|noise|^(1+a), infinite for 1 + a >= df; exact for a = 1."""
        p, df = _order(a, bound), self.df
        if p >= df:
            return math.inf
        # ln E|t|^p, since gamma functions overflow for a large df
        logarithm = (
            0.5 * p * math.log(df) + math.lgamma((p + 1.0) / 2.0) + math.lgamma((df - p) / 2.0)
        )
        logarithm -= 0.5 * math.log(math.pi) + math.lgamma(df / 2.0)
        return _symmetric(p, bound, self.scale, math.exp(logarithm))


@dataclass(frozen=True, slots=True)
class Stable(_Additive):
    """Additive, symmetric and alpha-stable: without a variance unless alpha = 2.

    The characteristic function is exp(-|scale u|^alpha); alpha = 2 is N(0, 2 scale^2), alpha = 1
    Cauchy. Moments of orders below alpha exist, so alpha > 1 + a is what the assumption needs.

    Attributes
    ----------
    alpha:
        Stability, in (0, 2].
    scale:
        In units of f, positive.
    """

    alpha: float
    scale: float = 1.0

    def __post_init__(self) -> None:
        _positive(self, alpha=self.alpha, scale=self.scale)
        if self.alpha > 2.0:
            raise ValueError(f"The stability alpha is in (0, 2], got {self.alpha}.")

    def draw(self, rng: np.random.Generator, rounds: int) -> Array:
        draws = levy_stable.rvs(self.alpha, 0.0, size=rounds, random_state=rng)  # beta = 0
        return np.asarray(self.scale * draws)

    def moment(self, a: float, bound: float) -> float:
        """bound^(1+a) + E|noise|^(1+a), infinite for 1 + a >= alpha < 2."""
        p, alpha = _order(a, bound), self.alpha
        if p >= alpha < 2.0:
            return math.inf
        # E|z|^p = 2^p G((1 + p) / 2) G(1 - p / alpha) / (sqrt(pi) G(1 - p / 2))
        absolute = 2.0**p * math.gamma((p + 1.0) / 2.0) / math.sqrt(math.pi)
        if alpha < 2.0:  # where alpha = 2 the two functions cancel
            absolute *= math.gamma(1.0 - p / alpha) / math.gamma(1.0 - p / 2.0)
        return _symmetric(p, bound, self.scale, absolute)


@dataclass(frozen=True, slots=True)
class Pareto:
    """Multiplicative: f(x) times a Pareto variable of mean 1.

    The reward of f > 0 is Pareto with this shape and scale f (shape - 1) / shape, which for shape
    2, as in [Chowdhury2019]_, section 6, is f / 2; its mean is f. A negative f has the mirror image
    of the reward of -f.

    Attributes
    ----------
    shape:
        Above 1; moments of orders below it exist.
    """

    shape: float = 2.0

    def __post_init__(self) -> None:
        if not 1.0 < self.shape < math.inf:
            raise ValueError(
                f"A Pareto reward has a mean for a finite shape above 1, got {self.shape}."
            )

    def draw(self, rng: np.random.Generator, rounds: int) -> Array:
        # NumPy's is Lomax: 1 + it is Pareto with scale 1, of mean shape / (shape - 1)
        return (self.shape - 1.0) / self.shape * (1.0 + rng.pareto(self.shape, rounds))

    def apply(self, value: float, draw: float, arm: int | None = None) -> float:
        return value * draw

    def moment(self, a: float, bound: float) -> float:
        """E|y|^(1+a) where |f| = bound, exactly; infinite for 1 + a >= shape."""
        p, shape = _order(a, bound), self.shape
        if p >= shape:
            return math.inf
        return float(shape / (shape - p) * (bound * (shape - 1.0) / shape) ** p)


@dataclass(frozen=True, slots=True, eq=False)
class Empirical:
    """Rewards from recorded data: the arm's entry of a random row of a table.

    f is then the mean of each column. All arms are read from the same row in the same round, so
    methods are compared on the same days.

    Attributes
    ----------
    rewards:
        Finite, a column for each arm of the finite domain, shape (rows, N).
    """

    rewards: Array

    def __post_init__(self) -> None:
        rewards = np.array(self.rewards, dtype=np.float64)
        if rewards.ndim != 2 or rewards.size == 0 or not np.isfinite(rewards).all():
            raise ValueError(
                f"Empirical rewards are a finite table with a column for each arm, {_got(rewards)}"
            )
        rewards.flags.writeable = False
        object.__setattr__(self, "rewards", rewards)

    def draw(self, rng: np.random.Generator, rounds: int) -> Array:
        return rng.integers(len(self.rewards), size=rounds).astype(np.float64)

    def apply(self, value: float, draw: float, arm: int | None = None) -> float:
        if arm is None or arm >= self.rewards.shape[1]:
            raise ValueError(
                f"Empirical rewards are known for arms 0 to {self.rewards.shape[1] - 1}, got "
                f"{'a point of a Box' if arm is None else f'arm {arm}'}: use a finite domain with "
                "a point for each column."
            )
        return float(self.rewards[int(draw), arm])

    def moment(self, a: float, bound: float) -> float:
        """Return the largest mean of |entry|^(1+a) of an arm; exact, ``bound`` plays no part.

        It is above the mean over *all* entries, the v of [Chowdhury2019]_, section 6: the
        assumption is about every arm, and the best arms have the largest moments.
        """
        p = _order(a, bound)
        return float(np.max(np.mean(np.abs(self.rewards) ** p, axis=0)))


def estimated_moment(samples: Array, a: float) -> tuple[float, float]:
    """Estimate v by the mean of |y|^(1+a) over a pilot sample, with its standard error.

    The mean is unbiased, but the error is valid only if E|y|^(2+2a) is finite. It is not
    under Student's t with 3 degrees of freedom and a = 1: rare results that most samples do not
    contain make up much of the moment, so most estimates are too low, and so are their errors.
    Take a smaller a then, or allow for several errors. A v that is too large costs regret; one that
    is too small costs the guarantee.

    ``samples`` are results at *one* input, finite, shape (n,), n >= 2; for several inputs, the
    largest of the moments is v.
    """
    y = np.asarray(samples, dtype=np.float64)
    if y.ndim != 1 or len(y) < 2 or not np.isfinite(y).all():
        raise ValueError(
            f"A moment is estimated from at least two finite results of shape (n,), {_got(y)}"
        )
    powers = np.abs(y) ** _order(a, 0.0)
    return float(powers.mean()), float(powers.std(ddof=1) / math.sqrt(len(y)))


def _got(array: Array) -> str:
    count = np.count_nonzero(~np.isfinite(array))
    return f"got shape {array.shape} with {count} entries that are not finite."


def _order(a: float, bound: float) -> float:
    """Return 1 + a after checking both."""
    if not (0.0 < a <= 1.0 and 0.0 <= bound < math.inf):
        raise ValueError(
            f"A moment of order 1 + a needs a in (0, 1] and a finite bound >= 0, got a={a} and "
            f"bound={bound}."
        )
    return 1.0 + a


def _symmetric(p: float, bound: float, scale: float, absolute: float) -> float:
    """Bound E|f + scale * z|^p, 1 <= p <= 2, for a symmetric z with E|z|^p = ``absolute``.

    |u + w|^p + |u - w|^p <= 2 |u|^p + 2 |w|^p; with equality for p = 2.
    """
    return float(bound**p + scale**p * absolute)


def _positive(noise: object, **numbers: float) -> None:
    for name, number in numbers.items():
        if not 0.0 < number < math.inf:
            raise ValueError(f"{type(noise).__name__} needs a finite {name} above 0, got {number}.")
