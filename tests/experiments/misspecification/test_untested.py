"""The world in which two treatments were never given together."""

from dataclasses import replace

import numpy as np
import pytest

from stoic.experiments.figure import Cell
from stoic.experiments.misspecification.contextual import ALL, OWN, TURNS, run
from stoic.experiments.misspecification.untested import BOTH, NEITHER, Settings
from stoic.recipes.balanced import WidthPromise

SMALL = replace(Settings(), rounds=1500)


@pytest.mark.parametrize("error", Settings().errors)
def test_f_is_within_eps_of_an_additive_function_and_of_none_that_is_nearer(error):
    problem = SMALL.problem(error, 0)
    phi, f = problem.domain.points, problem.truth.values
    weights, residual, *_ = np.linalg.lstsq(phi, problem.near - 0.5, rcond=None)
    assert residual == pytest.approx(0.0, abs=1e-20)
    assert problem.norm == pytest.approx(np.linalg.norm(weights))
    assert problem.error == pytest.approx(error)
    # The contrast of the four cells is 0 for additive functions and 4 eps for f.
    assert f @ [1.0, -1.0, -1.0, 1.0] == pytest.approx(4.0 * error)
    assert 0.0 <= f.min() <= f.max() <= 1.0


def test_the_formula_has_five_learners():
    full = Settings()
    assert np.ceil(1.0 + 0.5 * np.log2(full.rounds / full.gain**2)) == full.learners


def test_learners_have_the_whole_enlargement_and_a_tenth_of_the_bounds():
    made = SMALL.balancing(0.3, everything=False)
    errors = [base.confidence.error for base in made.bases]
    assert errors == pytest.approx([SMALL.gain**-0.5 / 2**i for i in range(5)])
    for bound, error in zip(made.bounds, errors, strict=True):
        assert isinstance(bound, WidthPromise)
        assert (bound.share, bound.error) == (0.1, error)


def test_only_neither_or_both_is_played_after_the_results_of_each():
    first, second = SMALL.domain.points[1:3]
    np.testing.assert_array_equal(SMALL.before, [*[first] * 300, *[second] * 300])
    assert SMALL.offered(np.random.default_rng(0)).tolist() == [NEITHER, BOTH]
    (row,) = run(SMALL, Cell("0.1", TURNS, 0))
    assert row.plays == "300 300 300 300 300"  # what is known is nobody's play


def test_who_assumes_little_stays_and_who_assumes_much_tries():
    regret = {
        (error, i): run(SMALL, Cell(error, f"eps_{i} alone", 1))[0].regret
        for error in ("0", "0.15")
        for i in (1, 5)
    }
    assert regret["0.15", 5] == pytest.approx(0.4 * SMALL.rounds)  # never
    assert regret["0.15", 1] < 0.6 * regret["0.15", 5]
    assert regret["0", 5] < 0.1 * regret["0", 1]
    shared = [run(SMALL, Cell("0.15", name, 1))[0].regret for name in (OWN, ALL)]
    assert shared[1] < shared[0] < regret["0.15", 5]
