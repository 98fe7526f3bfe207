"""Second looks, against loops that count by hand."""

import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from stoic import recipes
from stoic.confidence import Fixed
from stoic.defences import Plateau
from stoic.domains import Box
from stoic.kernels import Matern52, Scaled
from stoic.learner import Learner
from stoic.models import GaussianProcess
from stoic.policies import UCB, ExpectedImprovement, Requery
from stoic.posteriors import Prior
from stoic.recipes import Parts

BOX = Box([0.0, 0.0], [2.0, 50.0])
PRIOR = Prior(Scaled(Matern52(np.array([0.5, 10.0])), 1.0), 0.01)
BOUNDED = Plateau(half_width=2.0, shape=0.1, centre=0.0)  # nothing beyond +-2 is believed
CONFIDENCES = np.array([2.0, 50.0])


def learner(policy=None, domain=BOX):
    model = GaussianProcess(PRIOR, BOUNDED)
    return Learner(domain, Parts(model, Fixed(2.0), policy or Requery(UCB(), 1.0)), seed=0)


def by_hand(x, y, trust, posterior, rate, pending=(), failed=()):
    """Places to ask again, the highest result first: one pass, one result at a time."""
    believed = [i for i in range(len(y)) if trust[i] >= 0.5]
    best = max(float(posterior.predict(x[[i]])[0][0]) for i in believed)
    lies = round(len(y) ** (1 / 3), 9)
    found = []
    for i in sorted(range(len(y)), key=lambda i: (-y[i] if np.isfinite(y[i]) else np.inf, i)):
        if i in believed or not np.isfinite(y[i]) or y[i] <= best + 2.0 * math.sqrt(PRIOR.noise):
            continue

        def here(point, i=i):
            return float(PRIOR.kernel(x[[i]], point[None])[0, 0]) >= 0.9  # of variance 1

        contradict = sum(here(x[j]) for j in believed)
        refused = sum(here(x[j]) for j in range(len(y)) if j not in believed and j != i)
        refused += sum(here(point) for point in failed)
        asked = any(here(point) for point in [*pending, *found])
        if contradict <= rate * lies and refused <= lies and not asked:
            found.append(x[i])
    return found


@pytest.mark.parametrize("seed", range(20))
def test_the_places_are_those_counted_by_hand(seed):
    # A few places, so that results share them; some high, some crashed, some infinite.
    rng = np.random.default_rng(seed)
    rate = float(rng.choice([0.0, 0.5, 1.0]))
    places = BOX.sample(6, rng)
    x = places[rng.integers(6, size=30)] + 0.1 * CONFIDENCES * rng.uniform(-1.0, 1.0, (30, 2))
    x = np.clip(x, BOX.lower, BOX.upper)
    y = rng.normal(0.0, 0.3, 30)
    high = rng.random(30) < 0.3
    y[high] = rng.choice([5.0, 9.0, 25.0, np.inf, np.nan, -np.inf, -20.0], high.sum())
    agent = learner(Requery(UCB(), rate))
    agent.tell(x, y)
    agent.tell(places[1], failed="transient")
    pending = places[:1]
    expected = by_hand(x, y, agent.trust, agent.posterior, rate, pending, places[1:2])
    asked = agent.ask_batch(8, pending=pending)
    again = [choice for choice in asked if choice.notes.get("second look")]
    assert len(again) == len(expected)
    for choice, place in zip(again, expected, strict=True):
        assert_array_equal(choice.x, place)


def test_some_of_those_examples_have_places_and_some_have_none():
    counts = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        agent = learner(Requery(UCB()))
        agent.tell(BOX.sample(9, rng), np.append(rng.normal(0.0, 0.3, 8), [9.0, 0.0][seed % 2]))
        counts.append(sum("second look" in c.notes for c in agent.ask_batch(3)))
    assert counts == [1, 0] * 10


def test_where_all_is_believed_it_is_the_policy_within():
    rng = np.random.default_rng(0)
    x, y = BOX.sample(12, rng), rng.normal(0.0, 0.5, 12)
    for then in (UCB(), ExpectedImprovement()):
        alone, wrapped = learner(then), learner(Requery(then))
        for agent in (alone, wrapped):
            agent.tell(x, y)
        for _ in range(3):
            a, b = alone.ask(), wrapped.ask()
            assert_array_equal(a.x, b.x)
            alone.tell(a.x, 0.1)
            wrapped.tell(b.x, 0.1)


def test_an_honest_summit_is_found_again_once_lies_are_rarer_than_their_bound():
    # One honest 9, then four lies beside it that agree. The count is 4 at t = 64.
    top = np.array([1.5, 40.0])
    agent = learner(Requery(UCB(), 1.0))
    agent.tell(top, 9.0)
    beside = np.array([[0.0, 0.1], [0.0, 0.2], [0.01, 0.0], [0.01, 0.1]])
    agent.tell(top + beside, [0.0, 0.1, -0.1, 0.0])
    asked_again = []
    for t in range(5, 70):
        choice = agent.ask()
        if "second look" in choice.notes:
            asked_again.append(t)
        agent.tell(choice.x, 9.0 if np.abs(choice.x - top).max() < 0.3 else 0.0)
    assert asked_again[0] == 64


@pytest.mark.parametrize("rate", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("absurd", [100.0, np.nan, None])
def test_what_is_always_absurd_is_not_asked_for_ever(rate, absurd):
    # After one 100, every result in a corner is 100, or a crash without a kind or with one.
    agent = learner(Requery(UCB(), rate))
    agent.tell(BOX.sample(10, np.random.default_rng(1)), np.zeros(10))
    agent.tell([0.0, 0.0], 100.0)
    looks = 0
    for _ in range(60):
        choice = agent.ask()
        looks += "second look" in choice.notes
        corner = (choice.x < 0.05).all()
        if corner and absurd is None:
            agent.tell(choice.x, failed="bad")
        else:
            agent.tell(choice.x, absurd if corner else 0.0)
    assert 1 <= looks <= math.cbrt(71) + 2


def test_a_part_of_the_domain_and_rows_of_a_list():
    grid = BOX.grid(8)
    agent = learner(Requery(UCB()), grid)
    agent.tell(grid.points[[3, 20, 40]], [0.0, 9.0, 0.1])
    assert agent.ask().arm == 20
    assert agent.ask(among=np.arange(10, 20)).arm in range(10, 20)
    assert learner(Requery(UCB()), grid).ask().arm is not None


def test_a_rate_is_a_number():
    with pytest.raises(ValueError, match="rate of repeats"):
        Requery(UCB(), -1.0)


def test_our_recipe_looks_again_unless_told_otherwise():
    assert isinstance(Learner(BOX, recipes.loo_gp_ucb()).policy, Requery)
    assert isinstance(Learner(BOX, recipes.loo_gp_ucb(policy=UCB())).policy, UCB)
