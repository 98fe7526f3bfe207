"""Results and ranges at the ends of what a float holds: numbers come out, and one warning."""

import inspect
import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from stoic import testing
from stoic.balancing import build
from stoic.data import LARGEST
from stoic.domains import Box, Finite
from stoic.learner import Learner
from stoic.posteriors.fitting import extreme
from stoic.recipes import BALANCED, MOVED, PHASED, SEQUENTIAL, gp_ucb, robust

# Of a recommendation, see test_results_that_no_model_is_right_for_are_named
pytestmark = pytest.mark.filterwarnings("ignore:Half of the values are")

MAX = 1.7e308
RESULTS = {
    "both signs": [MAX, -MAX, MAX, -MAX, 0.0, MAX, -MAX, 1.0],
    "all the largest": [MAX] * 7,
    "all the lowest": [-MAX] * 7,
    "among honest ones": [0.1, 0.5, 0.9, MAX, 0.4, -MAX, 0.3, 0.2],
    "every size": [1e308, 1.0, 1e-300, -1e308, 1e150, 0.0, 1e200],
    "subnormal": [5e-324, 0.0, 1e-323, 0.0, 5e-324, 0.0],
    "equal": [0.3] * 7,
    "one, then nan": [1e308, math.nan, math.nan, math.nan],
    "infinities": [math.inf, -math.inf, math.inf, 1e308],
}


def check(learner, results):
    for y in results:
        learner.tell(learner.ask().x, y)
        if len(learner.observations) in (3, len(results)):
            found = learner.recommend()
            assert np.isfinite([found.mean, found.model_mean]).all()
            known = learner.observations.observed
            if len(np.unique(known[np.isfinite(known)])) > 1:  # else nothing has a scale
                assert np.isfinite([found.lower, found.upper]).all()
    points = learner.domain.spread(20, np.random.default_rng(0))
    mean, std = learner.posterior.predict(points)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()


def pairs():
    """All results for the default, and for the others those that overflow in most ways."""
    for recipe in (write() for write in (robust, *SEQUENTIAL)):
        for name, results in RESULTS.items():
            first = recipe == robust() or name in ("both signs", "every size", "infinities")
            marks = () if recipe == robust() or name == "every size" else pytest.mark.long
            marks = marks if first else pytest.mark.slow
            yield pytest.param(recipe, results, id=f"{recipe.write.__name__}-{name}", marks=marks)


@pytest.mark.parametrize(
    ("scale", "said"), [(1.0, ""), (1e-80, "within"), (1e100, "within"), (1e300, "beyond 1e.150")]
)
def test_results_that_no_model_is_right_for_are_named(scale, said):
    results = np.full(6, scale) if "beyond" in said else scale * np.arange(6.0)
    learner = Learner(Box([4.0], [12.0]))
    learner.tell(learner.domain.spread(6, np.random.default_rng(0)), results)
    if not said:
        learner.recommend()
        return
    with pytest.warns(UserWarning, match=f"Half of the values are {said}.*another unit"):
        learner.recommend()


def test_results_over_many_orders_of_magnitude_are_named():
    orders = np.random.default_rng(0).uniform(-3.0, 9.0, 10)
    for sign in (1.0, -1.0):
        assert "10 orders of magnitude" in extreme(sign * 10.0**orders)[0]
    # One result of another size, both signs, and a search that came near to 0, are ordinary
    assert extreme([*np.arange(1.0, 10.0), 1e12]) == ()
    assert extreme(10.0**orders * np.resize([1.0, -1.0], 10)) == ()
    assert extreme([*np.arange(1.0, 11.0), *10.0**-orders]) == ()


@pytest.mark.parametrize(("recipe", "results"), [*pairs()])
def test_results_of_any_size_give_finite_means(recipe, results):
    check(Learner(Box([4.0], [12.0], candidates=64, climbs=3), recipe), results)


@pytest.mark.parametrize("recipe", [*PHASED, *BALANCED, *MOVED])
def test_so_they_do_in_methods_with_arguments(recipe):
    domain = Box([0.0], [1.0], candidates=64, climbs=3).grid(20)
    examples = {"prior": testing.example_prior(domain), "budget": 5.0, "threshold": 0.5}
    parameters = inspect.signature(recipe).parameters.items()
    needed = [name for name, each in parameters if each.default is each.empty]
    arguments = {name: examples.get(name, 0.1) for name in needed}
    check(build(domain, recipe(**arguments)), RESULTS["both signs"])


@pytest.mark.parametrize("noise", [5e-324, 1.7e308])
def test_a_noise_of_any_size_gives_finite_means(noise):
    learner = Learner(Box([0.0], [1.0], candidates=64, climbs=3), robust())
    for y in RESULTS["both signs"]:
        learner.tell(learner.ask().x, y, noise)
    assert np.isfinite(learner.recommend().mean)


def test_a_result_counts_as_one_whose_square_is_a_number():
    learner = Learner(Box([0.0], [1.0]), gp_ucb())
    told = [MAX, -MAX, math.inf, -math.inf, math.nan, 2.5, -1e149]
    learner.tell(np.linspace(0.0, 1.0, 7)[:, None], told)
    counted = [LARGEST, -LARGEST, *told[2:]]
    assert_array_equal(learner.observations.observed, counted)
    assert told[0] == MAX


@pytest.mark.parametrize("width", [1.1e-100, 1e-9, 9e99])
def test_the_unit_of_a_coordinate_does_not_matter(width):
    domain = Box([-0.5 * width, 0.0], [0.5 * width, 1.0], candidates=64, climbs=3)
    check(Learner(domain, gp_ucb()), RESULTS["both signs"])


@pytest.mark.parametrize(
    ("lower", "upper", "width"),
    [(-MAX, MAX, "inf"), (0.0, 5e-324, "4.94066e-324"), (0, 1e200, "1e")],
)
def test_a_width_that_cannot_be_computed_with_is_refused(lower, upper, width):
    for domain in (
        lambda: Box([0.0, lower], [1.0, upper]),
        lambda: Finite([[1, lower], [2, upper]]),
    ):
        with pytest.raises(ValueError, match=rf"widths between .* got {width}.* in coordinate 1: "):
            domain()


def test_a_corner_that_is_not_finite_is_the_one_that_is_named():
    with pytest.raises(ValueError, match=r"got \[0, inf\] in coordinate 1"):
        Box([0.0, 0.0, 3.0], [1.0, math.inf, 2.0])
