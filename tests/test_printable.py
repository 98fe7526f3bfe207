"""Texts of others, as they may be shown."""

from __future__ import annotations

import pytest

from stoic.printable import at_least, printable, probability


@pytest.mark.parametrize(
    "text", ["", "lr=0.1  k=a", "größe ± 2 µ", "日本語 🙂", r"C:\new\table", "[red]"]
)
def test_what_can_be_read_stays(text):
    assert printable(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb\r\tc", r"a\nb\r\tc"),
        ("\x1b]0;title\x07\x1b[2J", r"\x1b]0;title\x07\x1b[2J"),
        ("\x00\x7f\x9b31m\x85", r"\x00\x7f\x9b31m\x85"),
        ("\u202egpj.exe\u2028", r"\u202egpj.exe\u2028"),
        ("\ud800", r"\ud800"),
        (3.5, "3.5"),
    ],
)
def test_what_a_terminal_obeys_is_escaped(text, shown):
    assert printable(text) == shown
    assert printable(shown) == shown


def test_a_probability_is_rounded_down_and_nothing_is_more_than_1():
    assert [probability(p) for p in (0.999, 1.0)] == ["0.99", "1.00"]
    assert [at_least(p) for p in (0.999, 1.0)] == ["0.99 or more", "1.00"]


def test_whatever_it_is_it_is_one_line_that_can_be_written():
    everything = "".join(map(chr, range(0x11000)))
    shown = printable(everything)
    assert shown.isprintable()
    assert len(shown.splitlines()) == 1
    shown.encode()
