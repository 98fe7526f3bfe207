"""The conditional problems of the contest: what they suggest, and what they are worth."""

from __future__ import annotations

import numpy as np
import optuna
import pytest
from optuna.samplers import RandomSampler

from stoic.experiments.contest.conditional import FIGURE, PROBLEMS
from stoic.experiments.contest.contenders import SHARED, contender
from stoic.experiments.contest.scenes import Draws, Ground, World, ordinary
from stoic.experiments.figure import Cell

BEST = {
    "branches": {"method": "b", "b_rate": 10**-3.2, "b_u": 0.7, "b_v": 0.49},
    "layers": {"layers": 2, "rate": 1e-3, "width0": 256, "width1": 91},
}


@pytest.mark.parametrize("name", BEST)
def test_the_best_setting_is_the_best(name):
    problem = PROBLEMS[name]
    assert problem.score(BEST[name]) == pytest.approx(0.0, abs=1e-5)
    study = optuna.create_study(sampler=RandomSampler(seed=0))
    study.optimize(problem.objective, n_trials=300)
    assert 0.0 < study.best_value == problem.score(study.best_params)
    assert len({frozenset(trial.params) for trial in study.trials}) == 3


def test_every_regressor_has_an_error_above_the_least():
    pytest.importorskip("sklearn")
    problem = PROBLEMS["regressors"]
    settings = [
        {"model": "machine", "C": 1.76, "gamma": 0.0209, "epsilon": 0.299},
        {"model": "neighbours", "n_neighbors": 20, "p": 2.0, "weights": "distance"},
        {"model": "linear", "alpha": 0.1, "l1_ratio": 0.5},
    ]
    scores = [problem.score(setting) for setting in settings]
    assert 0.0 < scores[0] < scores[2] < scores[1] < 0.2  # of a variance of 1


def test_results_elsewhere_are_those_of_other_settings():
    problem = PROBLEMS["layers"]
    draws = Draws.of("layers", 0, problem.dim)
    values = [problem.elsewhere(t, draws) for t in range(20)]
    assert len(set(values)) == 20
    assert max(values) < 0.0
    world = World.of(problem, ordinary(0.5, 1.0, 1.0, noise=0.0), 0)
    observed = np.array([world.observe(BEST["layers"], t) for t in range(50)])
    assert set(np.round(observed, 3)) == {0.0, -1.0}  # minimised, too good by one range


def test_a_study_of_the_figure_has_the_parameters_of_its_branches():
    assert all(isinstance(problem, Ground) for problem in PROBLEMS.values())
    own, explained = FIGURE.run(FIGURE.settings, Cell("clean / branches", "random", 0))
    assert own.score == own.tried > 0.0
    assert explained.score >= own.tried
    sampler = contender(SHARED).sampler(dict(PROBLEMS["layers"].space), 0, 10)
    study = optuna.create_study(sampler=sampler)
    assert sampler.infer_relative_search_space(study, study.ask()) == PROBLEMS["layers"].space
