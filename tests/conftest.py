"""One profile for all property tests, the same examples in every run; fixtures of many folders."""

import pytest
from hypothesis import settings
from sqlalchemy import Engine, event

from stoic.problems import robot

settings.register_profile("stoic", derandomize=True, deadline=None, max_examples=25, database=None)
settings.load_profile("stoic")


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
