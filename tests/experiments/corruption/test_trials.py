import math
from dataclasses import replace

import numpy as np
import pytest

from stoic.adversaries import Adversary, Gaussian, Later, Magnitude
from stoic.environment import Environment
from stoic.experiments.claims import FLAT, late
from stoic.experiments.corruption import growth
from stoic.experiments.corruption.algorithms import ALGORITHMS, GP_UCB, RGP_PE, RGP_UCB, Watched
from stoic.experiments.corruption.trials import Settings, after, cells, run
from stoic.experiments.corruption.worlds import ATTACKS, F1, NO_ATTACK, draw
from stoic.experiments.figure import Cell
from stoic.experiments.trials import grouped
from stoic.simulate import run as simulate


def test_every_method_meets_every_attack_and_later_than_never_is_left_out():
    found = cells(Settings(trials=2, seed=3))
    assert len(found) == len(set(found)) == 2 * (5 + 3 + 5 * 2 - 5 + 15)
    assert {cell.seed for cell in found} == {3, 4}
    assert {cell.panel for cell in found} == set(ATTACKS)
    clean = {cell.method for cell in found if cell.panel == NO_ATTACK}
    assert clean == {"GP-UCB", "RGP-UCB", "RGP-PE"}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_rows_say_what_one_uninterrupted_run_says(name):
    settings, algorithm = Settings(rounds=3200), ALGORITHMS[name]
    rows = run(settings, Cell("Top-3", name, 1))
    problem = draw("f1", 1).problem
    attack = F1.attack("Top-3", problem)
    adversary = Adversary(Later(attack) if algorithm.later else attack, Magnitude(50.0))
    environment = Environment(problem, Gaussian(0.02), adversary, 1)
    learner = Watched(algorithm.build(F1, problem, 50.0))
    trace = simulate(learner, environment, 3200)  # one by one
    kept = np.array([row.round for row in rows]) - 1
    regrets = [row.cumulative_regret for row in rows]
    np.testing.assert_allclose(regrets, trace.cumulative_regret[kept])
    plays = np.cumsum(trace.regret == 0.0)
    np.testing.assert_array_equal([row.best_plays for row in rows], plays[kept])
    assert rows[-1].spent == environment.spent.magnitude > 0.0
    assert rows[-1].epochs == learner.epochs
    active = learner.active()
    left = problem.optimum.value - problem.values[active]
    assert rows[-1].active == active.sum()
    assert (rows[-1].best_left, rows[-1].worst_left) == (left.min(), left.max())
    assert {row.draw for row in rows} == {6}
    assert {row.best for row in rows} == {problem.optimum.value}
    assert (rows[-1].epochs > 0) == (algorithm.learner == "RGP-PE")


def test_a_later_attack_waits_until_something_is_ruled_out():
    settings = Settings(rounds=2000)
    for name, waits in (("RGP-PE, attacked later", True), ("RGP-PE", False)):
        rows = run(settings, Cell("Flip", name, 0))
        unsuspecting = [row for row in rows if row.active == 100]
        assert unsuspecting
        assert all(row.spent == 0.0 for row in unsuspecting) == waits
        assert rows[-1].spent > 0.0


def test_only_the_robust_methods_expect_the_budget():
    problem = draw("f1", 0).problem
    for algorithm, narrow, wide in ((GP_UCB, 0.0, 0.0), (RGP_UCB, 5.0, 10.0), (RGP_PE, 5.0, 10.0)):
        widths = []
        for budget in (0.0, 50.0, 100.0):
            learner = algorithm.build(F1, problem, budget)
            learner.tell(problem.domain.points[0], 0.0)
            widths.append(learner.confidence(learner.posterior, 7))
        assert widths[1] - widths[0] == pytest.approx(narrow)
        assert widths[2] - widths[0] == pytest.approx(wide)


def test_arms_are_counted_after_so_many_epochs_or_at_the_end():
    settings = Settings(rounds=300, trials=2, attacks=("Flip",), methods=("RGP-PE",))
    (trials,) = grouped(row for cell in cells(settings) for row in run(settings, cell)).values()
    assert [row.epochs for row in after(trials, 2)] == [2, 2]
    assert [row.round for row in after(trials, 99)] == [300, 300]  # never: the last row


def test_a_run_depends_on_its_cell_alone():
    settings = replace(Settings(), rounds=400)
    cell = Cell("AggSub", "RGP-PE", 2)
    assert run(settings, cell) == run(settings, cell)
    assert run(settings, cell) != run(settings, cell._replace(seed=3))


def test_why_gp_ucb_is_stuck_without_any_attack():
    """An unknown arm never looks better than sqrt(ln T) / 2 < 1.65, and a better one is known."""
    problem = draw("f1", 0).problem
    learner = GP_UCB.build(F1, problem, 50.0)
    trace = simulate(learner, Environment(problem, Gaussian(0.02), seed=0), 3000)
    settled = np.unique(trace.value[-1000:])
    assert len(settled) == 1
    assert math.sqrt(math.log(50_000)) / 2.0 < settled[0] < problem.optimum.value - 0.1


@pytest.mark.slow
def test_why_rgp_ucb_is_stuck_under_top_3():
    """A third of the lies, on a few plays of x*, moves its mean by more than b = 0.1 allows for."""
    problem = draw("f1", 0).problem
    learner = RGP_UCB.build(F1, problem, 50.0)
    adversary = Adversary(F1.attack("Top-3", problem), Magnitude(50.0))
    environment = Environment(problem, Gaussian(0.02), adversary, seed=0)
    trace = simulate(learner, environment, 8000)
    best = int(np.argmax(problem.values))
    second = np.sort(problem.values)[-2]
    plays = trace.regret == 0.0
    lies = (trace.observed - trace.value)[plays].sum()
    assert plays.sum() < 10
    assert lies < -50.0 / 4.0
    assert np.flatnonzero(plays).max() < 5000
    mean, std = learner.posterior.predict(problem.domain.points)
    width = math.sqrt(math.log(50_000)) / 2.0 + 0.1 * 50.0  # as wide as it ever gets
    assert mean[best] + width * std[best] < second
    assert mean[best] + 50.0 * std[best] > problem.optimum.value  # as wide as the theory's


@pytest.mark.slow
def test_rgp_pe_flattens_under_every_attack_and_keeps_the_best_arm():
    settings = Settings(trials=4, methods=("RGP-PE", "RGP-PE, attacked later"))
    groups = grouped([row for cell in cells(settings) for row in run(settings, cell)])
    assert len(groups) == 6 + 5
    for key, trials in groups.items():
        assert late(trials) <= FLAT, key
        assert all(row.best_left == 0.0 for row in trials.ends), key
        assert all(row.spent == pytest.approx(50.0 * (key[0] != NO_ATTACK)) for row in trials.ends)


@pytest.mark.slow
def test_top_5_makes_gp_ucb_linear_where_it_flattens_without_an_attack():
    settings = Settings(trials=5, methods=("GP-UCB",), attacks=(NO_ATTACK, "Top-5"))
    groups = grouped([row for cell in cells(settings) for row in run(settings, cell)])
    sane = growth.flat(groups[NO_ATTACK, "GP-UCB"])
    assert sane.any()
    assert growth.linear(groups["Top-5", "GP-UCB"])[sane].all()
