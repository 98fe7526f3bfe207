"""What a failure means: exceptions, and rules for how a program ends."""

from __future__ import annotations

import pickle

import pytest

import stoic
from stoic.refusal import RefusalError
from stoic.tuning.failure import Failed, parse_assignments, parse_rules


def test_an_objective_says_the_kind_and_the_reason():
    failed = stoic.Failed("infeasible", "the parts collide")
    assert (failed.kind, str(failed)) == ("infeasible", "the parts collide")
    assert str(Failed("bad")) == "bad"
    again = pickle.loads(pickle.dumps(failed))
    assert (again.kind, again.message) == ("infeasible", "the parts collide")
    with pytest.raises(ValueError, match="transient, infeasible, bad, got 'broken'"):
        Failed("broken")


def test_endings_are_written_in_several_ways_and_mean_one_thing():
    rules = parse_rules(
        {
            "exit code 3": "infeasible",
            "Exit  004": "bad",
            "exit": "transient",
            "signal kill": "bad",
            "signal SIGTERM": "transient",
            "signal 11": "infeasible",
            "signal": "transient",
            "timeout": "bad",
            "nan": "bad",
        }
    )
    assert rules == {
        "exit 3": "infeasible",
        "exit 4": "bad",
        "exit": "transient",
        "signal 9": "bad",
        "signal 15": "transient",
        "signal 11": "infeasible",
        "signal": "transient",
        "timeout": "bad",
        "nan": "bad",
    }
    assert parse_assignments(["exit 3 = infeasible", "timeout=bad"]) == {
        "exit 3": "infeasible",
        "timeout": "bad",
    }


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["exit 3"], "not ENDING=KIND"),
        (["exit 0=bad"], "does not end with 'exit 0'"),
        (["exit 256=bad"], "does not end with"),
        (["exit -1=bad"], "does not end with"),
        (["exit three=bad"], "does not end with"),
        (["signal 0=bad"], "does not end with"),
        (["signal SIGNOTHING=bad"], "does not end with"),
        (["timeout 5=bad"], "does not end with"),
        (["=bad"], "does not end with ''"),
        (["timeout=broken"], "transient, infeasible, bad, got 'broken'"),
        (["timeout=bad", "timeout=bad"], "given twice"),
        (["exit 3=bad", "exit code 3=bad"], "given twice"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(texts, said):
    with pytest.raises(RefusalError, match=said):
        parse_assignments(texts)
