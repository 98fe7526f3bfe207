"""Command line: parse, call, print. Heavy modules are imported inside the commands."""

from stoic.cli import tuning, confirming, looking, trials, figures  # noqa: I001 - in the order of the help
from stoic.cli.app import app, main

__all__ = ["app", "confirming", "figures", "looking", "main", "trials", "tuning"]
