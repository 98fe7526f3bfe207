"""From what was told to what is conditioned on."""

from stoic.defences.anchored import Anchored
from stoic.defences.base import Defence
from stoic.defences.plateau import AdaptivePlateau, Plateau
from stoic.defences.trust import Trust

DEFENCES = (Trust, Plateau, AdaptivePlateau, Anchored)

__all__ = ["DEFENCES", "AdaptivePlateau", "Anchored", "Defence", "Plateau", "Trust"]
