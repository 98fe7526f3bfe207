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
from stoic.experiments import contender
from stoic.experiments.contender import Contender
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
    corruptions, horizon:
        T_c and T, used by theory widths only.
    """

    corruptions: int
    horizon: int


Method = Contender[[Domain, Threat, int], Player]
Recipe = Callable[[Domain], Parts]


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


def _method(name: str, recipe: Recipe, colour: str, line: str = "-") -> Method:
    def build(domain: Domain, threat: Threat, seed: int) -> Player:
        return Learner(domain, recipe, seed=seed)

    return Method(name, build, colour, line)


def _theory(name: str, write: Callable[..., Recipe], colour: str) -> Method:
    """With the width of the theorem, which takes the assumed corruptions and the horizon."""

    def build(domain: Domain, threat: Threat, seed: int) -> Player:
        theory = Theory(horizon=threat.horizon, corruptions=threat.corruptions)
        return Learner(domain, write(theory=theory), seed=seed)

    return Method(f"{name}, theory width", build, colour, "--")


def _improving(widened: bool) -> Recipe:
    return lambda domain: replace(_A2()(domain), policy=ExpectedImprovement(widened=widened))


def _by_leave_one_out(recipe: Recipe) -> Recipe:
    """With hyperparameters by leave-one-out, as section 5.1 of [Ezzerg2026]_ fits them."""

    def refitted(domain: Domain) -> Parts:
        parts = recipe(domain)
        assert isinstance(parts.model, GaussianProcess | StudentTProcess)
        assert isinstance(parts.model.fitting, Fitting)
        fitting = replace(parts.model.fitting, objective=bounded_leave_one_out)
        return replace(parts, model=replace(parts.model, fitting=fitting))

    return refitted


_FC, _A2 = recipes.fc_rcgp_ucb, recipes.a2_rcgp_ucb
_TP, _DIAGNOSTICS = recipes.tp_ucb(), recipes.diagnostics_gp_ucb()
_LOO = ", leave-one-out fit"

GP = _method("GP-UCB", recipes.gp_ucb(), contender.BLACK)  # fitted by marginal likelihood
# Standardised and fitted as the robust methods are, so that only the weights differ: all are equal.
# Taken for the GP-UCB of [Ezzerg2026]_, whose section 5.1 fits by leave-one-out and names no other
# fit: in figure 3, without corruption, the robust methods are virtually identical to it.
GP_LOO = _method(GP.name + _LOO, _FC(half_width=math.inf), contender.BLACK, "--")
RANDOM = Method(
    "random search", lambda domain, threat, seed: RandomSearch(domain, seed), contender.GREY
)
FC = _method("FC-RCGP-UCB", _FC(), contender.BLUE)
A2 = _method("A2-RCGP-UCB", _A2(), contender.VERMILION)
# The multipliers of theorems 4.2 and 4.3, which know T_c
FC_THEORY = _theory(FC.name, _FC, contender.BLUE)
A2_THEORY = _theory(A2.name, _A2, contender.VERMILION)
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
_FIXED, _T_C = ", mean and sd, L = 1.96, c = 1", ", T_c counted"
FC_PAPER = _method(FC.name + _FIXED, _fc_of_paper(half_width=1.96), contender.GREEN, "-.")
FC_QUANTILE = _method(
    f"{FC.name}, mean and sd, L a quantile, c = 1",
    _fc_of_paper(half_width="quantile"),
    contender.SKY,
    "-.",
)
_counted = _fc_of_paper(half_width=1.96, theory=_COUNTED)
FC_COUNTED = _method(FC.name + _FIXED + _T_C, _counted, contender.ORANGE, "-.")
A2_PAPER = _method(A2.name + _FIXED, _a2_of_paper(), contender.PURPLE, "-.")
_counted = _a2_of_paper(theory=_COUNTED)
A2_COUNTED = _method(A2.name + _FIXED + _T_C, _counted, contender.YELLOW, "-.")
# The shape c in standard deviations of the noise instead of the scale of the results.
_IN_NOISE = ", c = 1 noise sd"
FC_NOISE = _method(FC.name + _IN_NOISE, _FC(unit="noise", shape=1.0), contender.GREEN, ":")
_in_noise = _A2(plateau=ActingPlateau(shape=1.0, unit="noise"))
A2_NOISE = _method(A2.name + _IN_NOISE, _in_noise, contender.PURPLE, ":")
LOO = _method("leave-one-out GP-UCB", recipes.loo_gp_ucb(), contender.GREEN)  # our own
ROBUST = _method("robust, the default", recipes.robust(), contender.PURPLE)  # our own
STUDENT = _method("Student-t process UCB", _TP, contender.ORANGE)  # 3 degrees of freedom
DIAGNOSTICS = _method("Diagnostics GP-UCB", _DIAGNOSTICS, contender.SKY)
# The same reading for the other baselines. Diagnostics looks for outliers
# with a fit of its own, by the evidence of Student-t noise.
STUDENT_LOO = _method(STUDENT.name + _LOO, _by_leave_one_out(_TP), contender.ORANGE, "--")
DIAGNOSTICS_LOO = _method(
    DIAGNOSTICS.name + _LOO, _by_leave_one_out(_DIAGNOSTICS), contender.SKY, "--"
)
# Plain, it settled on the second peak of Forrester's function; hence the widened one
A2_EI = _method("A2-RCGP, expected improvement", _improving(False), contender.VERMILION, ":")
A2_WIDE = _method("A2-RCGP, widened improvement", _improving(True), contender.VERMILION, "-.")
# BoTorch's; it takes seconds a round.
RELEVANCE = Method(
    "relevance pursuit UCB",
    lambda domain, threat, seed: RelevancePursuit(domain, seed),
    contender.YELLOW,
    module="botorch",
)

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
