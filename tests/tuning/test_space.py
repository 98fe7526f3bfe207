"""Search spaces as people write them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import (
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
    distribution_to_json,
)

from stoic.integrations.optuna.encoding import as_written, check_fixed
from stoic.refusal import RefusalError
from stoic.tuning.space import (
    parse_as,
    parse_assignments,
    parse_fixed,
    parse_json,
    parse_range,
    parse_space,
)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("float(1e-5, 1e-1, log)", FloatDistribution(1e-5, 1e-1, log=True)),
        ("float( -1 ,1 )", FloatDistribution(-1, 1)),
        ("float(0, 1, step=0.1)", FloatDistribution(0, 1, step=0.1)),
        ("float(0, 1, log=false)", FloatDistribution(0, 1)),
        ("int(1, 10)", IntDistribution(1, 10)),
        ("int(1,100,log)", IntDistribution(1, 100, log=True)),
        ("int(1,100,log=true)", IntDistribution(1, 100, log=True)),
        ("int(0, 100, step=20)", IntDistribution(0, 100, step=20)),
        ("choice(a, b, c)", CategoricalDistribution(["a", "b", "c"])),
        ("choice('a, b', \"c\")", CategoricalDistribution(["a, b", "c"])),
        # A number is one only where it is written back as it was written.
        ("choice(1, 2.5, 08, 1e3)", CategoricalDistribution([1, 2.5, "08", "1e3"])),
        (["rbf", 3, True], CategoricalDistribution(["rbf", 3, True])),
        (IntDistribution(3, 4), IntDistribution(3, 4)),
    ],
)
def test_a_range_means_what_it_says(written, meant):
    assert parse_range("p", written) == meant


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("float(1, 1)", "empty"),
        ("int(5, 2)", "empty"),
        ("float(0, 1, log)", "above 0"),
        ("int(-1, 5, log)", "above 0"),
        ("float(1, 2, log, step=0.5)", "choose one"),
        ("float(0, 1, step=0)", "above 0"),
        ("float(0, 1, step=2)", "at most high - low"),
        ("float(0, 1, step=0.3)", "0.9"),
        ("int(0, 10, step=4)", "8"),
        ("float(0, inf)", "finite"),
        ("float(nan, 1)", "finite"),
        ("int(0, 1.5)", "whole number"),
        (f"int(0, 1{'0' * 300})", "at most 300 digits"),
        ("float(0)", "a low and a high"),
        ("float(0, 1, 2)", "a low and a high"),
        ("float(0, 1, base=2)", "unknown option 'base'"),
        ("float(0, , 1)", "empty item"),
        ("float(0, 1,)", "empty item"),
        ("floot(0, 1)", "not a range"),
        ("0.5", "not a range"),
        (0.5, "not a range"),
        ("choice(a)", "at least two"),
        ("choice()", "at least two"),
        ("choice(a, b, a)", "twice"),
        ("choice(1, 1.0)", "twice"),
        ([1, "1"], "twice"),
        ([[1], [2]], "a choice is a text"),
        ("choice('a, b)", "cannot read"),
    ],
)
def test_a_wrong_range_is_one_sentence_with_the_name_of_the_parameter(written, said):
    with pytest.raises(RefusalError, match=r"^lr: ") as refusal:
        parse_range("lr", written)
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_an_assignment_has_a_name_and_a_range():
    assert parse_assignments(["lr = float(0, 1)"]) == {"lr": FloatDistribution(0, 1)}
    for wrong in ("lr", "=float(0, 1)", "2x=float(0, 1)", "a b=float(0, 1)"):
        with pytest.raises(RefusalError):
            parse_assignments([wrong])


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("choice(1e-5, .5, +1, 08, a)", [1e-5, 0.5, 1, "08", "a"]),
        ("choice(true, False, None, nan)", [True, False, None, "nan"]),
        ("choice('1', \"true\")", ["1", "true"]),
        ([None, 5], [None, 5]),
    ],
)
def test_in_python_a_choice_is_a_literal_and_names_are_texts(written, meant):
    (distribution,) = parse_space({"learning rate": written}, in_python=True).values()
    assert list(distribution.choices) == meant
    assert list(map(type, distribution.choices)) == list(map(type, meant))
    # What is written for people is read again as what it is
    assert parse_range("p", as_written(distribution), in_python=True) == distribution
    for wrong in ("", "a=b", 1):
        with pytest.raises(RefusalError, match="name of a parameter"):
            parse_space({wrong: "float(0, 1)"}, in_python=True)


def test_for_a_program_a_choice_stays_as_it_was_written_and_a_list_is_json():
    assert parse_range("p", "choice(1e-5, true)") == CategoricalDistribution(["1e-5", "true"])
    assert as_written(parse_range("p", "choice(1e-5, true)")) == 'choice("1e-5", "true")'
    assert parse_range("p", "[true, null, 1e-5]") == CategoricalDistribution([True, None, 1e-5])
    with pytest.raises(RefusalError, match="not a range"):
        parse_range("p", "[true")


def test_a_value_may_be_spelled_in_another_way():
    choices = CategoricalDistribution([True, 1, 1e-3, "0.5", None])
    read = [parse_as(choices, text) for text in ("true", "1", "0.001", "1e-3", ".5", "None")]
    assert read == [True, 1, 1e-3, 1e-3, "0.5", None]
    assert read[0] is True
    assert read[1] is not True
    assert parse_as(CategoricalDistribution([1, 2]), "true") == "true"
    assert parse_as(CategoricalDistribution(["1.0", "1.00"]), "1e0") == "1e0"  # which one?


@pytest.mark.parametrize(
    ("text", "value"), [("null", None), ("None", None), ("'None'", "None"), ('"None"', "None")]
)
def test_none_and_the_text_none_are_told_apart(text, value):
    assert parse_as(CategoricalDistribution(["None", None, True]), text) == value


def test_a_space_without_parameters_is_refused():
    with pytest.raises(RefusalError, match="nothing to tune"):
        parse_space({})
    with pytest.raises(RefusalError, match="dict from names to ranges"):
        parse_space([("x", 0.0, 1.0)])


numbers = st.floats(min_value=-1e300, max_value=1e300, allow_nan=False)


@given(st.tuples(numbers, numbers).filter(lambda pair: pair[0] < pair[1]))
def test_every_float_range_survives_being_written(pair):
    low, high = pair
    assert parse_range("p", f"float({low!r}, {high!r})") == FloatDistribution(low, high)


@given(st.lists(st.text(alphabet="abc1.e-_ ,", min_size=1), min_size=2, max_size=5, unique=True))
def test_every_quoted_choice_survives_being_written(choices):
    written = "choice(" + ", ".join(f'"{choice}"' for choice in choices) + ")"
    assert parse_range("p", written) == CategoricalDistribution(choices)


def test_json_takes_both_our_texts_and_the_distributions_of_optuna():
    optunas = json.loads(distribution_to_json(IntDistribution(1, 8)))
    text = json.dumps({"a": "float(0, 1)", "b": optunas})
    assert parse_json(text) == {"a": FloatDistribution(0, 1), "b": IntDistribution(1, 8)}
    for wrong in ("{", "[]", '{"a": {"name": "Nothing"}}', '{"a": {}}', "{}"):
        with pytest.raises(RefusalError):
            parse_json(wrong)


FIXED = {
    "x": FloatDistribution(0.0, 1.0),
    "s": FloatDistribution(0.0, 1.0, step=0.25),
    "n": IntDistribution(1, 9),
    "k": CategoricalDistribution(["a", 1, True]),
}


def test_fixed_values_have_the_type_of_their_parameter():
    fixed = parse_fixed(["x=1", "s = 0.25", "n=3", "k=True"], FIXED)
    assert fixed == {"x": 1.0, "s": 0.25, "n": 3, "k": True}
    assert [type(value) for value in fixed.values()] == [float, float, int, bool]
    assert parse_fixed(["k=1"], FIXED)["k"] is not True
    assert parse_fixed(["k=null"], {"k": CategoricalDistribution(["a", None])}) == {"k": None}
    with pytest.raises(RefusalError, match=r'k cannot be "False": it is \[true, false\]'):
        check_fixed({"k": "False"}, {"k": CategoricalDistribution([True, False])}, "it has")
    assert parse_fixed([], FIXED) == {}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x=2", "x cannot be 2"),
        ("x=nan", "x cannot be nan"),
        ("x=half", "x cannot be half"),
        ("s=0.3", "s cannot be 0.3"),
        ("n=1.5", "n cannot be 1.5"),
        ("k=b", "k cannot be b"),
        ("y=1", "There is no parameter 'y'"),
        ("x", "not NAME=VALUE"),
        ("x=", "not NAME=VALUE"),
    ],
)
def test_a_value_that_a_parameter_cannot_have_is_not_fixed(text, reason):
    with pytest.raises(RefusalError, match=reason):
        parse_fixed([text], FIXED)


@pytest.mark.parametrize(
    ("pair", "ways"),
    [
        ((0, 1), ["'int(0, 1)'", "'choice(0, 1)'"]),
        ([0.5, 2], ["'float(0.5, 2)'", "'choice(0.5, 2)'"]),
        ((1e-5, 0.1, "log-uniform"), ["'float(1e-05, 0.1, log)'"]),
    ],
)
def test_a_pair_of_numbers_may_be_a_range_or_a_choice(pair, ways):
    with pytest.raises(RefusalError) as refused:
        parse_space({"x": pair})
    assert all(way in str(refused.value) for way in ways)
    assert parse_space({"x": [1, 2, 4]})["x"] == CategoricalDistribution([1, 2, 4])
    assert parse_space({"x": [1, 2.5, "a"]})["x"] == CategoricalDistribution([1, 2.5, "a"])
    with pytest.raises(RefusalError, match="may be a range"):
        parse_space({"x": [np.int64(1), np.int64(10), "log"]})
    assert parse_space({"x": [1, 2, "catalog"]})["x"].choices == (1, 2, "catalog")
    numpy = [np.int64(1), np.float64(0.5), np.bool_(False), np.str_("a")]
    choices = parse_space({"x": numpy})["x"].choices
    assert [type(choice) for choice in choices] == [int, float, bool, str]
    assert parse_space({"x": [True, False]})["x"] == CategoricalDistribution([True, False])
