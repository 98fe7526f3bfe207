import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import literal
from stoic.confidence import Fixed
from stoic.defences import Plateau, Trust
from stoic.domains import Box
from stoic.kernels import Matern32, Matern52, Scaled
from stoic.learner import Learner
from stoic.models import GaussianProcess
from stoic.policies import UCB, Band, UpperConfidenceBound
from stoic.posteriors import Prior
from stoic.recipes import Parts

GRID = Box([2.0], [10.0]).grid(50)
PRIOR = Prior(Scaled(Matern32(1.5), 2.0), 0.1, 0.5)


def learner(domain=GRID, policy=None, defence=None, width=2.0, prior=PRIOR):
    model = GaussianProcess(prior, defence or Trust())
    return Learner(domain, Parts(model, Fixed(width), policy or UCB()), seed=0)


def value(x):
    return float(np.sin(x[0]) + 0.1 * x[0])


def literal_ucb(x, y, domain, width, noise=None, mean_of=None):
    """argmax of the bound; with ``mean_of`` = (x, y), the mean of other data: a hallucination."""
    noise = np.full(len(x), PRIOR.noise) if noise is None else noise
    points = domain.points
    mean, covariance = literal.posterior(PRIOR.kernel, x, y, noise, points, PRIOR.mean)
    if mean_of is not None:
        known, told = mean_of
        mean, _ = literal.posterior(
            PRIOR.kernel, known, told, np.full(len(known), PRIOR.noise), points, PRIOR.mean
        )
    bound = mean + width * np.sqrt(np.diagonal(covariance))
    # Neighbours of equal height up to rounding are as good.
    return int(np.argmax(bound)), bound


def test_every_choice_is_the_literal_argmax():
    agent = learner()
    x, y = np.empty((0, 1)), np.empty(0)
    for _ in range(40):
        choice = agent.ask()
        best, bound = literal_ucb(x, y, GRID, 2.0)
        assert bound[choice.arm] >= bound[best] - 1e-9
        agent.tell(choice.x, value(choice.x))
        x, y = np.append(x, choice.x[None], axis=0), np.append(y, value(choice.x))


@pytest.mark.parametrize("one_by_one", [False, True])
def test_a_batch_is_gp_bucb_literally(one_by_one):
    # The mean of what was told, the deviation of what was told or is on its way.
    agent = learner()
    x, y = np.empty((0, 1)), np.empty(0)
    for _ in range(8):
        choices = [agent.ask() for _ in range(4)] if one_by_one else agent.ask_batch(4)
        on_their_way = x
        for choice in choices:
            best, bound = literal_ucb(
                on_their_way, np.zeros(len(on_their_way)), GRID, 2.0, mean_of=(x, y)
            )
            assert bound[choice.arm] >= bound[best] - 1e-9
            on_their_way = np.append(on_their_way, choice.x[None], axis=0)
        for choice in choices:
            agent.tell(choice.x, value(choice.x))
        x = on_their_way
        y = np.array([value(row) for row in x])


def test_a_batch_on_a_box_spreads_out():
    agent = learner(Box([2.0], [10.0]))
    agent.tell([[3.0], [6.0]], [0.3, 0.9])
    batch = np.sort([choice.x[0] for choice in agent.ask_batch(5)])
    assert np.diff(batch).min() > 0.1
    alone = learner(Box([2.0], [10.0]))
    alone.tell([[3.0], [6.0]], [0.3, 0.9])
    first = alone.ask().x[0]
    assert np.abs(batch - first).min() < 1e-6


def test_two_questions_in_a_row_are_two_different_ones_where_it_matters():
    agent = learner(width=5.0)
    assert agent.ask().arm != agent.ask().arm


def test_the_bound_is_mean_plus_width_deviations_with_its_gradient():
    agent = learner(Box([2.0], [10.0]))
    agent.tell([[3.0], [6.0], [6.5]], [0.3, 0.9, 0.1])
    posterior, x = agent.posterior, np.linspace(2.1, 9.9, 17)[:, None]
    surface = UpperConfidenceBound(Band(posterior, 1.7))
    mean, std = posterior.predict(x)
    assert_allclose(surface(x), mean + 1.7 * std, rtol=1e-12)
    heights, slopes = surface.with_gradient(x)
    assert_allclose(heights, mean + 1.7 * std, rtol=1e-9)
    numeric = (surface(x + 1e-6) - surface(x - 1e-6)) / 2e-6
    assert_allclose(slopes[:, 0], numeric, atol=1e-5)
    lower, upper = Band(posterior, 1.7).bounds(x)
    assert_allclose(upper - lower, 3.4 * std, rtol=1e-10)


def test_a_place_that_is_never_believed_is_given_up_after_its_retries():
    # f is best where every result is absurd: for ever with the papers' rule, not with retries.
    def crash(x):
        return -1e9 if 5.0 < x[0] < 6.0 else value(x)

    prior = Prior(Scaled(Matern52(1.0), 4.0), 0.01, 0.0)
    asked = {}
    for retries in (None, 2):
        agent = learner(GRID, UCB(retries), Plateau(4.0, 0.5, 0.0), 4.0, prior)
        asked[retries] = []
        for _ in range(60):
            choice = agent.ask()
            asked[retries].append(choice.x[0])
            agent.tell(choice.x, crash(choice.x))
    crashes = {k: sum(5.0 < x < 6.0 for x in v) for k, v in asked.items()}
    assert crashes[None] >= 30  # it has the highest bound and stays there
    assert crashes[2] <= 25
    _, visits = np.unique([x for x in asked[2] if 5.0 < x < 6.0], return_counts=True)
    assert visits.max() <= 3  # the first time, and two retries


def test_retries_change_nothing_while_everything_is_believed():
    agents = [learner(policy=UCB(retries)) for retries in (None, 1)]
    for _ in range(30):
        choices = [agent.ask() for agent in agents]
        assert choices[0].arm == choices[1].arm
        for agent, choice in zip(agents, choices, strict=True):
            agent.tell(choice.x, value(choice.x))


def test_only_what_may_be_chosen_is_chosen():
    agent = learner()
    rng = np.random.default_rng(0)
    for _ in range(20):
        rows = rng.choice(50, size=5, replace=False)
        choice = agent.ask(among=rows)
        assert choice.arm in rows
        agent.tell(choice.x, value(choice.x))
    box = learner(Box([2.0], [10.0]))
    assert 4.0 <= box.ask(among=Box([4.0], [5.0])).x[0] <= 5.0
    assert_array_equal(agent.ask(among=np.arange(50) == 7).x, GRID.points[7])
