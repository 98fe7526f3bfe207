"""Protocols of feature maps.

Notation: m features, of which those of the points that matter span r <= m dimensions. ``basis`` is
(m, r) with orthonormal columns, and phi(x) = basis c(x) with coordinates c(x) of length r: linear
algebra is done in r dimensions, and ``basis`` leads back to the m features.
"""

from __future__ import annotations

from typing import Protocol

from stoic.data import Array, Observations
from stoic.domains import Domain
from stoic.kernels import Pull
from stoic.posteriors.places import Places
from stoic.posteriors.prior import Prior


class Embedding(Protocol):
    """Feature map, ready to be used.

    Attributes
    ----------
    features:
        m, the length of phi(x).
    basis:
        Orthonormal columns that span the features of all points that matter, shape (m, r).
    complete:
        True if the features represent the kernel everywhere. If not, k(x, x) - |phi(x)|^2 is
        missing variance, and must be added.
    """

    @property
    def features(self) -> int: ...

    @property
    def basis(self) -> Array: ...

    @property
    def complete(self) -> bool: ...

    def coordinates(self, x: Array) -> Array:
        """c(x), shape (n, r); known already for the ``points`` of the finite domain it is for."""

    def coordinates_wrt_x(self, x: Array) -> tuple[Array, Pull]:
        """c(x), and the map from weights (n, r) to the gradient in the rows of x (n, d)."""


class Features(Protocol):
    """Approximation of the kernel of a prior by features."""

    def check(self, domain: Domain, prior: Prior) -> None:
        """Refuse, with a ``ValueError``, a kernel or a domain that it cannot embed."""

    def __call__(
        self,
        domain: Domain,
        prior: Prior,
        observations: Observations,
        places: Places,
        previous: Embedding | None,
    ) -> Embedding:
        """Return the embedding given the observations, made at ``places``.

        ``previous`` is what it returned for fewer observations under the same prior: a hint, which
        is consumed.
        """
