"""Confidence widths: beta^(1/2), in posterior standard deviations."""

from stoic.confidence.base import Confidence
from stoic.confidence.bayesian import CompactUnion, FiniteUnion
from stoic.confidence.corruption import Averaged, Budgeted, NonAdaptive
from stoic.confidence.enlarged import Enlarged, influence, psi
from stoic.confidence.fixed import Fixed, Schedule
from stoic.confidence.frequentist import BoundedNoise, SelfNormalised
from stoic.confidence.heavy_tails import FeatureTruncation, GrowingTruncation
from stoic.confidence.misspecified import Misspecified

WIDTHS = (
    Fixed,
    Schedule,
    FiniteUnion,
    CompactUnion,
    SelfNormalised,
    BoundedNoise,
    Enlarged,
    Budgeted,
    Averaged,
    NonAdaptive,
    GrowingTruncation,
    FeatureTruncation,
    Misspecified,
)

__all__ = [
    "WIDTHS",
    "Averaged",
    "BoundedNoise",
    "Budgeted",
    "CompactUnion",
    "Confidence",
    "Enlarged",
    "FeatureTruncation",
    "FiniteUnion",
    "Fixed",
    "GrowingTruncation",
    "Misspecified",
    "NonAdaptive",
    "Schedule",
    "SelfNormalised",
    "influence",
    "psi",
]
