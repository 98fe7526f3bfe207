"""What is promised about all moves holds at the worst of them, by the band's own lower bound."""

import itertools

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution, IntDistribution

from stoic import recipes
from stoic.confidence.base import Band
from stoic.distances import Distance
from stoic.domains import Box, Lattice
from stoic.integrations.optuna import certified, explain
from stoic.integrations.optuna.objective import RobustObjective
from stoic.integrations.optuna.surroundings import Searched, Surroundings
from stoic.integrations.optuna.synced_learner import SyncedLearner
from studies import add


def slope(params):
    """Worst at a corner of any ball: a different one in every number of dimensions."""
    u = np.array(list(params.values()))
    signs = np.array([1, -1, 1, -1, -1, 1, 1, -1, 1, -1])[: len(u)]
    return float(10.0 - signs @ u - 0.3 * u @ u)


def judged(d, aim, whole=False):
    """An explained study of d parameters, and the lower bound in the user's units."""
    kind = IntDistribution(-3, 3) if whole else FloatDistribution(-3.0, 3.0)
    space = {f"x{i}": FloatDistribution(-3.0, 3.0) for i in range(d)} | {"x0": kind}
    study = optuna.create_study(direction="maximize")
    rng = np.random.default_rng(d)
    for u in [*rng.uniform(-3.0, 3.0, (60, d)), np.zeros(d)]:
        params = {name: float(x) for name, x in zip(space, u, strict=True)}
        params["x0"] = round(params["x0"]) if whole else params["x0"]
        add(study, params, space, slope(params))
    found = explain(study, recipe=recipes.gp_ucb(), aim=aim).certified
    campaign = SyncedLearner(study, space, recipes.gp_ucb(), aim)
    campaign.follow(study.get_trials(deepcopy=False))
    return found, campaign


def inside(found, campaign, share, seed=0):
    """Corners and random points of a share of what is promised, and those on the lattice."""
    d, box = len(found.params), campaign.encoding.box
    rng = np.random.default_rng(seed)
    sides = np.array(list(itertools.product([-1.0, 1.0], repeat=d)))
    unit = np.asarray(found.aim.distance(campaign.encoding).tolerance)
    size = share * min(found.certificate.radius, 1e3) * unit
    x = campaign.encoding.encode(found.params)
    moves = np.concatenate(
        [sides, rng.uniform(-1.0, 1.0, (4000, d)), sides * rng.random((len(sides), 1))]
    )
    low, high = np.maximum(x - size, 0.0), np.minimum(x + size, 1.0)
    for lattice in box.lattices:
        (k,) = lattice.columns
        values = lattice.values[:, 0]
        within = values[(values >= low[k] - 1e-9) & (values <= high[k] + 1e-9)]
        low[k], high[k] = within.min(), within.max()
    return box.snap(np.clip(x + size * moves, low, high))


