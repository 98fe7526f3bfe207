"""Methods compared under misspecification, all with the widths of their theorems."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stoic.confidence import SelfNormalised, Theory
from stoic.domains import Finite
from stoic.experiments.contender import BLACK, BLUE, GREEN, GREY, VERMILION, Contender
from stoic.learner import Learner
from stoic.posteriors.prior import Prior
from stoic.recipes import Parts, Recipe
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
    norm, error:
        B and eps, in units of f: some function of at most this norm is within ``error`` of f.
    rounds:
        T.
    """

    prior: Prior
    norm: float
    error: float
    rounds: int

    @property
    def known(self) -> dict[str, Any]:
        """Prior, and the theory that knows the norm."""
        return {"prior": self.prior, "theory": Theory(norm=self.norm)}


Algorithm = Contender[[Finite, Assumed], Learner]


def _algorithm(
    name: str,
    write: Callable[[Assumed], Recipe[Parts]],
    colour: str,
    line: str = "-",
    batch: int = 1,
) -> Algorithm:
    def build(domain: Finite, assumed: Assumed) -> Learner:
        return Learner(domain, write(assumed))

    return Algorithm(name, build, colour, line, batch)


def _plain(of: Assumed) -> Recipe[Parts]:
    return gp_ucb(prior=of.prior, confidence=SelfNormalised(of.norm))


def _enlarged(factor: float) -> Callable[[Assumed], Recipe[Parts]]:
    return lambda of: ec_gp_ucb(error=factor * of.error, **of.known)


GP = _algorithm("GP-UCB", _plain, BLACK)
EC = _algorithm("EC-GP-UCB", _enlarged(1.0), VERMILION)
EC_LITTLE = _algorithm("EC-GP-UCB, told eps/4", _enlarged(0.25), VERMILION, ":")
EC_MUCH = _algorithm("EC-GP-UCB, told 4 eps", _enlarged(4.0), VERMILION, "--")
# An episode is planned before its results, so a batch changes nothing
PHASED = _algorithm("Phased GP-US", lambda of: phased_gp_us(**of.known), GREEN, batch=256)
# f is off by at most eps in each of T rounds: C = eps T
RGP = _algorithm(
    "RGP-UCB, C = eps T", lambda of: rgp_ucb(budget=of.error * of.rounds, **of.known), BLUE
)
RIGHT = _algorithm("GP-UCB, right kernel", _plain, GREY)

# What is proved: of EC-GP-UCB given the right eps, and of Phased GP-US.
THEOREMS = {EC.name: "Bogunovic2021b, Theorem 1", PHASED.name: "Bogunovic2021b, Theorem 2"}

ALGORITHMS = {a.name: a for a in (GP, EC, EC_LITTLE, EC_MUCH, PHASED, RGP, RIGHT)}
