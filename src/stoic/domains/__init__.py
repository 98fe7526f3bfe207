"""Where to look: finite sets and boxes, their points, and the search for a maximum on them.

Domains own maximisation. A surface says how high it is; ``Finite`` compares all its rows, ``Box``
climbs from many starts at once with analytic gradients. Points are always in the user's own units.
"""

from stoic.domains.base import Domain, Peak, Random, Surface, as_points
from stoic.domains.box import Box, Lattice
from stoic.domains.finite import Among, Finite

__all__ = [
    "Among",
    "Box",
    "Domain",
    "Finite",
    "Lattice",
    "Peak",
    "Random",
    "Surface",
    "as_points",
]
