"""Optuna says nothing of its own while studies are run."""

import optuna
import pytest


@pytest.fixture(autouse=True, scope="module")
def quiet():
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)
