"""Methods that are compared on heavy tails, and their two widths.

The *wide* widths are the papers': for T = 20,000 and v = 4 TGP-UCB's grows to 76, ATA-GP-UCB's is
near 62 with 64 features. The *narrow* one is the default schedule of GP-UCB here, at most 7.6. A
method's regret shows its width as much as its defence, so both are shown with either.

The features are the authors': both nodes of each pair, and a draw for each place. Ours, with fewer
features or with the theory's dictionary, are beside them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from stoic.confidence import Confidence, GrowingTruncation, Schedule, Theory
from stoic.experiments.contender import BLACK, BLUE, GREEN, GREY, PURPLE, VERMILION, Contender
from stoic.experiments.heavy_tails.worlds import Arms, Instance
from stoic.learner import Learner
from stoic.posteriors.features import Features, Fourier, Nystroem
from stoic.posteriors.prior import Prior
from stoic.recipes import Parts, Recipe, ata_gp_ucb, gp_ucb, mom_gp_ucb, tgp_ucb


@dataclass(frozen=True, slots=True, eq=False)
class Situation:
    """Inputs of a learner's construction.

    Attributes
    ----------
    settings, instance:
        Those of the figure, and the world of the trial.
    seed:
        Seed of the learner.
    """

    settings: Any
    instance: Instance
    seed: int

    def write(self, recipe: Callable[..., Recipe[Parts]], arms: Arms, **known: Any) -> Learner:
        """Learner with the kernel of the arms, and lambda as its noise variance."""
        prior = Prior(arms.kernel, noise=self.settings.regulariser)
        return Learner(arms.problem.domain, recipe(prior=prior, **known))

    @property
    def tails(self) -> dict[str, Any]:
        """Assumed moment and its order."""
        return {"moment": self.instance.moment, "alpha": self.instance.alpha}


Build = Callable[[Situation, Arms], Learner]


@dataclass(frozen=True)
class Algorithm(Contender[[Situation, Arms], Learner]):
    """Contender that is built from a situation and the played arms.

    Attributes
    ----------
    formula:
        True if it needs the arms as points with a squared exponential kernel.
    """

    formula: bool = False

    def arms(self, instance: Instance) -> Arms:
        """Select the arms of an instance that it plays."""
        if not self.formula:
            return instance.arms
        assert instance.by_formula is not None
        return instance.by_formula


def _gp(at: Situation, arms: Arms) -> Learner:
    return at.write(gp_ucb, arms, confidence=Schedule())


def _gp_wide(at: Situation, arms: Arms) -> Learner:
    # TGP-UCB's, as the authors ran it, with B = 1
    return at.write(gp_ucb, arms, confidence=GrowingTruncation(1.0, **at.tails))


def _tgp(width: Confidence | None = None) -> Build:
    return lambda at, arms: at.write(tgp_ucb, arms, confidence=width, **at.tails)


def _ata(features: Callable[[Situation], Features], width: Confidence | None = None) -> Build:
    def build(at: Situation, arms: Arms) -> Learner:
        # "Set order-wise similar to" the theorems (section 6); they know T
        theory = Theory("practice", horizon=at.settings.rounds)
        known = {"features": features(at), "theory": theory, **at.tails}
        return at.write(ata_gp_ucb, arms, confidence=width, **known)

    return build


def _mom(at: Situation, arms: Arms) -> Learner:
    # The conclusion proposes median of means, without a width for it
    return at.write(mom_gp_ucb, arms, confidence=Schedule())


def _quadrature(at: Situation, pairs: bool = True) -> Features:
    return Fourier(at.settings.nodes, pairs=pairs)


def _dictionary(at: Situation, **kind: Any) -> Features:
    return Nystroem(at.settings.distortion, at.settings.rounds, seed=at.seed, **kind)


_halved, _once = partial(_quadrature, pairs=False), partial(_dictionary, once=True)
_principal = partial(_dictionary, principal=True)
_NARROW = ", GP-UCB's width"

GP = Algorithm("GP-UCB", _gp, BLACK)
GP_WIDE = Algorithm("GP-UCB, TGP-UCB's width", _gp_wide, GREY, "--")
TGP = Algorithm("TGP-UCB", _tgp(), BLUE)
QFF = Algorithm("ATA-GP-UCB, QFF", _ata(_quadrature), VERMILION, formula=True)
NYSTROEM = Algorithm("ATA-GP-UCB, Nystroem", _ata(_once), GREEN)
# Ours: one node of each pair; a draw for each play, as the theory has it; and the features of this
# turned to the axes of the dictionary's eigenvectors.
QFF_HALVED = Algorithm("ATA-GP-UCB, QFF halved", _ata(_halved), VERMILION, "--", formula=True)
NYSTROEM_PLAYS = Algorithm("ATA-GP-UCB, Nystroem per play", _ata(_dictionary), GREEN, ":")
PRINCIPAL = Algorithm("ATA-GP-UCB, Nystroem principal", _ata(_principal), GREEN, "--")
MOM = Algorithm("median of means", _mom, PURPLE)

_SCHEDULE = Schedule()
TGP_NARROW = Algorithm(TGP.name + _NARROW, _tgp(_SCHEDULE), BLUE, ":")
_ours = _ata(_quadrature, _SCHEDULE)
QFF_NARROW = Algorithm(QFF.name + _NARROW, _ours, VERMILION, ":", formula=True)
NYSTROEM_NARROW = Algorithm(NYSTROEM.name + _NARROW, _ata(_once, _SCHEDULE), GREEN, ":")
PRINCIPAL_NARROW = Algorithm(PRINCIPAL.name + _NARROW, _ata(_principal, _SCHEDULE), GREEN, "-.")

METHODS = (GP, GP_WIDE, TGP, QFF, NYSTROEM, QFF_HALVED, NYSTROEM_PLAYS, PRINCIPAL, MOM)
SAME_WIDTH = (TGP_NARROW, QFF_NARROW, NYSTROEM_NARROW, PRINCIPAL_NARROW)
ALGORITHMS = {algorithm.name: algorithm for algorithm in (*METHODS, *SAME_WIDTH)}
