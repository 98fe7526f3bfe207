"""Figures of papers: settings, runs, pictures, and the claims that they check."""

from stoic.experiments.figure import Cell, Claim, Figure, Table
from stoic.experiments.reproduction import catalogue, find, repeat, reproduce
from stoic.experiments.results import Results

__all__ = [
    "Cell",
    "Claim",
    "Figure",
    "Results",
    "Table",
    "catalogue",
    "find",
    "repeat",
    "reproduce",
]
