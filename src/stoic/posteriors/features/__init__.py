"""Finite-dimensional embeddings of a kernel: k(x, z) ~ phi(x)' phi(z)."""

from stoic.posteriors.features.base import Embedding, Features
from stoic.posteriors.features.fourier import Fourier
from stoic.posteriors.features.nystroem import Nystroem

__all__ = ["Embedding", "Features", "Fourier", "Nystroem"]
