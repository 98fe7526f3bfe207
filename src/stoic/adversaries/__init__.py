"""Who lies, how often, and the noise when nobody does."""

from stoic.adversaries.base import Adversary, Attack, NoAttack
from stoic.adversaries.budgets import Budget, Frequency, Ledger, Unlimited, cube_root
from stoic.adversaries.frequency import Clairvoyant, ClairvoyantSetting, Replace
from stoic.adversaries.noise import Gaussian, Noise

# What the conformance tests run through every check; an attack or a noise is added here.
ATTACKS: tuple[type[Attack], ...] = (NoAttack, Clairvoyant, Replace)
NOISES: tuple[type[Noise], ...] = (Gaussian,)

__all__ = [
    "ATTACKS",
    "NOISES",
    "Adversary",
    "Attack",
    "Budget",
    "Clairvoyant",
    "ClairvoyantSetting",
    "Frequency",
    "Gaussian",
    "Ledger",
    "NoAttack",
    "Noise",
    "Replace",
    "Unlimited",
    "cube_root",
]
