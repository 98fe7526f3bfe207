"""Where the value stands in an output."""

from __future__ import annotations

import contextlib
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoic.integrations.reported import noise_of, noises_of, unknown
from stoic.refusal import RefusalError
from stoic.tuning.reading import Beside, NoValueError, Reading

LOSS = r"regex:loss=(\S+)"


@pytest.mark.parametrize(
    ("rule", "text", "value"),
    [
        ("last-line", "a\n0.5\n", 0.5),
        ("last-line", "0.5\n\n  -1e3  \n\n", -1000.0),
        ("last-line", "1e300", 1e300),
        ("last-line", "inf", math.inf),
        ("last-line", "-Infinity", -math.inf),
        (LOSS, "loss=3\nloss=2\nend", 2.0),
        (LOSS, "loss=-4.75D-02", -0.0475),
        ("last-line", "1d+2", 100.0),
        (r"regex:elapsed (\d+)d\d+h", "elapsed 2d5h", 2.0),
        (r"regex:elapsed (\d+)", "elapsed 2d5h", 2.0),
        (r"regex:([^,]+)$", "10,250", 250.0),
        (r"regex:,([\d.]+)", "10,250", 250.0),
        (r"regex:([\d.]+)", "p-99: 12.5", 12.5),
        (r"regex:([\d.]+)", "GPT-4", 4.0),
        (r"regex:ckpt-([\d.]+)", "ckpt-0.25e10.pt", 0.25),
        (r"regex:^acc (\d+)%$", "acc 93%\ndone", 93.0),
        (r"regex:^acc (\d+)%$", "acc 93%\r\ndone\r\n", 93.0),
        ("json:loss", '{"loss": 1}\n{"loss": 2}\nbye', 2.0),
        ("json:a.b.1", '{"a": {"b": [1, 2.5]}}', 2.5),
        ("json:loss", '{"loss": -Infinity}', -math.inf),
        ("json:loss", '{"loss": 3}\n{broken', 3.0),
        ("json:0", "[7]", 7.0),
        ("json:n", '{"n": 1' + "0" * 400 + "}", math.inf),
    ],
)
def test_the_value_is_found(rule, text, value):
    assert Reading.parse(rule).find(text) == value


@pytest.mark.parametrize(
    ("rule", "text", "reason"),
    [
        ("last-line", "", "printed nothing"),
        ("last-line", " \n\n", "printed nothing"),
        ("last-line", "0.5\ndone", "the last line is no number"),
        ("last-line", "accuracy 0.5", "no number"),
        ("last-line", "93.1 %", r"a percentage, add --value 'regex:(\S+?)\s*%'"),
        ("last-line", "12.5ms", r"a number of ms, add --value 'regex:(\S+?)\s*ms'"),
        ("last-line", "1e3 kB", r"add --value 'regex:(\S+?)\s*kB'"),
        ("last-line", "5 " + "x" * 99, "no number"),
        ("last-line", "infeasible", "the last line is no number"),
        ("last-line", "nano", "the last line is no number"),
        ("last-line", "0.5,0.7", "the last line is no number"),
        ("last-line", ",", "the last line is no number"),
        ("last-line", "1.234,5", "with a comma"),
        ("last-line", "4,75", "a number with a comma: the decimal mark is a point"),
        ("last-line", "1,234.5", "with a comma"),
        (
            "regex:drag *= *([-+0-9.eE]+)",
            "drag = 1.5D-03",
            r"before the exponent, let the group be (\S+)",
        ),
        (r"regex:drag = ([\d.]+)", "drag = 1.5E-03", "ends before the exponent"),
        (r"regex:([\d.]+)", "p99 9,997.6", "may lack its thousands, print no commas, or begin"),
        (r"regex:(\d+)", "p99 3,72", "may lack its thousands"),
        (r"regex:([\d.]+)", "10,2.5", "may lack its thousands"),  # not by the value
        (r"regex:(\d+)", "p99 9997.6ms", r"is the end of a number, let the group be (\S+)"),
        (r"regex:(\d)$", "p99 = 1234", "the end of a number"),
        (r"regex:([\d.]+)", "loss = -5.5", "the end of a number"),
        (r"regex:drag = (\S+)", "drag = 1,5", "a number with a comma: the decimal mark is a point"),
        (
            r"regex:took: (.*)",
            "took: 95.1 ms",
            r"a number of ms, let the group be the number, as (\S+?)\s*ms",
        ),
        (r"regex:loss=(\w+)", "loss=3e-05", "is no number"),
        ("json:los.a", '{"loss": 1, "acc": 2}', "has no key los, it has 'loss, acc'"),
        ("last-line", "loss: 0.5", r"add --value 'regex:loss:\s*(\S+)'"),
        ("last-line", '{"loss": 0.5}', "the last line is JSON, add --value json:KEY"),
        ("last-line", "{loss}", "no number"),
        ("last-line", "[0.5]", "no number"),
        ("last-line", "1_000", "no number"),
        ("last-line", "٣", "no number"),
        ("last-line", "0x10", "no number"),
        ("last-line", "nan", "the value is nan"),
        (LOSS, "nothing", "nothing matches"),
        (LOSS, "loss=none", "no number"),
        (LOSS, "loss=1\nloss=NaN", "the value is nan"),
        (r"regex:x(\d)?", "x", "nothing matches"),
        ("json:loss", "none", "no line of the output is JSON"),
        ("json:loss", '{"los": 1}', "no key loss"),
        ("json:a.b", '{"a": {"c": 1}}', "no key a.b"),
        ("json:a.7", '{"a": [1]}', "no key a.7"),
        ("json:a", '{"a": true}', "a is no number"),
        ("json:a", '{"a": "1"}', "no number"),
        ("json:a", '{"a": null}', "a is no number"),
        ("json:a", '{"a": NaN}', "the value is nan"),
        ("json:a", "[" * 100_000, "no line of the output is JSON"),
    ],
)
def test_no_value_has_a_reason_and_is_never_made_up(rule, text, reason):
    with pytest.raises(NoValueError) as error:
        Reading.parse(rule).find(text)
    assert reason in str(error.value)
    assert len(str(error.value)) < 120


