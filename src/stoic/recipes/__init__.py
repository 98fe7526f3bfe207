"""Recipes: the methods of the papers, each composed of a model, a confidence and a policy.

A recipe is a value, as in ``rgp_ucb(budget=5.0)``: it prints as it is written, pickles, compares,
and knows no domain. ``Learner(domain, recipe, seed=0)`` builds its learner on a domain, and
:func:`~stoic.balancing.build` also one that balances several. With a ``prior`` its hyperparameters
are used as they are; without one they are fitted before every choice, in units of the domain's
widths and of the results' scale. ``policy`` is by default :class:`~stoic.policies.ucb.UCB`: a point
whose results are rejected is queried again as long as its bound is the highest. Others wrap it:
``Initial(UCB(retries=1), 5)``. The constants of the theorems are one value,
:class:`~stoic.confidence.theory.Theory`.

Phased recipes need a finite domain and a prior, and plan their own first points.
"""

from collections.abc import Callable
from typing import Any

from stoic.recipes.balanced import Threats, any_threat, contextual_ec_gp_ucb
from stoic.recipes.base import Balancing, Parts, Recipe, recipe
from stoic.recipes.corruption import linear_reduction, rgp_pe, rgp_ucb
from stoic.recipes.heavy_tails import ata_gp_ucb, mom_gp_ucb, tgp_ucb
from stoic.recipes.inputs import advers_1, advers_2, advers_g, stable_opt
from stoic.recipes.misspecification import ec_gp_ucb, phased_gp_us
from stoic.recipes.outliers import ActingPlateau, Anchor, a2_rcgp_ucb, fc_rcgp_ucb, loo_gp_ucb
from stoic.recipes.plain import gp_ucb
from stoic.recipes.robust import robust
from stoic.recipes.student_t import diagnostics_gp_ucb, tp_ucb

# The conformance tests and the tables of the documentation iterate over these.
SEQUENTIAL: tuple[Callable[..., Recipe[Parts]], ...] = (
    gp_ucb,
    fc_rcgp_ucb,
    a2_rcgp_ucb,
    loo_gp_ucb,
    tp_ucb,
    diagnostics_gp_ucb,
    rgp_ucb,
    tgp_ucb,
    ata_gp_ucb,
    mom_gp_ucb,
    ec_gp_ucb,
)
# Against perturbed inputs, on any domain.
MOVED: tuple[Callable[..., Recipe[Parts]], ...] = (advers_1, advers_2, advers_g, stable_opt)
PHASED: tuple[Callable[..., Recipe[Parts]], ...] = (rgp_pe, linear_reduction, phased_gp_us)
# Model selection among learners.
BALANCED: tuple[Callable[..., Recipe[Balancing]], ...] = (contextual_ec_gp_ucb, any_threat)
RECIPES: tuple[Callable[..., Recipe[Any]], ...] = (robust, *SEQUENTIAL, *MOVED, *PHASED, *BALANCED)

__all__ = [
    "BALANCED",
    "MOVED",
    "PHASED",
    "RECIPES",
    "SEQUENTIAL",
    "ActingPlateau",
    "Anchor",
    "Balancing",
    "Parts",
    "Recipe",
    "Threats",
    "a2_rcgp_ucb",
    "advers_1",
    "advers_2",
    "advers_g",
    "any_threat",
    "ata_gp_ucb",
    "contextual_ec_gp_ucb",
    "diagnostics_gp_ucb",
    "ec_gp_ucb",
    "fc_rcgp_ucb",
    "gp_ucb",
    "linear_reduction",
    "loo_gp_ucb",
    "mom_gp_ucb",
    "phased_gp_us",
    "recipe",
    "rgp_pe",
    "rgp_ucb",
    "robust",
    "stable_opt",
    "tgp_ucb",
    "tp_ucb",
]
