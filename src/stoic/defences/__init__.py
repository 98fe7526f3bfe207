"""Defences: from observations to the targets of a model."""

from stoic.defences.anchored import Anchored
from stoic.defences.base import Defence
from stoic.defences.diagnostics import Diagnostics
from stoic.defences.median_of_means import MedianOfMeans
from stoic.defences.plateau import AdaptivePlateau, Plateau
from stoic.defences.truncation import AdaptiveTruncation, Truncation
from stoic.defences.trust import Trust

DEFENCES = (
    Trust,
    Plateau,
    AdaptivePlateau,
    Anchored,
    Diagnostics,
    Truncation,
    AdaptiveTruncation,
    MedianOfMeans,
)

__all__ = [
    "DEFENCES",
    "AdaptivePlateau",
    "AdaptiveTruncation",
    "Anchored",
    "Defence",
    "Diagnostics",
    "MedianOfMeans",
    "Plateau",
    "Truncation",
    "Trust",
]