@pytest.mark.parametrize("d", [2, 3, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("whole", [False, True], ids=["floats", "an integer"])
def test_the_bound_holds_in_the_whole_ball_of_a_certificate(d, whole):
    tolerance = {f"x{i}": 0.5 for i in range(d)}
    aim = RobustObjective(threshold=10.0 - 1.3 * d, tolerance=tolerance)
    found, campaign = judged(d, aim, whole)
    assert 1.0 < found.certificate.radius < 12.0
    band = Band(campaign.learner.posterior, 2.0)
    lower, _ = band.bounds(inside(found, campaign, 1.0 - 1e-6))
    assert lower.min() >= found.certificate.value
    # And no farther: just outside, some corner is below.
    lower, _ = band.bounds(inside(found, campaign, 1.01))
    assert lower.min() < found.certificate.value
    # The curve says no more, either.
    for size in (0.5, 1.0, 2.0, 4.0):
        at = int(np.argmin(np.abs(found.curve.sizes - size)))
        share = found.curve.sizes[at] / found.certificate.radius
        lower, _ = band.bounds(inside(found, campaign, share))
        assert lower.min() >= found.curve.pessimistic[at] - 1e-6


@pytest.mark.parametrize("d", [3, 5])
def test_the_bound_holds_in_the_whole_ball_of_a_worst_value(d):
    aim = RobustObjective(policy="stable", tolerance={f"x{i}": 0.5 for i in range(d)}, radius=2.0)
    found, campaign = judged(d, aim)
    band = Band(campaign.learner.posterior, 2.0)
    lower, _ = band.bounds(inside(found, campaign, 1.0))
    assert found.certificate.value - 1e-6 <= lower.min() <= found.certificate.value + 0.05


class Bowl:
    """A posterior that is sure of a bowl upside down, whose lowest place is a corner."""

    def __init__(self, tilt):
        self.tilt = tilt

    def predict(self, x):
        return -((x - 0.5) ** 2).sum(axis=1) - x @ self.tilt, np.zeros(len(x))

    def predict_with_gradient(self, x):
        return (*self.predict(x), -2.0 * (x - 0.5) - self.tilt, np.zeros(x.shape))


@pytest.mark.parametrize("d", [1, 4, 8, 12, 40])
def test_the_worst_corner_is_found_in_any_number_of_dimensions(d):
    """At distance r of the middle f falls by d r^2 + r |tilt|_1, at the corner of the tilt."""
    tilt = np.where(np.random.default_rng(d).random(d) < 0.5, 0.1, -0.1)
    around = Surroundings.of(Box(np.zeros(d), np.ones(d)), np.full(d, 0.5), Distance("chebyshev"))
    assert around.farthest == 0.5
    band, r = Band(Bowl(tilt), 2.0), 0.3
    threshold = -0.5 * tilt.sum() - d * r**2 - 0.1 * d * r
    searched = Searched.of(around, band, 256, np.array([0.1, 0.4]))
    held, fails, searched = searched.radius(around, band, threshold)
    assert held <= r <= fails * (1.0 + 1e-9)
    assert held == pytest.approx(r, rel=1e-3)
    searched = searched.within(around, band, np.array([0.2]))
    within = searched.lower[around.far(searched.points) <= 0.2 + 1e-9]
    assert within.min() == pytest.approx(-0.5 * tilt.sum() - d * 0.04 - 0.02 * d)


def test_what_does_not_move_stays_and_what_is_on_a_lattice_has_its_values():
    box = Box(np.zeros(3), np.ones(3), (Lattice(np.array([1]), np.linspace(0, 1, 5)[:, None]),))
    x = np.array([0.3, 0.5, 0.9])
    around = Surroundings.of(box, x, Distance("chebyshev", [0.1, 0.2, 0.0]))
    low, high = around.ball(np.array([1.0, 1.25, 8.0]))
    np.testing.assert_allclose(low, [[0.2, 0.5], [0.175, 0.25], [0.0, 0.0]], atol=1e-9)
    np.testing.assert_allclose(high, [[0.4, 0.5], [0.425, 0.75], [1.0, 1.0]], atol=1e-9)
    searched = Searched.of(around, Band(Bowl(np.ones(3)), 1.0), 64, np.array([1.0]))
    searched = searched.within(around, Band(Bowl(np.ones(3)), 1.0), np.array([1.0, 2.0]))
    assert np.all(searched.points[:, 2] == 0.9)
    assert box.contains(searched.points).all()
    np.testing.assert_array_equal(searched.points[0], x)
    for threshold, radius in ((0.0, -np.inf), (-9.0, np.inf)):
        found = searched.radius(around, Band(Bowl(np.ones(3)), 1.0), threshold)
        assert found[:2] == (radius, radius)


@pytest.mark.parametrize("d", [1, 4])
def test_the_radius_of_constraints_is_nearly_that_of_the_nearest_corner(d):
    """And never beyond it, as the sentence says "closer than"."""

    class Plane:
        """A constraint that is all but certain below a plane, and violated above."""

        def log(self, x):
            return np.where(x.sum(axis=1) < 0.5 * d + 0.13 * d, 0.0, -10.0)

    box = Box(np.zeros(d), np.ones(d))
    around = Surroundings.of(box, np.full(d, 0.5), Distance("chebyshev", np.full(d, 0.1)))
    points = around.sample(2048)
    radius = certified._radius_of_constraints(around, None, points, Plane())
    assert 1.3 * (1.0 - 2.0 / 128) <= radius < 1.3
