"""Methods that figures compare: recipes with their settings, colours and line styles."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from stoic import recipes
from stoic.confidence import Theory
from stoic.data import Array, Booleans, Choice, Recommendation
from stoic.domains import Domain, Finite
from stoic.experiments.contender import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    YELLOW,
    Contender,
)
from stoic.experiments.peers import RelevancePursuit
from stoic.learner import Learner
from stoic.models import GaussianProcess, StudentTProcess
from stoic.policies import ExpectedImprovement
from stoic.posteriors.fitting import Fitting, bounded_leave_one_out
from stoic.posteriors.scales import mean_and_sd
from stoic.recipes import ActingPlateau, Anchor, Parts
from stoic.simulate import Player


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


Method = Contender[[Domain, Threat, int], Player]


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
            # Recommended until a result comes: from a copy of the stream, which stays as it is
            domain.sample(1, np.random.default_rng(seed))[0],
        )

    def ask_batch(self, n: int) -> list[Choice]:
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


Build = Callable[[Domain, Threat, int], Player]


def _built(recipe: Callable[[Domain], Parts]) -> Build:
    return lambda domain, threat, seed: Learner(domain, recipe, seed=seed)


def _theory(write: Callable[..., Callable[[Domain], Parts]]) -> Build:
    """With the width of the theorem, which takes the assumed corruptions and the horizon."""

    def build(domain: Domain, threat: Threat, seed: int) -> Player:
        theory = Theory(horizon=threat.horizon, corruptions=threat.corruptions)
        return Learner(domain, write(theory=theory), seed=seed)

    return build


def _improving(widened: bool) -> Build:
    def recipe(domain: Domain) -> Parts:
        return replace(_A2()(domain), policy=ExpectedImprovement(widened=widened))

    return _built(recipe)


def _random(domain: Domain, threat: Threat, seed: int) -> Player:
    return RandomSearch(domain, seed)


def _relevance(domain: Domain, threat: Threat, seed: int) -> Player:
    return RelevancePursuit(domain, seed)


def _by_leave_one_out(recipe: Callable[[Domain], Parts]) -> Build:
    """With hyperparameters by leave-one-out, as section 5.1 of [Ezzerg2026]_ fits them."""

    def refitted(domain: Domain) -> Parts:
        parts = recipe(domain)
        assert isinstance(parts.model, GaussianProcess | StudentTProcess)
        assert isinstance(parts.model.fitting, Fitting)
        fitting = replace(parts.model.fitting, objective=bounded_leave_one_out)
        return replace(parts, model=replace(parts.model, fitting=fitting))

    return _built(refitted)


_FC, _A2 = recipes.fc_rcgp_ucb, recipes.a2_rcgp_ucb

GP = Method("GP-UCB", _built(recipes.gp_ucb()), BLACK)  # fitted by marginal likelihood
# Standardised and fitted as the robust methods are, so that only the weights differ: all are equal.
# Taken for the GP-UCB of [Ezzerg2026]_, whose section 5.1 fits by leave-one-out and names no other
# fit: in figure 3, without corruption, the robust methods are virtually identical to it.
GP_LOO = Method("GP-UCB, leave-one-out fit", _built(_FC(half_width=math.inf)), BLACK, "--")
RANDOM = Method("random search", _random, GREY)
FC = Method("FC-RCGP-UCB", _built(_FC()), BLUE)
A2 = Method("A2-RCGP-UCB", _built(_A2()), VERMILION)
# The multipliers of theorems 4.2 and 4.3, which know T_c
FC_THEORY = Method("FC-RCGP-UCB, theory width", _theory(_FC), BLUE, "--")
A2_THEORY = Method("A2-RCGP-UCB, theory width", _theory(_A2), VERMILION, "--")
# As the paper's practical considerations say: results with mean 0 and sd 1, outliers included;
# c = 1; L = 1.96 or the 95 % quantile of |y - median|; T_c = 0 in the width, or the number of
# results outside of the plateau.
_fc_of_paper = partial(_FC, scale=mean_and_sd, shape=1.0)
_a2_of_paper = partial(
    _A2,
    scale=mean_and_sd,
    plateau=ActingPlateau(half_width=1.96, shape=1.0),
    anchor=Anchor(half_width=1.96),
)
_COUNTED = Theory("practice", corruptions="distrusted")
FC_PAPER = Method(
    "FC-RCGP-UCB, mean and sd, L = 1.96, c = 1", _built(_fc_of_paper(half_width=1.96)), GREEN, "-."
)
FC_QUANTILE = Method(
    "FC-RCGP-UCB, mean and sd, L a quantile, c = 1",
    _built(_fc_of_paper(half_width="quantile")),
    SKY,
    "-.",
)
FC_COUNTED = Method(
    "FC-RCGP-UCB, mean and sd, L = 1.96, c = 1, T_c counted",
    _built(_fc_of_paper(half_width=1.96, theory=_COUNTED)),
    ORANGE,
    "-.",
)
A2_PAPER = Method("A2-RCGP-UCB, mean and sd, L = 1.96, c = 1", _built(_a2_of_paper()), PURPLE, "-.")
A2_COUNTED = Method(
    "A2-RCGP-UCB, mean and sd, L = 1.96, c = 1, T_c counted",
    _built(_a2_of_paper(theory=_COUNTED)),
    YELLOW,
    "-.",
)
# The shape c in standard deviations of the noise instead of the scale of the results.
_A2_IN_NOISE = _A2(plateau=ActingPlateau(shape=1.0, unit="noise"))
FC_NOISE = Method("FC-RCGP-UCB, c = 1 noise sd", _built(_FC(unit="noise", shape=1.0)), GREEN, ":")
A2_NOISE = Method("A2-RCGP-UCB, c = 1 noise sd", _built(_A2_IN_NOISE), PURPLE, ":")
LOO = Method("leave-one-out GP-UCB", _built(recipes.loo_gp_ucb()), GREEN)  # our own
ROBUST = Method("robust, the default", _built(recipes.robust()), PURPLE)  # our own
STUDENT = Method("Student-t process UCB", _built(recipes.tp_ucb()), ORANGE)  # 3 degrees of freedom
DIAGNOSTICS = Method("Diagnostics GP-UCB", _built(recipes.diagnostics_gp_ucb()), SKY)
# The same reading for the other baselines. Diagnostics looks for outliers
# with a fit of its own, by the evidence of Student-t noise.
STUDENT_LOO = Method(
    "Student-t process UCB, leave-one-out fit", _by_leave_one_out(recipes.tp_ucb()), ORANGE, "--"
)
DIAGNOSTICS_LOO = Method(
    "Diagnostics GP-UCB, leave-one-out fit",
    _by_leave_one_out(recipes.diagnostics_gp_ucb()),
    SKY,
    "--",
)
# Plain, it settled on the second peak of Forrester's function; hence the widened one
A2_EI = Method("A2-RCGP, expected improvement", _improving(False), VERMILION, ":")
A2_WIDE = Method("A2-RCGP, widened improvement", _improving(True), VERMILION, "-.")
# BoTorch's; it takes seconds a round.
RELEVANCE = Method("relevance pursuit UCB", _relevance, YELLOW, module="botorch")

METHODS: tuple[Method, ...] = (
    GP, GP_LOO, FC, A2, FC_THEORY, A2_THEORY, FC_PAPER, FC_QUANTILE, FC_COUNTED, A2_PAPER,
    A2_COUNTED, FC_NOISE, A2_NOISE, LOO, ROBUST, STUDENT, STUDENT_LOO, DIAGNOSTICS,
    DIAGNOSTICS_LOO, A2_EI, A2_WIDE, RELEVANCE, RANDOM,
)  # fmt: skip


def method(name: str) -> Method:
    """Return the method of this name."""
    return next(method for method in METHODS if method.name == name)


def installed(*methods: Method) -> tuple[str, ...]:
    """Return the names of the methods whose library is installed."""
    return tuple(m.name for m in methods if m.installed)
