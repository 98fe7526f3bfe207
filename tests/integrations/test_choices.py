"""Numbers of choices are those of Optuna."""

import warnings

import pytest
from optuna.distributions import CategoricalDistribution

from stoic.integrations.optuna.choices import ChoiceNumbers
from stoic.integrations.optuna.explanation import setting
from stoic.integrations.optuna.internals import possible

NAN = float("nan")


@pytest.mark.parametrize(
    "choices",
    [
        ("a", "b", "c"),
        (1, True, 1.0, 0, False),  # equal to each other: the first counts
        (None, 0.0, -0.0, NAN, "nan"),
        ([1, 2], "a", [3]),  # without a hash
    ],
)
def test_they_are_those_of_optuna(choices):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of choices that not every storage can hold
        distribution = CategoricalDistribution(choices)
    numbers = ChoiceNumbers(distribution)
    for value in (*choices, float("nan"), "none", 7, [1, 2], [9], {}):
        assert (value in numbers) == possible(distribution, value)
        if value in numbers:
            assert numbers(value) == distribution.to_internal_repr(value)
        else:
            with pytest.raises(ValueError, match="not in"):
                numbers(value)


def test_texts_that_look_like_other_values_are_shown_in_quotes():
    values = [True, "True", 1, "1", None, "None", "", "x  y=2", "'1'", "3x3", "adam"]
    shown = [setting({"c": value}).removeprefix("c=") for value in values]
    quoted = ["'True'", "'1'", "'None'", "''", "'x  y=2'", "\"'1'\""]
    assert shown == ["True", quoted[0], "1", quoted[1], "None", *quoted[2:], "3x3", "adam"]
