"""Second looks: which results are asked again, and when they are given up."""

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
BOUNDED = Plateau(half_width=2.0, shape=0.1, centre=0.0)  # nothing beyond +-2 is believed
LENGTHSCALES = np.array([0.5, 10.0])
PRIOR = Prior(Scaled(Matern52(LENGTHSCALES), 1.0), 0.01)


def learner(policy=None, domain=BOX):
    model = GaussianProcess(PRIOR, BOUNDED)
    return Learner(domain, Parts(model, Fixed(2.0), policy or Requery(UCB(), 1.0)), seed=0)


TOP = np.array([1.0, 25.0])
FAR = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 50.0], [2.0, 50.0]])


def told(policy=None, high=9.0, beside=0, rejected=0, at=0.15, n=27):
    """A learner of n results: one high at the top, some beside it, and 0 far away."""
    agent = learner(policy)
    near = TOP + at * LENGTHSCALES * np.random.default_rng(0).choice([-1.0, 1.0], (n, 2))
    x = np.concatenate([TOP[None], near[: beside + rejected], np.tile(FAR, (n, 1))])[:n]
    y = np.zeros(n)
    y[0], y[1 + beside : 1 + beside + rejected] = high, -20.0
    agent.tell(x, y)
    return agent


def asked_again(agent, n=4, **more):
    return [
        choice.x.tolist()
        for choice in agent.ask_batch(n, **more)
        if choice.notes.get("second look")
    ]


@pytest.mark.parametrize(("high", "again"), [(9.0, True), (np.inf, False), (np.nan, False),
                                             (-9.0, False), (1.0, False)])  # fmt: skip
def test_a_rejected_result_that_would_be_the_best_is_asked_again_where_it_was(high, again):
    agent = told(high=high)
    assert asked_again(agent) == [TOP.tolist()] * again
    assert asked_again(agent) == []  # it is pending
    assert asked_again(told(high=high), pending=TOP + 0.01) == []


def test_the_highest_is_first_and_one_in_a_neighbourhood_is_enough():
    agent = told()
    agent.tell(TOP + 0.1 * LENGTHSCALES, 11.0)
    agent.tell([1.9, 10.0], 25.0)
    agent.tell([0.1, 10.0], 7.0)
    agent.tell([1.9, 40.0], 12.0, noise=25.0)
    agent.tell([0.1, 40.0], 7.0, noise=25.0)  # not clearly above what is believed
    agent.tell([1.0, 5.0], 1.5)
    agent.tell([0.1, 25.0], 3.0, noise=1.0)  # nor above the best that is
    expected = [[1.9, 10.0], [1.9, 40.0], (TOP + 0.1 * LENGTHSCALES).tolist(), [0.1, 10.0]]
    choices = agent.ask_batch(2) + agent.ask_batch(4)
    assert [choice.x.tolist() for choice in choices[:4]] == expected
    assert [choice.notes for choice in choices] == [{"second look": True}] * 4 + [{}] * 2


def test_what_is_contradicted_stands_for_no_other():
    agent, side = learner(Requery(UCB(), 0.0)), 0.3 * LENGTHSCALES * [1.0, 0.0]
    agent.tell(np.array([TOP - side, TOP, TOP + side]), [0.0, 11.0, 9.0])
    assert asked_again(agent) == [(TOP + side).tolist()]


@pytest.mark.parametrize(("rate", "most"), [(0.0, 0), (0.5, 1), (1.0, 3)])
def test_it_takes_more_than_rate_times_the_cube_root_of_results_to_contradict(rate, most):
    for beside in (most, most + 1):
        again = told(Requery(UCB(), rate), beside=beside)
        assert bool(asked_again(again)) == (beside == most)
    assert asked_again(told(Requery(UCB(), rate), beside=most + 1, at=0.5))  # too far to count


def test_after_more_failures_and_rejections_than_the_cube_root_it_is_given_up():
    for rejected, failures, again in ((3, 0, True), (4, 0, False), (1, 2, True), (1, 3, False)):
        agent = told(rejected=rejected)
        for _ in range(failures):
            agent.tell(TOP, failed="infeasible")
        assert bool(asked_again(agent)) == again


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
    # One honest 9, then four lies beside it that agree: few of many results, but not of ten.
    top = np.array([1.5, 40.0])
    agent = learner(Requery(UCB(), 1.0))
    agent.tell(top, 9.0)
    beside = np.array([[0.0, 0.1], [0.0, 0.2], [0.01, 0.0], [0.01, 0.1]])
    agent.tell(top + beside, [0.0, 0.1, -0.1, 0.0])
    looked = []
    for _ in range(65):
        choice = agent.ask()
        looked.append("second look" in choice.notes)
        agent.tell(choice.x, 9.0 if np.abs(choice.x - top).max() < 0.3 else 0.0)
    assert any(looked)
    assert not any(looked[:40])


@pytest.mark.parametrize(
    ("rate", "absurd"), [(0.0, 100.0), (0.5, None), (1.0, 100.0), (1.0, np.nan)]
)
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
    assert agent.ask(among=np.arange(10, 20)).arm in range(10, 20)
    assert agent.ask().arm == 20
    assert learner(Requery(UCB()), grid).ask().arm is not None


def test_a_rate_is_a_number():
    with pytest.raises(ValueError, match="rate of repeats"):
        Requery(UCB(), -1.0)


def test_our_recipe_looks_again():
    assert isinstance(Learner(BOX, recipes.loo_gp_ucb()).policy, Requery)
