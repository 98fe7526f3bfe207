"""Expected hypervolume improvement against quadrature, and choices that verify."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from stoic import recipes
from stoic.data import Observations
from stoic.domains import Box
from stoic.kernels import RBF, Scaled
from stoic.objectives import MultiLearner
from stoic.pareto import boxes_beyond, hypervolume
from stoic.policies import Initial, VerifiedImprovement
from stoic.policies.hypervolume import (
    LogHypervolumeImprovement,
    best_trust,
    means_at,
    reference_point,
)
from stoic.posteriors import Prior
from stoic.posteriors.base import as_observed
from stoic.posteriors.exact import Exact

NOISE = 1e-4


def posteriors(k, seed=0, n=6, scale=1.0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(n, 2))
    found = []
    for _ in range(k):
        prior = Prior(Scaled(RBF(0.4), scale**2), NOISE * scale**2)
        rows = Observations(x, scale * rng.standard_normal(n), np.full(n, np.nan))
        found.append(Exact.condition(prior, as_observed, rows, as_observed(rows, prior)))
    return x, found


@pytest.mark.parametrize("k", [2, 3])
def test_it_is_the_expected_improvement_of_draws(k):
    x, models = posteriors(k)
    front, reference = means_at(models, x), np.full(k, -1.5)
    surface = LogHypervolumeImprovement.over(models, front, reference)
    at = np.random.default_rng(1).uniform(size=(5, 2))
    # Of stratified draws of the mean after one noisy observation, independent in the outputs.
    size = {2: 400, 3: 60}[k]
    grid = stats.norm.ppf((np.arange(size) + 0.5) / size)
    draws = np.stack(np.meshgrid(*[grid] * k, indexing="ij"), axis=-1).reshape(-1, k)
    lower, upper = boxes_beyond(front, reference)
    unit = np.prod([model.max_variance**0.5 for model in models])
    for point, height in zip(at, surface(at), strict=True):
        mean, std = np.array([model.predict(point[None]) for model in models])[..., 0].T
        f = mean + std**2 / np.sqrt(std**2 + NOISE) * draws
        gains = np.prod(np.maximum(np.minimum(f[:, None], upper) - lower, 0.0), axis=2).sum(axis=1)
        assert np.exp(height) * unit == pytest.approx(gains.mean(), rel=0.05, abs=1e-3)


@pytest.mark.parametrize("k", [2, 3])
def test_its_gradient_is_its_slope(k):
    x, models = posteriors(k)
    surface = LogHypervolumeImprovement.over(models, means_at(models, x), np.full(k, -1.5))
    at = np.random.default_rng(2).uniform(size=(6, 2))
    height, slope = surface.with_gradient(at)
    assert height == pytest.approx(surface(at))
    for column in range(2):
        step = np.zeros(2)
        step[column] = 1e-6
        numeric = (surface(at + step) - surface(at - step)) / 2e-6
        assert slope[:, column] == pytest.approx(numeric, rel=1e-3, abs=1e-3)


def test_it_has_a_slope_where_the_improvement_underflows():
    _, models = posteriors(2)
    surface = LogHypervolumeImprovement.over(models, np.full((1, 2), 1e3), np.full(2, 900.0))
    height, slope = surface.with_gradient(np.array([[0.3, 0.4], [0.8, 0.1]]))
    assert (height < -1e4).all()
    assert np.isfinite(slope).all()
    assert (np.abs(slope).max(axis=1) > 0.0).all()


def test_units_of_the_outputs_do_not_matter():
    heights = []
    for scale in (1.0, 1e-3, 1e6):
        x, models = posteriors(2, scale=scale)
        means = means_at(models, x)
        surface = LogHypervolumeImprovement.over(models, means, reference_point(means))
        heights.append(surface(np.random.default_rng(1).uniform(size=(5, 2))))
    assert heights[1] == pytest.approx(heights[0], rel=1e-6)
    assert heights[2] == pytest.approx(heights[0], rel=1e-6)


def test_trust_of_an_input_is_that_of_its_best_result():
    x = np.array([[0.1], [0.2], [0.1]])
    trust = np.array([[0.0, 1.0], [0.3, 0.0], [1.0, 0.2]])
    assert best_trust(x, trust).tolist() == [[1.0, 1.0], [0.3, 0.0], [1.0, 1.0]]


def conflict(x):
    """Two bowls with their best at 0.2 and at 0.8, in units that differ: the front is between."""
    return np.stack([-((x - 0.2) ** 2).sum(axis=-1), -100.0 * ((x - 0.8) ** 2).sum(axis=-1)], -1)


def told(learner, x, lie=None):
    y = conflict(x)
    for (row, output), value in (lie or {}).items():
        y[row, output] = value
    learner.tell(x, y)


def test_the_search_finds_the_front():
    learner = MultiLearner(Box([0.0, 0.0], [1.0, 1.0]), 2, seed=0)
    told(learner, learner.domain.spread(8, np.random.default_rng(0)))
    for _ in range(14):
        choice = learner.ask()
        told(learner, choice.x[None])
    reference = np.array([-0.8, -80.0])
    reached = hypervolume(conflict(learner.observations.x), reference)
    u = np.linspace(0.2, 0.8, 2001)[:, None] * np.ones(2)
    assert reached >= 0.95 * hypervolume(conflict(u), reference)
    front = learner.front()
    assert (np.diff(front.mean[:, 0]) <= 0.0).all()
    assert (np.diff(front.mean[:, 1]) >= 0.0).all()


def test_an_outlier_in_one_output_leaves_the_other_one():
    learner = MultiLearner(Box([0.0], [1.0]), 2, seed=0)
    x = np.linspace(0.0, 1.0, 15)[:, None]
    told(learner, x, {(7, 0): 30.0})
    assert learner.trust[7].round(2).tolist() == [0.0, 1.0]
    assert (np.delete(learner.trust, 7, axis=0) >= 0.5).all()
    mean, _ = learner.predict(x[[7]])
    assert np.abs(mean - conflict(x[7])).max() < 0.5
    assert 0.5 not in learner.front().x[:, 0]  # as no value of it is trusted there


def test_a_batch_is_spread_out_and_waits_for_its_results():
    learner = MultiLearner(Box([0.0, 0.0], [1.0, 1.0]), 2, seed=0)
    told(learner, learner.domain.spread(8, np.random.default_rng(0)))
    x = np.array([choice.x for choice in learner.ask_batch(4)])
    apart = np.abs(x[:, None] - x).max(axis=-1) + np.eye(4)
    assert apart.min() > 1e-3
    assert len(learner.outputs[0].pending) == 4


@pytest.mark.parametrize("y", [[1.0], [1.0, 2.0, 3.0], [[1.0, 2.0], [3.0, 4.0]]])
def test_a_number_of_results_that_is_not_that_of_the_objectives_is_refused(y):
    learner = MultiLearner(Box([0.0], [1.0]), 2)
    with pytest.raises(ValueError, match="one for each objective"):
        learner.tell([0.5], y)
    assert len(learner) == 0


@pytest.mark.parametrize("n", [1, 4])
def test_the_number_of_objectives_is_2_or_3(n):
    with pytest.raises(ValueError, match="Two or three objectives"):
        MultiLearner(Box([0.0], [1.0]), n)


def test_nan_in_one_output_leaves_the_other_one():
    learner = MultiLearner(Box([0.0], [1.0]), 2, seed=0)
    x = np.linspace(0.0, 1.0, 9)[:, None]
    told(learner, x, {(4, 1): np.nan, (2, 0): np.inf})
    assert learner.trust[4].tolist() == [1.0, 0.0]
    assert learner.trust[2].tolist() == [0.0, 1.0]
    assert np.isfinite(learner.ask().x).all()
    assert not {0.25, 0.5} & set(learner.front().x[:, 0])


def test_bad_noise_is_refused_and_nothing_is_stored():
    learner = MultiLearner(Box([0.0], [1.0]), 2)
    with pytest.raises(ValueError, match="noise variances"):
        learner.tell([0.5], [1.0, 2.0], noise=[0.1, -1.0])
    assert len(learner) == 0
    learner.tell([0.5], [1.0, 2.0], noise=[0.1, np.nan])
    assert learner.outputs[0].observations.noise.tolist() == [0.1]
    assert np.isnan(learner.outputs[1].observations.noise).all()


def test_many_equal_results_do_not_make_outliers_of_all_others():
    """As at the border of DTLZ2, where an output is 0 up to rounding."""
    x = np.linspace(0.0, 1.0, 20)[:, None]
    flat = np.where(x[:, 0] < 0.55, 1e-17 * np.arange(20), np.sin(6.0 * (x[:, 0] - 0.55)))
    learner = MultiLearner(Box([0.0], [1.0]), 2, seed=0)
    learner.tell(x, np.stack([flat, -x[:, 0]], axis=1))
    assert (learner.trust[:, 0] < 0.5).mean() <= 1.0 / 3.0


def test_a_result_that_holds_up_the_front_is_doubted_where_little_is_known():
    """A lie that is too good in one output is asked again, or rejected, before long."""
    learner = MultiLearner(Box([0.0], [1.0]), 2, seed=1)
    x = np.linspace(0.0, 1.0, 6)[:, None]
    told(learner, x, {(1, 1): 40.0})
    for _ in range(6):
        choice = learner.ask()
        told(learner, choice.x[None])
    assert learner.trust[1, 1] < 0.5


@pytest.mark.long
def test_beyond_the_exact_model_it_goes_on():
    """Each output has a window of rows of its own then."""
    learner = MultiLearner(Box([0.0, 0.0], [1.0, 1.0]), 2, seed=0)
    told(learner, learner.domain.spread(262, np.random.default_rng(0)), {(20, 0): 40.0})
    for _ in range(2):
        choice = learner.ask()
        told(learner, choice.x[None])
    assert learner.trust.shape == (264, 2)
    assert learner.trust[20].round(2).tolist() == [0.0, 1.0]
    front = learner.front()
    assert np.abs(front.x[:, 0] - front.x[:, 1]).max() < 0.2  # which is the diagonal


@pytest.mark.filterwarnings("error")
def test_before_a_result_there_is_nothing_to_average():
    learner = MultiLearner(Box([0.0, 0.0], [1.0, 1.0]), 2, recipes.robust(), seed=0)
    learner.tell(learner.ask().x, [np.nan, np.nan])
    assert learner.ask().x.shape == (2,)


def test_a_repeat_that_is_executed_elsewhere_is_not_asked_for_ever():
    rng = np.random.default_rng(1)
    box = Box([0.0, 0.0], [1.0, 1.0])
    agent = MultiLearner(box, 2, seed=0)

    def front(x):
        return np.array([-((x - 0.3) ** 2).sum(), -((x - 0.7) ** 2).sum()])

    x = box.sample(30, rng)
    y = np.array([front(point) for point in x])
    y[7, 0] += 20.0
    agent.tell(x, y)
    asked = 0
    for _ in range(10):
        choice = agent.ask()
        asked += (choice.x == x[7]).all()
        executed = np.clip(choice.x + rng.uniform(-0.05, 0.05, 2), 0.0, 1.0)
        agent.tell(executed, front(executed), choice=choice)
    assert 1 <= asked <= 3


def test_a_front_has_no_input_that_violates_a_constraint():
    learner = MultiLearner(Box([0.0, 0.0], [1.0, 1.0]), 2, seed=0)
    for x in Box([0.0, 0.0], [1.0, 1.0]).spread(16, np.random.default_rng(0)):
        learner.tell(x, x, constraints={"sum": x.sum() - 1.0})
    front = learner.front()
    assert len(front.x)
    assert (front.x.sum(axis=1) <= 1.0).all()


def test_the_first_choices_are_a_design_of_all_outputs():
    learner = MultiLearner(Box([0.0, 0.0], [1.0, 1.0]), 2, seed=0)
    for _ in range(5):
        choices = learner.ask_batch(2)
        told(learner, np.array([each.x for each in choices]))
    x = learner.observations.x
    cells = np.floor(4.0 * x[:8])  # of a Sobol sequence: two of eight in each quarter
    assert np.bincount(cells[:, 0].astype(int)).tolist() == [2, 2, 2, 2]
    assert np.abs(learner.ask().x[0] - 0.5) < 0.4  # on the front, between the two summits


def test_a_recipe_has_its_own_design():
    recipe = recipes.robust(policy=Initial(VerifiedImprovement(), 4))
    learner = MultiLearner(Box([0.0], [1.0]), 2, recipe, seed=0)
    x = np.array([each.x[0] for each in learner.ask_batch(4)])
    assert np.sort(np.floor(4.0 * x)).tolist() == [0.0, 1.0, 2.0, 3.0]
