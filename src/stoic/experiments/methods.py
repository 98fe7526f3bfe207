"""Methods that figures compare: recipes with their settings, colours and line styles."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec

import numpy as np

from stoic import recipes
from stoic.confidence import Theory
from stoic.data import Array, Booleans, Choice, Recommendation
from stoic.domains import Domain, Finite
from stoic.experiments.peers import RelevancePursuit
from stoic.learner import Learner
from stoic.policies import ExpectedImprovement
from stoic.posteriors.scales import mean_and_sd
from stoic.recipes.outliers import ActingPlateau
from stoic.simulate import Player

# Okabe and Ito's palette, which people with any colour vision can distinguish.
BLACK, GREY = "#000000", "#999999"
BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, YELLOW = "#E69F00", "#56B4E9", "#F0E442"


@dataclass(frozen=True, slots=True)
class Threat:
    """Corruption and horizon that a learner assumes, which need not be true.

    Attributes
    ----------
    corruptions:
        T_c, used by theory widths only.
    horizon:
        T, used by theory widths only.
    """

    corruptions: int
    horizon: int


@dataclass(frozen=True, slots=True)
class Method:
    """Named learner with its colour and line style.

    Attributes
    ----------
    name:
        As in tables and legends.
    build:
        Function from a domain, the threat it assumes and a seed to a learner.
    colour, line:
        As matplotlib knows them: one colour a family, one line style a variant.
    extra:
        Module that has to be installed besides; ``None`` for none.
    """

    name: str
    build: Callable[[Domain, Threat, int], Player]
    colour: str
    line: str = "-"
    extra: str | None = None


class RandomSearch:
    """Uniform random search that recommends its highest observation: the reference.

    Parameters
    ----------
    domain:
        Domain to query.
    seed:
        Seed of its own random stream.
    """

    def __init__(self, domain: Domain, seed: int) -> None:
        self.domain = domain
        self.rng = np.random.default_rng(seed)
        self._best: tuple[float, Array] = (
            -np.inf,
            domain.sample(1, np.random.default_rng(seed))[0],
        )

    def ask(self, n: int) -> list[Choice]:
        """Draw points uniformly."""
        return [Choice(x) for x in self.domain.sample(n, self.rng)]

    def tell(self, x: Array, y: Array) -> None:
        """Remember the highest observation; nan is never the highest."""
        for point, result in zip(np.atleast_2d(x), np.atleast_1d(y).tolist(), strict=True):
            if result > self._best[0]:
                self._best = (result, point.copy())

    def active(self) -> Booleans:
        """All rows: this method rules out nothing."""
        assert isinstance(self.domain, Finite)
        return np.ones(len(self.domain), dtype=np.bool_)

    def recommend(self) -> Recommendation:
        """Recommend the point of the highest observation, with no uncertainty."""
        y, x = self._best
        return Recommendation(x, y, y, y, x, y)


def _gp(domain: Domain, threat: Threat, seed: int) -> Player:
    return Learner(domain, recipes.gp_ucb(), seed=seed)


def _gp_loo(domain: Domain, threat: Threat, seed: int) -> Player:
    equal_weights = recipes.fc_rcgp_ucb(half_width=math.inf)
    return Learner(domain, equal_weights, seed=seed)


def _fc(domain: Domain, threat: Threat, seed: int) -> Player:
    return Learner(domain, recipes.fc_rcgp_ucb(), seed=seed)


def _a2(domain: Domain, threat: Threat, seed: int) -> Player:
    return Learner(domain, recipes.a2_rcgp_ucb(), seed=seed)


def _fc_theory(domain: Domain, threat: Threat, seed: int) -> Player:
    return Learner(
        domain,
        recipes.fc_rcgp_ucb(theory=Theory(horizon=threat.horizon, corruptions=threat.corruptions)),
        seed=seed,
    )


def _a2_theory(domain: Domain, threat: Threat, seed: int) -> Player:
    return Learner(
        domain,
        recipes.a2_rcgp_ucb(theory=Theory(horizon=threat.horizon, corruptions=threat.corruptions)),
        seed=seed,
    )


def _fc_plain(domain: Domain, threat: Threat, seed: int) -> Player:
    return Learner(domain, recipes.fc_rcgp_ucb(scale=mean_and_sd, shape=1.0), seed=seed)


def _a2_plain(domain: Domain, threat: Threat, seed: int) -> Player:
    return Learner(
        domain, recipes.a2_rcgp_ucb(scale=mean_and_sd, plateau=ActingPlateau(shape=1.0)), seed=seed
    )


def _fc_noise(domain: Domain, threat: Threat, seed: int) -> Player:
    return Learner(domain, recipes.fc_rcgp_ucb(unit="noise", shape=1.0), seed=seed)


def _a2_noise(domain: Domain, threat: Threat, seed: int) -> Player:
    return Learner(
        domain, recipes.a2_rcgp_ucb(plateau=ActingPlateau(shape=1.0, unit="noise")), seed=seed
    )


def _loo(domain: Domain, threat: Threat, seed: int) -> Player:
    return Learner(domain, recipes.loo_gp_ucb(), seed=seed)


def _robust(domain: Domain, threat: Threat, seed: int) -> Player:
    return Learner(domain, recipes.robust(), seed=seed)


def _student(domain: Domain, threat: Threat, seed: int) -> Player:
    return Learner(domain, recipes.tp_ucb(), seed=seed)


def _diagnostics(domain: Domain, threat: Threat, seed: int) -> Player:
    return Learner(domain, recipes.diagnostics_gp_ucb(), seed=seed)


def _a2_ei(domain: Domain, threat: Threat, seed: int) -> Player:
    a2 = recipes.a2_rcgp_ucb()(domain)
    return Learner(domain, replace(a2, policy=ExpectedImprovement()), seed=seed)


def _a2_wide(domain: Domain, threat: Threat, seed: int) -> Player:
    a2 = recipes.a2_rcgp_ucb()(domain)
    return Learner(domain, replace(a2, policy=ExpectedImprovement(widened=True)), seed=seed)


def _relevance(domain: Domain, threat: Threat, seed: int) -> Player:
    return RelevancePursuit(domain, seed)


def _random(domain: Domain, threat: Threat, seed: int) -> Player:
    return RandomSearch(domain, seed)


GP = Method("GP-UCB", _gp, BLACK)
# Standardised and fitted as the robust methods are, so that only the weights differ.
GP_LOO = Method("GP-UCB, leave-one-out fit", _gp_loo, BLACK, "--")
RANDOM = Method("random search", _random, GREY)
FC = Method("FC-RCGP-UCB", _fc, BLUE)
A2 = Method("A2-RCGP-UCB", _a2, VERMILION)
FC_THEORY = Method("FC-RCGP-UCB, theory width", _fc_theory, BLUE, "--")
A2_THEORY = Method("A2-RCGP-UCB, theory width", _a2_theory, VERMILION, "--")
# As the paper standardises: by mean and sd, outliers included; its shape is their sd.
FC_PLAIN = Method("FC-RCGP-UCB, mean and sd, c = 1 sd", _fc_plain, GREEN, "-.")
A2_PLAIN = Method("A2-RCGP-UCB, mean and sd, c = 1 sd", _a2_plain, PURPLE, "-.")
# The shape c in standard deviations of the noise instead of the scale of the results.
FC_NOISE = Method("FC-RCGP-UCB, c = 1 noise sd", _fc_noise, GREEN, ":")
A2_NOISE = Method("A2-RCGP-UCB, c = 1 noise sd", _a2_noise, PURPLE, ":")
LOO = Method("leave-one-out GP-UCB", _loo, GREEN)  # our own
ROBUST = Method("robust, the default", _robust, PURPLE)  # our own
STUDENT = Method("Student-t process UCB", _student, ORANGE)
DIAGNOSTICS = Method("Diagnostics GP-UCB", _diagnostics, SKY)
A2_EI = Method("A2-RCGP, expected improvement", _a2_ei, VERMILION, ":")
A2_WIDE = Method("A2-RCGP, widened improvement", _a2_wide, VERMILION, "-.")
# BoTorch's; it takes seconds a round.
RELEVANCE = Method("relevance pursuit UCB", _relevance, YELLOW, extra="botorch")

METHODS: tuple[Method, ...] = (
    GP,
    GP_LOO,
    FC,
    A2,
    FC_THEORY,
    A2_THEORY,
    FC_PLAIN,
    A2_PLAIN,
    FC_NOISE,
    A2_NOISE,
    LOO,
    ROBUST,
    STUDENT,
    DIAGNOSTICS,
    A2_EI,
    A2_WIDE,
    RELEVANCE,
    RANDOM,
)


def method(name: str) -> Method:
    """Return the method of this name."""
    return next(method for method in METHODS if method.name == name)


def installed(*methods: Method) -> tuple[str, ...]:
    """Return the names of the methods whose library is installed."""
    return tuple(m.name for m in methods if m.extra is None or find_spec(m.extra) is not None)
