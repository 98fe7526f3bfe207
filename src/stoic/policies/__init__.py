"""Policies: acquisition rules that choose the next inputs to evaluate."""

from stoic.confidence.base import Band
from stoic.policies.base import Policy, View
from stoic.policies.designs import Design, Plan, RareSwitching
from stoic.policies.elimination import Elimination
from stoic.policies.improvement import ExpectedImprovement, LogExpectedImprovement
from stoic.policies.initial import Initial
from stoic.policies.near_optimal import NearOptimal
from stoic.policies.requery import Requery
from stoic.policies.satisficing import Satisficing
from stoic.policies.stable import StableOpt
from stoic.policies.ucb import UCB, UpperConfidenceBound
from stoic.policies.verified import VerifiedImprovement

POLICIES = (
    UCB,
    ExpectedImprovement,
    VerifiedImprovement,
    Requery,
    Initial,
    Elimination,
    Satisficing,
    StableOpt,
)

__all__ = [
    "POLICIES",
    "UCB",
    "Band",
    "Design",
    "Elimination",
    "ExpectedImprovement",
    "Initial",
    "LogExpectedImprovement",
    "NearOptimal",
    "Plan",
    "Policy",
    "RareSwitching",
    "Requery",
    "Satisficing",
    "StableOpt",
    "UpperConfidenceBound",
    "VerifiedImprovement",
    "View",
]
