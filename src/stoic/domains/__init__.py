"""Search spaces: finite sets and boxes, and the maximisation of acquisition functions on them.

Domains own maximisation. An ``Acquisition`` is a function to maximise; ``Finite`` compares all its
rows, ``Box`` ascends analytic gradients from many starts at once. Points are in the user's own
units.
"""

from stoic.domains.base import PLACE, SAME, TOLERANCE, Acquisition, Domain, Peak, Random, as_points
from stoic.domains.box import Box, Lattice
from stoic.domains.finite import Among, Finite
from stoic.domains.tree import Tree

__all__ = [
    "PLACE",
    "SAME",
    "TOLERANCE",
    "Acquisition",
    "Among",
    "Box",
    "Domain",
    "Finite",
    "Lattice",
    "Peak",
    "Random",
    "Tree",
    "as_points",
]
