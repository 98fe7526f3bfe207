"""Adversaries that corrupt observations or move inputs, and models of the noise."""

from stoic.adversaries.base import Adversary, Attack, NoAttack, Round
from stoic.adversaries.budgets import Budget, Frequency, Ledger, Magnitude, Unlimited, cube_root
from stoic.adversaries.corruption import Clipping, Flip, Later, Subtraction, TopK
from stoic.adversaries.frequency import Always, Clairvoyant, ClairvoyantSetting, Replace
from stoic.adversaries.inputs import (
    GaussianMove,
    LowestBound,
    Move,
    Perturbation,
    RandomMove,
    Stay,
    WorstCase,
)
from stoic.adversaries.noise import (
    Empirical,
    Gaussian,
    Noise,
    Pareto,
    Stable,
    StudentT,
    estimated_moment,
)

# The conformance tests run every check on these: add a new attack or noise here.
ATTACKS: tuple[type[Attack], ...] = (
    NoAttack, Clairvoyant, Replace, Always, Clipping, Subtraction, TopK, Flip, Later,
)  # fmt: skip
NOISES: tuple[type[Noise], ...] = (Gaussian, StudentT, Stable, Pareto, Empirical)
PERTURBATIONS: tuple[type[Perturbation], ...] = (
    Stay, RandomMove, LowestBound, WorstCase, GaussianMove,
)  # fmt: skip

__all__ = [
    "ATTACKS", "NOISES", "PERTURBATIONS", "Adversary", "Always", "Attack", "Budget", "Clairvoyant",
    "ClairvoyantSetting", "Clipping", "Empirical", "Flip", "Frequency", "Gaussian", "GaussianMove",
    "Later", "Ledger", "LowestBound", "Magnitude", "Move", "NoAttack", "Noise", "Pareto",
    "Perturbation", "RandomMove", "Replace", "Round", "Stable", "Stay", "StudentT", "Subtraction",
    "TopK", "Unlimited", "WorstCase", "cube_root", "estimated_moment",
]  # fmt: skip
