"""The two recipes with Student's t are made of what their papers say."""

import math

import numpy as np
from numpy.testing import assert_allclose

from stoic.defences import Diagnostics, Trust
from stoic.domains import Box
from stoic.kernels import Matern52, Scaled
from stoic.learner import Learner
from stoic.models import StudentTProcess
from stoic.posteriors import Prior
from stoic.posteriors.fitting import FixedHyperparameters, marginal_likelihood
from stoic.posteriors.student_t import StudentTLikelihood
from stoic.recipes import diagnostics_gp_ucb, gp_ucb, tp_ucb

BOX = Box([0.0, 5.0], [1.0, 9.0])
GRID = BOX.grid(6)
PRIOR = Prior(Scaled(Matern52(np.array([0.3, 1.0])), 2.0), 0.25, 4.0)


def test_the_parts_are_the_papers():
    model = Learner(BOX, tp_ucb(freedom=5.0)).model
    assert isinstance(model, StudentTProcess)
    assert model.defence == Trust()
    assert (model.freedom, model.fitting.objective) == (5.0, StudentTLikelihood(5.0))
    assert Learner(BOX, tp_ucb()).model.freedom == 3.0
    for prior in (None, PRIOR):
        recipe = diagnostics_gp_ucb(prior=prior, freedom=2.0, level=0.1)
        defence = Learner(BOX, recipe).model.defence
        assert isinstance(defence, Diagnostics)
        assert (defence.level, defence.judge.freedom) == (0.1, 2.0)
        assert isinstance(defence.judge.fitting, FixedHyperparameters) == (prior is not None)
    assert Learner(BOX, diagnostics_gp_ucb()).model.fitting.objective is marginal_likelihood
    defaults = Learner(BOX, diagnostics_gp_ucb()).model.defence
    assert (defaults.level, defaults.judge.freedom) == (0.05, 4.0)


def test_with_a_given_prior_the_process_differs_from_gp_ucb_by_one_factor():
    agents = [Learner(GRID, recipe(prior=PRIOR), seed=0) for recipe in (gp_ucb, tp_ucb)]
    rng = np.random.default_rng(0)
    for _ in range(12):
        y = 4.0 + rng.standard_normal()
        x = GRID.points[rng.integers(36)]
        for agent in agents:
            agent.tell(x, y)
    (mean, std), (same, wider) = (agent.posterior.predict(GRID.points) for agent in agents)
    assert_allclose(mean, same)
    assert np.ptp(wider / std) < 1e-9


def test_a_lie_widens_the_process_and_is_left_out_by_the_diagnosis():
    honest, lied = Learner(GRID, tp_ucb(prior=PRIOR)), Learner(GRID, tp_ucb(prior=PRIOR))
    diagnosed = Learner(GRID, diagnostics_gp_ucb(prior=PRIOR))
    for agent in (honest, lied, diagnosed):
        agent.tell(GRID.points[:9], np.linspace(3.0, 5.0, 9))
    honest.tell(GRID.points[20], 4.0)
    lied.tell(GRID.points[20], 100.0)
    assert lied.posterior.factor > 5.0 * honest.posterior.factor
    for lie in (100.0, -1e9, 1e300, math.inf, math.nan):
        diagnosed.tell(GRID.points[20], lie)
    trust = diagnosed.trust
    assert (trust[:9] == 1.0).all()
    assert (trust[9:] == 0.0).all()
