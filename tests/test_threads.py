"""One thread of the linear algebra while a small model is fitted, and as many as before then."""

import threading

import numpy as np
import optuna
import pytest
from numpy.testing import assert_array_equal
from threadpoolctl import ThreadpoolController, threadpool_limits

from stoic import Box, Finite, Learner, Prior, recipes
from stoic.integrations.optuna import StoicSampler, explain
from stoic.kernels import RBF
from stoic.posteriors import fitting
from stoic.threads import enough_threads, one_thread

CONTROLLER = ThreadpoolController().select(user_api="blas")


def counts():
    return {library["num_threads"] for library in CONTROLLER.info()}


def set_counts(numbers):
    for library, number in zip(CONTROLLER.lib_controllers, numbers, strict=True):
        library.set_num_threads(number)
        if hasattr(library, "clear_controlling_thread"):  # else no other thread could set it
            library.clear_controlling_thread()


@pytest.fixture(autouse=True)
def two_threads():
    before = [library.num_threads for library in CONTROLLER.lib_controllers]
    set_counts([2] * len(before))
    yield
    after = counts()
    set_counts(before)
    assert after == {2}


def test_it_is_one_in_the_block_alone_and_after_an_error_too():
    with one_thread():
        assert counts() == {1}
        with one_thread():
            assert counts() == {1}
        assert counts() == {1}
    assert counts() == {2}
    with pytest.raises(KeyboardInterrupt), one_thread():
        raise KeyboardInterrupt
    assert counts() == {2}


@pytest.mark.parametrize("_", range(2))  # in any thread
def test_the_last_of_overlapping_blocks_restores_what_was_before_the_first(_):
    begun, ended, seen = threading.Event(), threading.Event(), []

    def other():
        with one_thread():
            seen.append(counts())
            begun.set()
            assert ended.wait(10)
        seen.append(counts())

    thread = threading.Thread(target=other)
    with one_thread():
        thread.start()
        assert begun.wait(10)
    assert counts() == {1}  # the other block runs
    ended.set()
    thread.join(10)
    assert seen == [{1}, {2}]


def test_a_large_model_keeps_all():
    with enough_threads(1000):
        assert counts() == {1}
    with enough_threads(1001):
        assert counts() == {2}


@pytest.fixture
def during(monkeypatch):
    """Numbers of threads that fits have seen."""
    seen, descend = set(), fitting.descend

    def look(*arguments):
        seen.update(counts())
        return descend(*arguments)

    monkeypatch.setattr(fitting, "descend", look)
    return seen


def told(learner, n=12):
    x = np.random.default_rng(0).random((n, 2))
    learner.tell(x, np.cos(5.0 * x).sum(axis=1))
    return learner


@pytest.mark.parametrize(
    "use",
    [
        Learner.ask,
        Learner.recommend,
        lambda learner: learner.posterior,
        lambda learner: learner.estimate,
        lambda learner: learner.trust,
    ],
)
def test_a_learner_fits_in_one(use, during):
    use(told(Learner(Box([0, 0], [1, 1]), seed=0)))
    assert during == {1}


def test_a_study_is_searched_and_explained_in_one_and_its_objective_has_all(during):
    def objective(trial):
        assert counts() == {2}
        return trial.suggest_float("x", 0.0, 1.0) ** 2

    study = optuna.create_study(sampler=StoicSampler(seed=0))
    study.optimize(objective, n_trials=12)
    assert during == {1}
    during.clear()
    explain(study)
    assert during == {1}


def test_choices_do_not_depend_on_the_number():
    def choices(threads):
        with threadpool_limits(threads, user_api="blas"):
            learner = told(Learner(Box([0, 0], [1, 1]), seed=0), 100)
            return [learner.ask().x for _ in range(3)]

    assert_array_equal(choices(1), choices(2))


def test_a_round_on_a_finite_domain_leaves_them_alone(monkeypatch):
    def never():
        raise AssertionError

    monkeypatch.setattr("stoic.threads._libraries", never)
    points = np.linspace(0.0, 1.0, 20)[:, None]
    learner = Learner(Finite(points), recipes.gp_ucb(prior=Prior(RBF(0.3), 0.1)))
    for _ in range(3):
        learner.tell(learner.ask().x, 1.0)
