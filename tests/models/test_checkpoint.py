"""What a fit has settled on, as data: the posterior follows from it to the last bit."""

import copy
import json
import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from stoic import Box, Learner
from stoic.models import checkpoint_record
from stoic.posteriors.absorbed import WindowPosterior
from stoic.posteriors.mixture import MixturePosterior
from stoic.recipes import a2_rcgp_ucb, robust

BOX = Box([0.0, -1.0], [1.0, 2.0])
SOMEWHERE = BOX.lower + BOX.widths * np.random.default_rng(9).random((50, 2))


def results(n, seed=0):
    """Noisy results of a smooth function, one in eight of them too good."""
    rng = np.random.default_rng(seed)
    x = BOX.lower + BOX.widths * rng.random((n, 2))
    y = np.sin(5.0 * x[:, 0]) * x[:, 1] + 0.05 * rng.standard_normal(n)
    return x, y + 3.0 * (rng.random(n) < 1 / 8)


def learner(n, recipe=robust, **more):
    made = Learner(BOX, recipe(), seed=0)
    x, y = results(n)
    made.tell(x, y, **more)
    return made


@pytest.fixture(scope="module")
def windowed():
    made = learner(330)
    assert isinstance(made.posterior, WindowPosterior)
    return made


def stored(made):
    """Its checkpoints, after a storage."""
    text = json.dumps(checkpoint_record.record(made.surrogate.checkpoints()), allow_nan=True)
    return checkpoint_record.read(json.loads(text), len(made))


def same(one, other):
    for a, b in zip(one.predict(SOMEWHERE), other.predict(SOMEWHERE), strict=True):
        assert_array_equal(a, b)


def test_a_posterior_with_a_window_follows_from_its_numbers(windowed):
    resumed = learner(330)
    resumed.surrogate.resume(stored(windowed))
    assert resumed.surrogate._posterior is not None  # so nothing is fitted
    same(resumed.posterior, windowed.posterior)
    assert_array_equal(resumed.trust, windowed.trust)
    assert resumed.surrogate.chosen_at == windowed.surrogate.chosen_at > 0


def test_what_comes_later_is_fitted_as_if_nobody_had_stopped(windowed):
    going_on, resumed = copy.deepcopy(windowed), learner(330)
    resumed.surrogate.resume(stored(windowed))
    x, y = results(5, seed=1)
    for one in (going_on, resumed):
        one.tell(x, y)
    same(resumed.posterior, going_on.posterior)
    assert_array_equal(resumed.ask().x, going_on.ask().x)


def test_rows_that_came_since_are_added_to_the_window(windowed):
    x, y = results(5, seed=1)
    known = stored(windowed)
    resumed = learner(330)
    resumed.tell(x, y)
    resumed.surrogate.resume(known)
    going_on = copy.deepcopy(windowed)
    going_on.tell(x, y)
    same(resumed.posterior, going_on.posterior)


def test_a_mixture_of_hypotheses_follows_from_its_numbers():
    made, resumed = learner(12), learner(12)
    assert isinstance(made.posterior, MixturePosterior)
    resumed.surrogate.resume(stored(made))
    same(resumed.posterior, made.posterior)
    assert_array_equal(resumed.trust, made.trust)


def test_an_exact_model_of_more_rows_is_fitted_anew():
    made, resumed = learner(24), learner(30)
    assert made.posterior.n == 24
    resumed.surrogate.resume(stored(made))
    same(resumed.posterior, learner(30).posterior)


def test_bounds_have_their_sites():
    rng = np.random.default_rng(4)
    x = BOX.lower + BOX.widths * rng.random((8, 2))
    made, resumed = learner(40), learner(40)
    for one in (made, resumed):
        one.tell(x, np.full(8, 0.3), censored=True)
    known = made.surrogate
    same(made.posterior, made.posterior)  # fitted
    assert sorted(stored(made).sites) == list(range(40, 48))
    resumed.surrogate.resume(stored(made))
    same(resumed.posterior, known.posterior())


def test_constraints_have_checkpoints_of_their_own():
    x, y = results(40)
    made, resumed = (Learner(BOX, robust(), seed=0) for _ in range(2))
    for one in (made, resumed):
        one.tell(x, y, constraints={"heat": x[:, 0] - 0.7})
    made.ask()
    known = stored(made)
    assert list(known.constraints) == ["heat"]
    resumed.surrogate.resume(known)
    here, there = (one.surrogate.constraints() for one in (resumed, made))
    assert_array_equal(here(SOMEWHERE), there(SOMEWHERE))


def test_a_model_without_such_numbers_has_no_checkpoint():
    made = learner(20, a2_rcgp_ucb)
    assert np.isfinite(made.posterior.predict(SOMEWHERE)[0]).all()
    assert made.surrogate.checkpoints() is None


def leaves(data, path=()):
    """Paths of all values in data of JSON, containers included."""
    yield path
    if isinstance(data, dict | list):
        for key in data if isinstance(data, dict) else range(len(data)):
            yield from leaves(data[key], (*path, key))


def changed(data, path, value):
    if not path:
        return value
    whole = copy.deepcopy(data)
    part = whole
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return whole


WRONG = (None, "x", True, -1, 0, 10**400, math.nan, math.inf, 1e-320, [], [[]], {}, [1, 2, 3], 7)


def test_whatever_a_record_says_nothing_is_raised_but_that_it_is_none(windowed):
    record = json.loads(json.dumps(checkpoint_record.record(windowed.surrogate.checkpoints())))
    paths = list(leaves(record))
    rng = np.random.default_rng(0)
    refused = 0
    for k in rng.choice(len(paths), 150, replace=False).tolist() + list(range(12)):
        for value in (WRONG[i] for i in rng.choice(len(WRONG), 4, replace=False)):
            try:
                known = checkpoint_record.read(changed(record, paths[k], value), 330)
            except ValueError:
                refused += 1
                continue
            posterior = known.objective.posterior(windowed.surrogate.model, windowed.observations)
            if posterior is not None:
                assert np.isfinite(posterior.predict(SOMEWHERE)).all()
    assert refused > 300  # of 648
