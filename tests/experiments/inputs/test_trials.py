import math
from pathlib import Path

import numpy as np
import pytest

from stoic.adversaries import Gaussian, GaussianMove, LowestBound, RandomMove, WorstCase
from stoic.confidence import Fixed
from stoic.distances import Distance
from stoic.environment import Environment
from stoic.experiments.figure import Cell
from stoic.experiments.inputs.algorithms import ADVERS_1, ADVERS_2, ADVERS_G, ALGORITHMS, STABLE
from stoic.experiments.inputs.trials import (
    Settings,
    cells,
    kappa_of,
    played,
    run,
    with_contexts,
)
from stoic.experiments.inputs.worlds import (
    GAUSSIAN,
    INSULIN,
    LCB,
    MISSPECIFIED,
    PENDULUM,
    POLYNOMIAL,
    RANDOM,
    TABLE,
    WORST,
    perturbation,
    world,
)
from stoic.kernels import RBF, Scaled
from stoic.policies import Satisficing, StableOpt
from stoic.problems import polynomial
from stoic.refusal import RefusalError
from stoic.satisficing import fragility
from stoic.simulate import run as simulate

SIDE = 12


@pytest.fixture
def table(tables):
    return tables / TABLE


def test_the_polynomial_and_its_two_priors():
    right, wrong = world(POLYNOMIAL, SIDE), world(MISSPECIFIED, SIDE)
    f = polynomial().on_grid(SIDE)
    for here in (right, wrong):
        np.testing.assert_array_equal(here.problem.values, f.value(f.domain.points))
        assert (here.noise_sd, here.prior.noise, here.contexts) == (1.0, 1.0, ())
    assert isinstance(wrong.prior.kernel, Scaled)
    assert isinstance(wrong.prior.kernel.kernel, RBF)
    variance, lengthscale = np.exp(wrong.prior.kernel.theta)
    assert lengthscale == 1.0
    # Of 500 samples of 900 points or of all fewer points, with noise of variance 1.
    assert wrong.prior.mean == pytest.approx(f.value(f.domain.points).mean(), abs=1.0)
    assert variance == pytest.approx(f.value(f.domain.points).var(), rel=0.1)
    # Degree 6: a polynomial prior predicts f nearly everywhere from as many samples as it has
    # coefficients and some more.
    learner = ADVERS_2.build(right, -10.0, 0.5, 0)
    learner.tell(right.points, right.problem.values)
    mean, _ = learner.posterior.predict(right.problem.domain.points)
    assert np.abs(mean - right.problem.values).max() < 1.5


def test_doses_are_chosen_and_meals_are_moved(table):
    here = world(INSULIN, 0, table)
    assert here.contexts == (20.0, 50.0, 80.0)
    doses, meals = here.points.T
    assert set(meals.tolist()) == {0.0, 20.0, 50.0, 80.0, 100.0}
    far = here.distance(here.points[[0]], here.points)[0]
    assert np.isinf(far[doses != doses[0]]).all()
    np.testing.assert_array_equal(far[doses == doses[0]], meals[doses == doses[0]] - meals[0])
    for context in here.contexts:
        kappa = fragility(here.problem.values, -10.0, here.points, here.distance)
        expected = kappa[meals == context].min()
        assert here.fragility(-10.0, context) == pytest.approx(expected)


def test_the_pendulum_is_coarser_in_tests():
    here = world(PENDULUM, 3)
    assert here.points.shape == (81, 4)
    assert here.noise_sd == 0.1
    assert here.prior.noise == pytest.approx(0.01)


def test_moves_by_name():
    distance = Distance(tolerance=[0.0, 2.0])
    for name, kind in ((RANDOM, RandomMove), (LCB, LowestBound), (WORST, WorstCase)):
        found = perturbation(name, 0.7, distance)
        assert isinstance(found, kind)
        assert (found.radius, found.distance) == (0.7, distance)
    normal = perturbation(GAUSSIAN, 3.0, distance)
    assert isinstance(normal, GaussianMove)
    assert np.asarray(normal.sd).tolist() == [0.0, 6.0]


def test_learners_know_what_the_paper_says():
    here = world(POLYNOMIAL, SIDE)
    for algorithm in ALGORITHMS.values():
        learner = algorithm.build(here, -7.0, 0.4, 3)
        assert learner.confidence == Fixed(2.0)
        assert learner.model.prior is here.prior
        assert learner.policy.distance is here.distance
        if algorithm.factor is None:
            assert isinstance(learner.policy, Satisficing)
            assert learner.policy.threshold == -7.0
        else:
            assert isinstance(learner.policy, StableOpt)
            assert learner.policy.radius == pytest.approx(0.4 * algorithm.factor)
    powers = [a.build(here, 0.0, 1.0, 0).policy.p for a in (ADVERS_1, ADVERS_G, ADVERS_2)]
    assert powers == [1.0, 2.0, math.inf]
    factors = sorted({a.factor for a in ALGORITHMS.values() if a.factor is not None})
    assert factors == pytest.approx([0.3, 1.0 / 3.0, 0.5, 1.0, 3.0, 4.0])


