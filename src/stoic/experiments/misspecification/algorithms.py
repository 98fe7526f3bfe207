"""Methods compared under misspecification, all with the widths of their theorems."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stoic.confidence import SelfNormalised, Theory
from stoic.domains import Finite
from stoic.experiments.contender import BLACK, BLUE, GREEN, GREY, VERMILION, Contender
from stoic.learner import Learner
from stoic.posteriors.prior import Prior
from stoic.recipes.corruption import rgp_ucb
from stoic.recipes.misspecification import ec_gp_ucb, phased_gp_us
from stoic.recipes.plain import gp_ucb


@dataclass(frozen=True, slots=True)
class Assumed:
    """Assumptions about f that a method is given.

    Attributes
    ----------
    prior:
        Its kernel, and the noise variance lambda.
    norm:
        B: some function of at most this norm is within ``error`` of f.
    error:
        eps, in units of f.
    """

    prior: Prior
    norm: float
    error: float
    rounds: int


Algorithm = Contender[[Finite, Assumed], Learner]


def _gp_ucb(domain: Finite, assumed: Assumed) -> Learner:
    return Learner(domain, gp_ucb(prior=assumed.prior, confidence=SelfNormalised(assumed.norm)))


def _ec_gp_ucb(factor: float) -> Callable[[Finite, Assumed], Learner]:
    def build(domain: Finite, assumed: Assumed) -> Learner:
        error, norm = factor * assumed.error, assumed.norm
        return Learner(
            domain, ec_gp_ucb(prior=assumed.prior, error=error, theory=Theory(norm=norm))
        )

    return build


def _phased(domain: Finite, assumed: Assumed) -> Learner:
    return Learner(domain, phased_gp_us(prior=assumed.prior, theory=Theory(norm=assumed.norm)))


def _rgp_ucb(domain: Finite, assumed: Assumed) -> Learner:
    # f is off by at most eps in each of T rounds: C = eps T
    budget, norm = assumed.error * assumed.rounds, assumed.norm
    return Learner(domain, rgp_ucb(prior=assumed.prior, budget=budget, theory=Theory(norm=norm)))


GP = Algorithm("GP-UCB", _gp_ucb, BLACK)
EC = Algorithm("EC-GP-UCB", _ec_gp_ucb(1.0), VERMILION)
EC_LITTLE = Algorithm("EC-GP-UCB, told eps/4", _ec_gp_ucb(0.25), VERMILION, ":")
EC_MUCH = Algorithm("EC-GP-UCB, told 4 eps", _ec_gp_ucb(4.0), VERMILION, "--")
# An episode is planned before its results, so a batch changes nothing
PHASED = Algorithm("Phased GP-US", _phased, GREEN, batch=256)
RGP = Algorithm("RGP-UCB, C = eps T", _rgp_ucb, BLUE)
RIGHT = Algorithm("GP-UCB, right kernel", _gp_ucb, GREY)

# What is proved: of EC-GP-UCB given the right eps, and of Phased GP-US.
THEOREMS = {EC.name: "Bogunovic2021b, Theorem 1", PHASED.name: "Bogunovic2021b, Theorem 2"}

ALGORITHMS = {a.name: a for a in (GP, EC, EC_LITTLE, EC_MUCH, PHASED, RGP, RIGHT)}
