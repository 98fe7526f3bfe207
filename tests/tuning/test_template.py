"""A command with placeholders."""

from __future__ import annotations

import argparse
import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from stoic.refusal import RefusalError
from stoic.tuning.template import Template


def test_placeholders_are_replaced_anywhere_and_braces_can_be_written():
    template = Template(("run", "--lr={lr}", "{lr}{n}", '{{"n": {n}}}', "plain"))
    assert template.placeholders == {"lr", "n"}
    assert template.fill({"lr": 1e-05, "n": 3}) == [
        "run",
        "--lr=1e-05",
        "1e-053",
        '{"n": 3}',
        "plain",
    ]


@given(st.floats(allow_nan=False))
def test_a_number_reads_back_the_same_and_is_no_option_of_argparse(value):
    parser = argparse.ArgumentParser()
    parser.add_argument("--x", type=float)
    arguments = Template(("--x", "{x}")).fill({"x": value})
    assume(value != -math.inf)
    assert parser.parse_args(arguments).x == value


@given(st.text())
def test_a_value_never_becomes_two_arguments_nor_a_placeholder(value):
    assert Template(("run", "a{x}b")).fill({"x": value}) == ["run", f"a{value}b"]


def test_an_argument_of_a_parameter_that_a_setting_lacks_is_left_out():
    command = ("run", "-v", "{kind}", "--bend", "{bend}", "-w={width}", "--slope", "{slope}", "end")
    template = Template(command)
    line = template.fill({"kind": "line", "slope": 0.5})
    assert line == ["run", "-v", "line", "--slope", "0.5", "end"]
    curve = template.fill({"kind": "curve", "bend": 0.5, "width": 3})
    assert curve == ["run", "-v", "curve", "--bend", "0.5", "-w=3", "end"]


def test_one_text_is_split_as_a_shell_would():
    assert Template.parse("python 'my train.py' --lr {lr}").arguments == (
        "python",
        "my train.py",
        "--lr",
        "{lr}",
    )
    with pytest.raises(RefusalError, match="Cannot split"):
        Template.parse("python 'train")


@pytest.mark.parametrize("argument", ["{", "}", "{}", "{x:.3g}", "{x!r}", "a{b"])
def test_braces_that_mean_nothing_are_refused(argument):
    with pytest.raises(RefusalError, match="braces"):
        Template(("run", argument))


def test_parameters_and_placeholders_must_agree():
    Template(("{python}", "{x}", "{trial}")).check(["x"])
    with pytest.raises(RefusalError, match="'y' is not used"):
        Template(("run", "{x}")).check(["x", "y"])
    with pytest.raises(RefusalError, match="no parameter 'z'"):
        Template(("run", "{x}", "{z}")).check(["x"])
    with pytest.raises(RefusalError, match="cannot name a parameter"):
        Template(("run", "{trial}")).check(["trial"])


def test_a_command_without_a_program_is_refused():
    for nothing in ((), ("",)):
        with pytest.raises(RefusalError, match="no program"):
            Template(nothing).check([])


@pytest.mark.parametrize(
    "word", ["|", "&&", ";", ">", ">log", "2>&1", "~", "~/data", "$HOME", "$HOME/x"]
)
def test_what_only_a_shell_understands_is_refused(word):
    with pytest.raises(RefusalError, match="no shell runs: write sh -c"):
        Template.parse(["train", "{x}", word])
    assert Template.parse(["sh", "-c", "train {x}", word]).arguments[-1] == word
    assert Template.parse(["train", f"{{x}}{word}-"]).arguments  # inside of an argument
