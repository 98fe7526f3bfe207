"""One outlier among thirty: a broad plateau hardly notices, whatever its size and sign."""

import numpy as np
import pytest

from stoic import Learner, recipes
from stoic.posteriors.scales import median_and_spread_in_space
from stoic.problems import SMOOTH
from stoic.problems.synthetic import Synthetic, branin_tilted

# A2-RCGP-UCB whose scale is broad and whose centre follows the function closely
BROAD = recipes.a2_rcgp_ucb(
    anchor=recipes.Anchor(shape=1.0),
    scale=median_and_spread_in_space,
)
LIES = (1e6, 1e300, -1e300, np.inf, -np.inf, np.nan)


def design(problem: Synthetic, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """29 honest results with 1 % noise, and where the lie is told."""
    rng = np.random.default_rng(seed)
    x = problem.domain.spread(29, rng)
    value = problem.value(x)
    return x, value + 0.01 * value.std() * rng.standard_normal(29), problem.domain.sample(1, rng)


def told(problem: Synthetic, x: np.ndarray, y: np.ndarray, recipe=BROAD) -> Learner:
    learner = Learner(problem.domain, recipe, seed=0)
    learner.tell(x, y)
    return learner


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("make", SMOOTH, ids=lambda make: make().name)
def test_with_everything_refitted_one_lie_does_not_move_the_recommendation(make, seed):
    problem = make()
    x, y, where = design(problem, seed)
    honest = told(problem, x, y).recommend()
    for lie in LIES:
        learner = told(problem, np.vstack([x, where]), np.append(y, lie))
        moved = np.abs(learner.recommend().x - honest.x) / problem.domain.widths
        assert moved.max() < 0.02, lie
        assert learner.trust[-1] < 0.01, lie


# One function of two coordinates; the others are slow.
SEARCHED = [(make, seed) for seed in (0, 1) for make in SMOOTH]
FIRST = [(branin_tilted, 0)]


@pytest.mark.long
@pytest.mark.parametrize(
    ("make", "seed"),
    [
        pytest.param(
            *pair,
            id=f"{pair[0]().name}-{pair[1]}",
            marks=() if pair in FIRST else pytest.mark.slow,
        )
        for pair in SEARCHED
    ],
)
def test_a_search_goes_on_as_if_there_had_been_no_outlier(make, seed):
    # Right beside a narrow summit an outlier takes the summit with it, until more is measured.
    problem = make()
    x, y, where = design(problem, seed)
    span = float(np.ptp(problem.value(x)))
    honest = problem.value(told(problem, x, y, recipes.robust()).recommend().x[None])[0]
    for outlier in LIES:
        learner = told(problem, np.vstack([x, where]), np.append(y, outlier), recipes.robust())
        for _ in range(8):
            choice = learner.ask()
            learner.tell(choice.x, problem.value(choice.x[None])[0])
        found = problem.value(learner.recommend().x[None])[0]
        assert found >= honest - 0.02 * span, outlier
        assert learner.trust[len(x)] < 0.5, outlier


def test_the_same_lies_do_move_the_learner_that_believes_everything():
    # The test above can fail: 1e6 at a bad place becomes GP-UCB's recommendation.
    moved = []
    for make in SMOOTH:
        problem = make()
        x, y, where = design(problem, 0)
        honest = told(problem, x, y, recipes.gp_ucb())
        lied = told(problem, np.vstack([x, where]), np.append(y, 1e6), recipes.gp_ucb())
        gap = np.abs(lied.recommend().x - honest.recommend().x) / problem.domain.widths
        moved.append(gap.max() > 0.02)
    assert np.mean(moved) >= 0.8


def test_lies_of_a_thousand_change_little():
    # Sizes below 1e4 scales stay in the solve: their pull is bounded, not zero.
    gaps = []
    for make in SMOOTH:
        problem = make()
        x, y, where = design(problem, 0)
        honest = told(problem, x, y).recommend().x
        for lie in (1e3, -1e3):
            lied = told(problem, np.vstack([x, where]), np.append(y, lie)).recommend().x
            gaps.append(float(np.max(np.abs(lied - honest) / problem.domain.widths)))
    assert np.median(gaps) == 0.0
    assert max(gaps) < 0.1
