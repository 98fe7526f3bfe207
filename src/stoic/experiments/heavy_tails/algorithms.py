"""Methods that are compared on heavy tails, and their two widths.

The *wide* widths are the papers': for T = 20,000 and v = 4 TGP-UCB's grows to 76, ATA-GP-UCB's is
near 62 with 64 features. The *narrow* one is the default schedule of GP-UCB here, at most 7.6. A
method's regret shows its width as much as its defence, so both are shown with either.

The features are the authors': both nodes of each pair, and a draw for each place. Ours, with fewer
features or with the theory's dictionary, are beside them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from stoic.confidence import Confidence, GrowingTruncation, Schedule, Theory
from stoic.experiments.contender import BLACK, BLUE, GREEN, GREY, PURPLE, VERMILION, Contender
from stoic.experiments.heavy_tails.settings import Settings
from stoic.experiments.heavy_tails.worlds import Arms, Instance
from stoic.learner import Learner
from stoic.posteriors.features import Features, Fourier, Nystroem
from stoic.posteriors.prior import Prior
from stoic.recipes import ata_gp_ucb, gp_ucb, mom_gp_ucb, tgp_ucb


@dataclass(frozen=True, slots=True, eq=False)
class Situation:
    """Inputs of a learner's construction: the settings, an instance and the learner's seed."""

    settings: Settings
    instance: Instance
    seed: int

    def prior(self, arms: Arms) -> Prior:
        """Prior with the kernel of the arms, and lambda as its noise variance."""
        return Prior(arms.kernel, noise=self.settings.regulariser)

    @property
    def width(self) -> Confidence:
        """Width of TGP-UCB, as the authors ran it, with B = 1."""
        return GrowingTruncation(1.0, self.instance.moment, self.instance.alpha)


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


def _gp(width: Callable[[Situation], Confidence]) -> Callable[[Situation, Arms], Learner]:
    def build(at: Situation, arms: Arms) -> Learner:
        return Learner(arms.problem.domain, gp_ucb(prior=at.prior(arms), confidence=width(at)))

    return build


def _tgp(width: Confidence | None) -> Callable[[Situation, Arms], Learner]:
    def build(at: Situation, arms: Arms) -> Learner:
        return Learner(
            arms.problem.domain,
            tgp_ucb(
                prior=at.prior(arms),
                moment=at.instance.moment,
                alpha=at.instance.alpha,
                confidence=width,
            ),
        )

    return build


def _ata(
    features: Callable[[Situation], Features], width: Confidence | None
) -> Callable[[Situation, Arms], Learner]:
    def build(at: Situation, arms: Arms) -> Learner:
        return Learner(
            arms.problem.domain,
            ata_gp_ucb(
                prior=at.prior(arms),
                features=features(at),
                moment=at.instance.moment,
                alpha=at.instance.alpha,
                confidence=width,
                # "Set order-wise similar to" the theorems (section 6); they know T
                theory=Theory("practice", horizon=at.settings.rounds),
            ),
        )

    return build


def _mom(at: Situation, arms: Arms) -> Learner:
    # The conclusion proposes median of means, without a width for it
    return Learner(arms.problem.domain, mom_gp_ucb(prior=at.prior(arms), confidence=Schedule()))


def _quadrature(at: Situation) -> Features:
    return Fourier(at.settings.nodes, pairs=True)


def _halved(at: Situation) -> Features:
    return Fourier(at.settings.nodes)


def _dictionary(at: Situation) -> Nystroem:
    return Nystroem(at.settings.distortion, at.settings.rounds, seed=at.seed)


def _once(at: Situation) -> Features:
    return replace(_dictionary(at), once=True)


def _principal(at: Situation) -> Features:
    return replace(_dictionary(at), principal=True)


_NARROW = ", GP-UCB's width"

GP = Algorithm("GP-UCB", _gp(lambda at: Schedule()), BLACK)
GP_WIDE = Algorithm("GP-UCB, TGP-UCB's width", _gp(lambda at: at.width), GREY, "--")
TGP = Algorithm("TGP-UCB", _tgp(None), BLUE)
QFF = Algorithm("ATA-GP-UCB, QFF", _ata(_quadrature, None), VERMILION, formula=True)
NYSTROEM = Algorithm("ATA-GP-UCB, Nystroem", _ata(_once, None), GREEN)
# Ours: one node of each pair; a draw for each play, as the theory has it; and the features of this
# turned to the axes of the dictionary's eigenvectors.
QFF_HALVED = Algorithm("ATA-GP-UCB, QFF halved", _ata(_halved, None), VERMILION, "--", formula=True)
NYSTROEM_PLAYS = Algorithm("ATA-GP-UCB, Nystroem per play", _ata(_dictionary, None), GREEN, ":")
PRINCIPAL = Algorithm("ATA-GP-UCB, Nystroem principal", _ata(_principal, None), GREEN, "--")
MOM = Algorithm("median of means", _mom, PURPLE)

TGP_NARROW = Algorithm(TGP.name + _NARROW, _tgp(Schedule()), BLUE, ":")
QFF_NARROW = Algorithm(
    QFF.name + _NARROW, _ata(_quadrature, Schedule()), VERMILION, ":", formula=True
)
NYSTROEM_NARROW = Algorithm(NYSTROEM.name + _NARROW, _ata(_once, Schedule()), GREEN, ":")
PRINCIPAL_NARROW = Algorithm(PRINCIPAL.name + _NARROW, _ata(_principal, Schedule()), GREEN, "-.")

METHODS = (GP, GP_WIDE, TGP, QFF, NYSTROEM, QFF_HALVED, NYSTROEM_PLAYS, PRINCIPAL, MOM)
SAME_WIDTH = (TGP_NARROW, QFF_NARROW, NYSTROEM_NARROW, PRINCIPAL_NARROW)
ALGORITHMS = {algorithm.name: algorithm for algorithm in (*METHODS, *SAME_WIDTH)}