@pytest.mark.parametrize(
    ("rule", "text", "found"),
    [
        ("last-line", "0.5\nstep 7", "'step 7'"),
        ("last-line", '{"loss": 7}', "'{\"loss\": 7}'"),
        ("last-line", "x" * 999, repr("x" * 77 + "...")),
        (LOSS, "loss=many", "'many'"),
        ("json:a", '{"a": [7]}', "'[7.0]'"),
        ("last-line", "", ""),
    ],
)
def test_what_stands_in_the_place_of_a_number_is_no_part_of_the_reason(rule, text, found):
    """Failures for one reason are counted together, whatever the program printed."""
    with pytest.raises(NoValueError) as error:
        Reading.parse(rule).find(text)
    assert error.value.found == found
    assert not found or found not in str(error.value)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("lastline", "last-line"),
        ("", "last-line"),
        ("regex:(", "wrong"),
        ("regex:loss", "no group"),
        ("json:", "no JSON key"),
        ("json:a..b", "no JSON key"),
    ],
)
def test_a_rule_that_is_wrong_is_refused(rule, said):
    with pytest.raises(RefusalError, match=said):
        Reading.parse(rule)


@given(st.floats(allow_nan=False))
def test_every_number_that_python_prints_is_read_back(number):
    assert Reading.parse("last-line").find(f"x\n{number!r}\n") == number
    assert Reading.parse(LOSS).find(f"loss={number!r}") == number
    assert Reading.parse("json:v").find(json.dumps({"v": number})) == number


@given(st.text())
def test_any_text_is_a_number_or_a_reason(text):
    for rule in ("last-line", LOSS, "json:a"):
        with contextlib.suppress(NoValueError):
            assert not math.isnan(Reading.parse(rule).find(text))


@pytest.mark.parametrize(
    ("text", "beside"),
    [
        ('{"loss": 1, "executed": {"heat": 61.2}}', Beside(executed={"heat": 61.2})),
        ('{"loss": 1, "standard_error": 0.5}\nbye', Beside(standard_error=0.5)),
        ('{"standard_error": 2}', Beside(standard_error=2)),
        (
            '{"failed": "bad", "executed": {"n": 3, "kind": "a"}}',
            Beside("bad", {"n": 3.0, "kind": "a"}),
        ),
        ("0.5", Beside()),
        ("[1]", Beside()),
        ('{"executed": true, "standard_error": "s", "failed": "oom"}', Beside(standard_error="s")),
        ('{"executed": {}, "standard_error": 0}', Beside(standard_error=0)),
        ('{"standard_error": null}', Beside()),
        ('{"executed": {"heat": 1}}\n{"loss": 1}', Beside()),  # the last line of JSON counts
    ],
)
def test_what_stands_beside_the_value(text, beside):
    assert Beside.find(text) == beside


# The square of the last is 0
@pytest.mark.parametrize("error", ["small", 0, -1, math.inf, True, 1e-200])
def test_a_standard_error_is_a_number_above_0(error):
    assert noise_of(error) is None
    assert noises_of([1.0, error], "ab") is None
    assert noises_of({"a": 1.0, "b": error}, "ab") is None


def test_the_standard_error_of_some_objectives_may_be_unknown():
    assert noise_of(None) is None
    for some in ([None, 2.0], [math.nan, 2.0], {"b": 2.0}, {"a": None, "b": 2.0}):
        assert noises_of(some, "ab") == (None, 4.0)
    for none in ([None, math.nan], {}, {"a": None}):
        assert noises_of(none, "ab") is None
        assert unknown(none)
    assert not unknown([None, "small"])


def test_standard_errors_are_a_list_or_by_name():
    assert noise_of(2) == 4.0
    assert noises_of([0.5, 2], "ab") == noises_of({"b": 2.0, "a": 0.5}, "ab") == (0.25, 4.0)
    for wrong in (2.0, [2.0], [1.0, 1.0, 1.0], {"c": 1.0}, {"a": 1.0, "b": 1.0, "c": 1.0}, "12"):
        assert noises_of(wrong, "ab") is None


def test_the_rule_that_is_suggested_reads_the_line():
    with pytest.raises(NoValueError) as error:
        Reading.parse("last-line").find("test loss =-1.5e-3")
    rule = str(error.value).split("'")[1]
    assert Reading.parse(rule).find("test loss =-1.5e-3") == -0.0015
