"""The papers' methods, each a sentence in the grammar of the library; one file a family.

Every recipe takes a domain first and builds a :class:`~stoic.learner.Learner`. With a ``prior`` its
hyperparameters are used as they are; without one they are fitted before every question, in units of
the domain's widths and of the results' scale. ``initial`` points of a design come first. A place
whose results are not believed is asked again as long as its bound is the highest, or ``retries``
times (:class:`~stoic.policies.ucb.UCB`).
"""

from collections.abc import Callable

from stoic.learner import Learner
from stoic.recipes.heavy_tails import ata_gp_ucb, mom_gp_ucb, tgp_ucb
from stoic.recipes.outliers import a2_rcgp_ucb, fc_rcgp_ucb
from stoic.recipes.plain import gp_ucb

# What the conformance tests and the tables of the documentation run through.
RECIPES: tuple[Callable[..., Learner], ...] = (
    gp_ucb,
    fc_rcgp_ucb,
    a2_rcgp_ucb,
    tgp_ucb,
    ata_gp_ucb,
    mom_gp_ucb,
)

__all__ = [
    "RECIPES",
    "a2_rcgp_ucb",
    "ata_gp_ucb",
    "fc_rcgp_ucb",
    "gp_ucb",
    "mom_gp_ucb",
    "tgp_ucb",
]
