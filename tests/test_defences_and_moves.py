"""Results that lie and inputs that move, at once: every defence's model under every such policy."""

import math
from dataclasses import replace
from inspect import Parameter, signature

import numpy as np
import pytest

from stoic import recipes
from stoic.domains import Box
from stoic.learner import Learner
from stoic.policies import Initial
from stoic.recipes import advers_1, advers_2, any_threat, stable_opt
from stoic.satisficing import Certificate

BOX = Box([0.0, 0.0], [1.0, 1.0])
DOMAINS = {"grid": BOX.grid(8), "box": BOX}


def _alone(recipe):
    """Whether it needs no more than a domain."""
    return all(p.default is not Parameter.empty for p in signature(recipe).parameters.values())


MODELLED = sorted(
    recipe.__name__ for recipe in recipes.RECIPES if _alone(recipe) and recipe is not any_threat
)


def test_the_recipes_that_need_a_domain_only_are_found():
    assert {"gp_ucb", "a2_rcgp_ucb", "fc_rcgp_ucb", "advers_2"} <= set(MODELLED)


# Each recipe on one of the domains in turn, on both in the long suite.
PAIRS = [
    pytest.param(name, where, marks=pytest.mark.slow if (i + k) % 2 else ())
    for i, name in enumerate(MODELLED)
    for k, where in enumerate(DOMAINS)
]


@pytest.mark.parametrize(("name", "where"), PAIRS)
def test_a_defence_holds_while_inputs_move(name, where):
    domain = DOMAINS[where]
    model = getattr(recipes, name)()(domain).model
    for recipe, said in (
        (advers_1, {"threshold": 0.2}),
        (advers_2, {"threshold": 0.2}),
        (stable_opt, {"radius": 0.2}),
    ):
        parts = recipe(model=model, **said)(domain)
        learner = Learner(domain, replace(parts, policy=Initial(parts.policy, 3)), seed=0)
        for t in range(5):
            choice = learner.ask()
            domain.locate(choice.x)
            lie = 100.0 if t == 3 else 0.0
            learner.tell(choice.x, float(np.sin(4.0 * choice.x[0])) + lie)
        found = learner.recommend()
        assert domain.contains(found.x[None]).all()
        held = Certificate.of(found.notes)
        assert not math.isnan(held.value)
        assert not math.isnan(held.radius)
