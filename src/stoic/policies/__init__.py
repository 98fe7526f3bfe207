"""Where to look next."""

from stoic.policies.base import Band, Policy, View
from stoic.policies.designs import Design, Plan, RareSwitching
from stoic.policies.elimination import Elimination
from stoic.policies.initial import Initial
from stoic.policies.near_optimal import NearOptimal
from stoic.policies.ucb import UCB, UpperBound

POLICIES = (UCB, Initial, Elimination)

__all__ = [
    "POLICIES",
    "UCB",
    "Band",
    "Design",
    "Elimination",
    "Initial",
    "NearOptimal",
    "Plan",
    "Policy",
    "RareSwitching",
    "UpperBound",
    "View",
]
