import math

import numpy as np
import pytest
from scipy.stats import kstest

from stoic.adversaries import GaussianMove, LowestBound, RandomMove, WorstCase
from stoic.confidence import Fixed
from stoic.distances import Distance
from stoic.domains import Box, Finite
from stoic.environment import Environment
from stoic.kernels import RBF
from stoic.learner import Learner
from stoic.models import GaussianProcess
from stoic.policies import UCB
from stoic.posteriors import Prior
from stoic.problems import Tabulated, hosaki, peaks
from stoic.recipes import Parts

GRID = hosaki().on_grid(21)
POINTS = GRID.domain.points
F = GRID.value(POINTS)
CENTRE = POINTS[220]


def ball(x, radius):
    return np.flatnonzero(np.linalg.norm(POINTS - x, axis=1) <= radius + 1e-9)


def executed(perturbation, x, n, problem=GRID, **known):
    world = Environment(problem, perturbation=perturbation, seed=3)
    return np.array([world.step(x, **known).x for _ in range(n)])


def test_random_moves_reach_all_rows_of_the_ball_equally_often():
    rows = ball(CENTRE, 0.9)
    found = GRID.domain.locate(executed(RandomMove(0.9), CENTRE, 4000))
    assert set(found.tolist()) == set(rows.tolist())
    counts = np.bincount(found, minlength=len(POINTS))[rows]
    expected = 4000 / len(rows)
    # chi^2 of k - 1 degrees of freedom; seeded, 6 deviations
    chi2 = ((counts - expected) ** 2 / expected).sum()
    assert abs(chi2 - (len(rows) - 1)) < 6.0 * math.sqrt(2.0 * (len(rows) - 1))


def test_random_moves_on_a_box_are_uniform_in_the_part_of_the_ball_inside():
    problem = peaks()
    distance = Distance(tolerance=[1.0, 0.5])
    corner = np.array([3.0, -3.0])  # of [-3, 3]^2
    moves = executed(RandomMove(1.2, distance), corner, 2000, problem) - corner
    assert (moves[:, 0] <= 0.0).all()
    assert (moves[:, 1] >= 0.0).all()
    # Uniform in a disc: the square of the radius is uniform. Seeded; p-value of a true law.
    squares = (moves[:, 0] ** 2 + (moves[:, 1] / 0.5) ** 2) / 1.2**2
    assert kstest(squares, "uniform").pvalue > 1e-4
    angles = np.arctan2(moves[:, 1] / 0.5, -moves[:, 0]) / (math.pi / 2.0)
    assert kstest(angles, "uniform").pvalue > 1e-4


def test_the_worst_case_is_the_least_of_the_ball():
    for radius in (0.0, 0.5, 2.0):
        x = executed(WorstCase(radius), CENTRE, 1)[0]
        rows = ball(CENTRE, radius)
        assert GRID.value(x[None])[0] == F[rows].min()
        assert np.linalg.norm(x - CENTRE) <= radius + 1e-9


def test_the_lowest_bound_is_that_of_the_learner_as_it_learns():
    learner = Learner(GRID.domain, Parts(GaussianProcess(Prior(RBF(0.7), 0.1)), Fixed(2.0), UCB()))
    world = Environment(GRID, perturbation=LowestBound(1.0), seed=0)
    rng = np.random.default_rng(0)
    places = set()
    for _ in range(15):
        mean, std = learner.posterior.predict(GRID.domain.points)
        rows = ball(CENTRE, 1.0)
        lowest = POINTS[rows[np.argmin((mean - 2.0 * std)[rows])]]
        outcome = world.step(CENTRE, band=learner.band)
        np.testing.assert_array_equal(outcome.x, lowest)
        places.add(tuple(outcome.x))
        learner.tell(outcome.x, outcome.value + rng.normal())
    assert len(places) > 5


def test_gaussian_moves_are_rounded_to_the_domain():
    fine = Finite(np.linspace(0.0, 10.0, 2001))
    table = Tabulated("line", fine, np.zeros(2001))
    moves = executed(GaussianMove(0.4), np.array([5.0]), 3000, table)[:, 0] - 5.0
    assert abs(moves.mean()) < 5.0 * 0.4 / math.sqrt(3000)
    assert moves.std() == pytest.approx(0.4, rel=0.08)
    edge = executed(GaussianMove(0.4), np.array([0.0]), 200, table)
    assert (edge >= 0.0).all()
    assert (edge == 0.0).mean() > 0.3  # what would leave the domain stays at its edge
    on_a_box = executed(GaussianMove([0.0, 0.5]), np.array([1.0, 2.0]), 500, peaks())
    assert (on_a_box[:, 0] == 1.0).all()
    assert on_a_box[:, 1].std() == pytest.approx(0.5, rel=0.2)
    assert (executed(GaussianMove(9.0), np.array([3.0, 3.0]), 50, peaks()) <= 3.0).all()


@pytest.mark.parametrize(
    "perturbation",
    [
        RandomMove(9.0, Distance(tolerance=[0.0, 1.0])),
        WorstCase(9.0, Distance(tolerance=[0.0, 1.0])),
        GaussianMove([0.0, 2.0]),
    ],
    ids=["random", "worst", "gaussian"],
)
def test_a_coordinate_that_may_not_move_does_not(perturbation):
    moved = executed(perturbation, CENTRE, 60)
    assert (moved[:, 0] == CENTRE[0]).all()
    assert (moved[:, 1] != CENTRE[1]).any()


def test_another_seed_moves_to_other_places():
    one, other = (Environment(GRID, perturbation=RandomMove(1.0), seed=seed) for seed in (1, 2))
    assert any((one.step(CENTRE).x != other.step(CENTRE).x).any() for _ in range(20))


def test_a_ball_that_no_draw_hits_is_an_error():
    box = Box(np.zeros(40), np.ones(40))

    class Sums:
        name, domain, optimum = "sums", box, None

        def value(self, x):
            return x.sum(axis=1)

    world = Environment(Sums(), perturbation=RandomMove(0.1))
    with pytest.raises(ValueError, match=r"too many dimensions \(40\).*chebyshev"):
        world.step(np.full(40, 0.5))
    assert world.round == 0
    cube = Environment(Sums(), perturbation=RandomMove(0.1, Distance("chebyshev")))
    assert np.abs(cube.step(np.full(40, 0.5)).x - 0.5).max() <= 0.1
    kernel = RandomMove(0.1, Distance.of_kernel(RBF(1.0)))
    with pytest.raises(ValueError, match="euclidean, cityblock or chebyshev"):
        Environment(Sums(), perturbation=kernel).step(np.full(40, 0.5))


@pytest.mark.parametrize("kind", [RandomMove, LowestBound, WorstCase])
def test_a_radius_is_a_size(kind):
    with pytest.raises(ValueError, match="finite number >= 0"):
        kind(-0.5)


@pytest.mark.parametrize("sd", [-1.0, [0.0, 0.0], math.nan, [[1.0]]])
def test_a_standard_deviation_is_a_size(sd):
    with pytest.raises(ValueError, match="standard deviation"):
        GaussianMove(sd)