@pytest.mark.parametrize("attack", [RANDOM, LCB, WORST])
def test_rows_say_what_a_run_says(attack):
    settings = Settings(methods=(ADVERS_2.name,), rounds=25, side=SIDE, threshold=-8.0)
    rows = run(settings, Cell(f"{attack}, eps = 0.5", ADVERS_2.name, 4))
    here = world(POLYNOMIAL, SIDE)
    move = perturbation(attack, 0.5, Distance())
    environment = Environment(here.problem, Gaussian(1.0), seed=4, perturbation=move)
    trace = simulate(ADVERS_2.build(here, -8.0, 0.5, 4), environment, 25)
    kappa = fragility(here.problem.values, -8.0, here.points).min()
    lenient = satisficing = below = 0.0
    for row, value in zip(rows, trace.value, strict=True):
        lenient += max(-8.0 - value, 0.0)
        satisficing += max(-8.0 - kappa * 0.5 - value, 0.0)
        below += value < -8.0
        assert row.lenient_regret == pytest.approx(lenient)
        assert row.satisficing_regret == pytest.approx(satisficing)
        assert row.below == below
    assert [row.round for row in rows] == list(range(1, 26))
    assert lenient > satisficing > 0.0


def test_contexts_are_announced_and_another_meal_is_eaten(table):
    where = (INSULIN, 0, table)
    here = world(*where)
    announced = np.array([20.0, 80.0, 50.0, 80.0] * 10)
    move = perturbation(GAUSSIAN, 32.0, here.distance)
    environment = Environment(here.problem, Gaussian(1.0), seed=2, perturbation=move)
    learner = STABLE.build(here, -10.0, 32.0, 0)
    chosen, executed = with_contexts(learner, environment, announced)
    np.testing.assert_array_equal(chosen[:, 1], announced)
    np.testing.assert_array_equal(chosen[:, 0], executed[:, 0])
    assert (chosen[:, 1] != executed[:, 1]).any()
    np.testing.assert_array_equal(learner.observations.x, executed)
    assert not learner.pending
    curves = played(where, -10.0, 32.0, GAUSSIAN, STABLE.name, 2, 40)
    assert curves.lenient[-1] >= curves.satisficing[-1] > 0.0
    assert curves.below[-1] <= 40
    # Of a run the slack is what the announced context allows, times how far it was moved.
    drawn = np.random.default_rng([2, 1]).choice(here.contexts, size=40)
    environment = Environment(here.problem, Gaussian(1.0), seed=2, perturbation=move)
    chosen, executed = with_contexts(STABLE.build(here, -10.0, 32.0, 2), environment, drawn)
    value = here.problem.value(executed)
    far = np.abs(chosen[:, 1] - executed[:, 1])
    slack = [max(kappa_of(where, -10.0, c), 0.0) * d for c, d in zip(drawn, far, strict=True)]
    expected = np.maximum(-10.0 - np.array(slack) - value, 0.0).sum()
    assert curves.satisficing[-1] == pytest.approx(expected)


def test_two_figures_share_their_runs():
    arguments = ((POLYNOMIAL, SIDE, None), -10.0, 0.5, WORST, STABLE.name, 0, 5)
    assert played(*arguments) is played(*arguments)


def test_cells_are_all_methods_in_all_panels():
    settings = Settings(radii=(0.5, 1.5), trials=2, seed=3, side=SIDE)
    found = cells(settings)
    assert len(found) == len(set(found)) == 2 * 3 * 2 * 2
    assert {cell.seed for cell in found} == {3, 4}
    assert {cell.panel for cell in found} == {
        f"{attack}, eps = {radius}" for attack in (RANDOM, LCB, WORST) for radius in (0.5, 1.5)
    }


def test_only_insulin_has_a_table(tables, tmp_path):
    assert Settings(data=tables).data is None
    assert Settings(INSULIN, data=tables).data == tables / TABLE
    assert Settings(INSULIN, data=Path("mine.csv")).data == Path("mine.csv")
    with pytest.raises(RefusalError, match=r"There is no file .*none\.csv: say --data"):
        cells(Settings(INSULIN, data=tmp_path / "none.csv"))
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    with pytest.raises(RefusalError, match="needs the columns"):
        cells(Settings(INSULIN, data=empty))
