"""Confidence widths: beta^(1/2), in posterior standard deviations."""

from stoic.confidence.base import Confidence
from stoic.confidence.bayesian import CompactUnion, FiniteUnion
from stoic.confidence.corruption import CorruptionBudget, EpochBudget, NonAdaptive
from stoic.confidence.enlarged import CorruptionCount, influence, psi
from stoic.confidence.fixed import Fixed, Schedule
from stoic.confidence.frequentist import BoundedNoise, SelfNormalised
from stoic.confidence.heavy_tails import FeatureTruncation, GrowingTruncation
from stoic.confidence.misspecified import Misspecified
from stoic.confidence.theory import PRACTICE, Theory

CONFIDENCES = (
    Fixed,
    Schedule,
    FiniteUnion,
    CompactUnion,
    SelfNormalised,
    BoundedNoise,
    CorruptionCount,
    CorruptionBudget,
    EpochBudget,
    NonAdaptive,
    GrowingTruncation,
    FeatureTruncation,
    Misspecified,
)

__all__ = [
    "CONFIDENCES",
    "PRACTICE",
    "BoundedNoise",
    "CompactUnion",
    "Confidence",
    "CorruptionBudget",
    "CorruptionCount",
    "EpochBudget",
    "FeatureTruncation",
    "FiniteUnion",
    "Fixed",
    "GrowingTruncation",
    "Misspecified",
    "NonAdaptive",
    "Schedule",
    "SelfNormalised",
    "Theory",
    "influence",
    "psi",
]
