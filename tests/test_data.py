import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from stoic.data import Choice, Observations, Outcome, Recommendation, Targets


def some(arms=True):
    return Observations(
        np.arange(10.0).reshape(5, 2),
        np.array([1.0, np.nan, np.inf, 4.0, 5.0]),
        np.array([np.nan, 0.5, np.nan, 0.2, np.nan]),
        np.arange(5) if arms else None,
    )


@pytest.mark.parametrize("arms", [True, False])
def test_parts_of_observations_keep_their_numbers_and_windows_do_not(arms):
    observations = some(arms)
    head, tail, window = (
        observations.until(2),
        observations.since(2),
        observations.only(slice(2, None)),
    )
    assert (len(observations), len(head), len(tail), len(window)) == (5, 2, 3, 3)
    assert (head.start, tail.start, window.start) == (0, 2, 0)
    assert tail.since(1).start == 3
    assert tail.until(1).start == 2
    for name in ("x", "observed", "noise"):
        whole = getattr(observations, name)
        assert_array_equal(getattr(head, name), whole[:2])
        assert_array_equal(getattr(tail, name), whole[2:])
        assert_array_equal(getattr(window, name), whole[2:])
    if arms:
        assert_array_equal(tail.arms, [2, 3, 4])
        assert_array_equal(window.arms, [2, 3, 4])
        assert_array_equal(head.arms, [0, 1])
    else:
        assert head.arms is tail.arms is window.arms is None


def test_a_noise_that_was_told_counts_and_the_priors_fills_in():
    assert_array_equal(some().own_noise(0.7), [0.7, 0.5, 0.7, 0.2, 0.7])


@pytest.mark.parametrize("noun", [Observations, Targets, Choice, Outcome, Recommendation])
def test_nouns_are_frozen(noun):
    assert noun.__dataclass_params__.frozen
    fields = {field.name: None for field in dataclasses.fields(noun) if field.init}
    thing = noun(**fields)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(thing, next(iter(fields)), 1)
