"""One profile for all property tests, the same examples in every run; fixtures of many folders."""

import functools

import alembic.util
import pytest
import typer.main
from hypothesis import settings
from sqlalchemy import Engine, event

from stoic.problems import robot

settings.register_profile("stoic", derandomize=True, deadline=None, max_examples=25, database=None)
settings.load_profile("stoic")


# Optuna reads a dozen scripts at each opening of a database, and the command line is put together
# for each command: once in a process is enough.
alembic.util.load_python_file = functools.cache(alembic.util.load_python_file)
typer.main.get_command = functools.cache(typer.main.get_command)


@event.listens_for(Engine, "connect")
def hurry(connection, record):
    """Do not wait for the disk at each commit, which only a power cut would need."""
    if type(connection).__module__ == "sqlite3":
        connection.execute("PRAGMA synchronous = OFF")


@pytest.fixture
def box2d():
    """For tests that push: skipped where Box2D is not installed."""
    try:
        robot._box2d()
    except ImportError as error:
        pytest.skip(str(error))
