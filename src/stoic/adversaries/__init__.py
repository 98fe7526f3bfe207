"""Who lies, how often, and the noise when nobody does."""

from stoic.adversaries.base import Adversary, Attack, NoAttack, Round
from stoic.adversaries.budgets import Budget, Frequency, Ledger, Magnitude, Unlimited, cube_root
from stoic.adversaries.corruption import Clipping, Flip, Later, Subtraction, TopK
from stoic.adversaries.frequency import Clairvoyant, ClairvoyantSetting, Replace
from stoic.adversaries.noise import (
    Empirical,
    Gaussian,
    Noise,
    Pareto,
    Stable,
    StudentT,
    estimated_moment,
)

# What the conformance tests run through every check; an attack or a noise is added here.
ATTACKS: tuple[type[Attack], ...] = (
    NoAttack,
    Clairvoyant,
    Replace,
    Clipping,
    Subtraction,
    TopK,
    Flip,
    Later,
)
NOISES: tuple[type[Noise], ...] = (Gaussian, StudentT, Stable, Pareto, Empirical)

__all__ = [
    "ATTACKS",
    "NOISES",
    "Adversary",
    "Attack",
    "Budget",
    "Clairvoyant",
    "ClairvoyantSetting",
    "Clipping",
    "Empirical",
    "Flip",
    "Frequency",
    "Gaussian",
    "Later",
    "Ledger",
    "Magnitude",
    "NoAttack",
    "Noise",
    "Pareto",
    "Replace",
    "Round",
    "Stable",
    "StudentT",
    "Subtraction",
    "TopK",
    "Unlimited",
    "cube_root",
    "estimated_moment",
]
