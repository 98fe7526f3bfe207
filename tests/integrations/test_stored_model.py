"""The model that is stored with a study of more results than the exact model takes."""

import copy
import json
import logging

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState, create_trial

from stoic.integrations.optuna import StoicSampler, explain, keeper, pieces
from stoic.integrations.optuna.internals import storage_of, study_id
from stoic.integrations.optuna.stored_model import MODEL, StoredModel, stored_model, stored_trials
from stoic.models.leave_one_out import LeaveOneOutGP

SPACE = {"x": FloatDistribution(0.0, 1.0), "y": FloatDistribution(-3.0, 3.0)}
NAME = "long"


def value(params, rng):
    honest = (params["x"] - 0.3) ** 2 + 0.1 * (params["y"] + 1.0) ** 2
    return honest + 0.02 * rng.standard_normal() - 3.0 * (rng.random() < 0.1)


def sampler(**more):
    return StoicSampler(seed=0, **more)


def begun(n, storage=None, seed=0, **more):
    """A study of ``n`` trials at random."""
    study = optuna.create_study(
        storage=storage or optuna.storages.InMemoryStorage(), study_name=NAME,
        sampler=sampler(**more),
    )  # fmt: skip
    rng = np.random.default_rng(seed)
    for _ in range(n):
        params = {"x": rng.random(), "y": 6.0 * rng.random() - 3.0}
        study.add_trial(create_trial(params=params, distributions=SPACE, value=value(params, rng)))
    return study


def resumed(study, **more):
    return optuna.load_study(study_name=NAME, storage=study._storage, sampler=sampler(**more))


def attributes(study):
    return storage_of(study).get_study_system_attrs(study_id(study))


def overwrite(study, text):
    """Store another text in the place of the model."""
    pieces.write_text(study, MODEL, text, {"trials": 320}, slot="a")


@pytest.fixture
def fits(monkeypatch):
    """Number of fits of a window from a cold start so far; a trust region has fewer rows."""
    counted = []
    real = LeaveOneOutGP.fit

    def fit(self, domain, observations, previous=None):
        if previous is None and len(observations) > 256:
            counted.append(len(observations))
        return real(self, domain, observations, previous)

    monkeypatch.setattr(LeaveOneOutGP, "fit", fit)
    return counted


@pytest.fixture(scope="module")
def asked():
    study = begun(330)
    study.ask(SPACE)
    return study


@pytest.fixture
def study(asked):
    return optuna.load_study(
        study_name=NAME, storage=copy.deepcopy(asked._storage), sampler=sampler()
    )


def test_the_next_process_goes_on_without_a_fit(study, fits):
    here = study.ask(SPACE)
    study.tell(here, state=TrialState.FAIL)
    assert not fits
    assert resumed(study).ask(SPACE).number == here.number + 1
    assert not fits
    assert stored_trials(study) == 330


def test_it_chooses_what_the_first_one_would_have_chosen():
    one, other = (begun(330) for _ in range(2))
    for study in (one, other):
        study.tell(study.ask(SPACE), state=TrialState.FAIL)
    assert one.ask(SPACE).params == resumed(other).ask(SPACE).params


def test_where_inputs_move_the_model_is_the_same(study, fits):
    resumed(study, threshold=0.1, tolerance={"x": 0.05}).ask(SPACE)
    explain(study)
    assert not fits


def test_an_explanation_begins_with_it(study, fits):
    warm = explain(study)
    assert not fits
    overwrite(study, "")
    cold = explain(study)
    assert fits
    assert warm.recommended.number == cold.recommended.number
    assert warm.recommended_mean == pytest.approx(cold.recommended_mean, abs=0.02)
    close = [abs(warm.trust[n]["value"] - cold.trust[n]["value"]) < 0.3 for n in warm.trust]
    assert np.mean(close) > 0.97


def test_up_to_what_the_exact_model_takes_nothing_is_stored():
    study = begun(200)
    study.ask(SPACE)
    assert not [key for key in attributes(study) if key.startswith(MODEL)]


def test_trials_of_another_study_are_fitted_anew(study, fits):
    other = begun(330, seed=1)
    for key, text in attributes(study).items():
        if key.startswith(MODEL):
            storage_of(other).set_study_system_attr(study_id(other), key, text)
    assert stored_model(other) is not None
    explain(other)
    assert fits


@pytest.mark.parametrize("recipe", ["loo_gp_ucb", "gp_ucb"])
def test_another_method_is_fitted_anew(study, fits, recipe):
    known = resumed(study, recipe=recipe)
    known.ask(SPACE)
    assert recipe == "gp_ucb" or fits
    assert stored_model(study) is not None


def test_a_study_that_grew_elsewhere_begins_with_it_too(study, fits):
    rng = np.random.default_rng(5)
    for _ in range(20):
        params = {"x": rng.random(), "y": 6.0 * rng.random() - 3.0}
        study.add_trial(create_trial(params=params, distributions=SPACE, value=value(params, rng)))
    resumed(study).ask(SPACE)
    assert not fits


@pytest.mark.parametrize(
    "text",
    [
        "", "null", "[]", "{", "7", '{"format": 1}', '{"format": 2}', "[" * 100_000,
        '{"format": 1, "method": "", "order": [[0, 10000000]], "digest": "", "outputs": []}',
        '{"format": 1, "method": "", "order": [[0, 2], [1, 2]], "digest": "", "outputs": []}',
    ],
)  # fmt: skip
def test_what_is_no_model_is_as_none(study, text):
    overwrite(study, text)
    assert stored_model(study) is None


def test_without_a_model_all_is_fitted_anew(study, fits):
    overwrite(study, "{")
    resumed(study).ask(SPACE)
    assert fits


def test_a_model_whose_pieces_are_mixed_is_as_none(study):
    [piece] = [key for key in attributes(study) if key.startswith(MODEL + ":")]
    known = stored_model(study).text()
    assert known == attributes(study)[piece]
    storage_of(study).set_study_system_attr(study_id(study), piece, known[:-1])
    assert stored_model(study) is None


@pytest.mark.parametrize("change", [{"method": "x"}, {"digest": "x"}, {"order": [[1, 330]]}])
def test_a_model_of_something_else_is_not_used(study, fits, change):
    overwrite(study, json.dumps(json.loads(stored_model(study).text()) | change))
    resumed(study).ask(SPACE)
    assert fits


def test_a_long_search_needs_two_slots(study, monkeypatch):
    monkeypatch.setattr(keeper, "_RECENT", 0)
    known = stored_model(study)
    for n in range(3):
        keeper.store_model(study, StoredModel(known.method, known.order[n:], "", known.outputs))
    slots = {key.split(":")[2] for key in attributes(study) if key.startswith(MODEL + ":")}
    assert slots == {"a", "b"}
    assert stored_trials(study) == 328


def test_a_storage_that_refuses_it_ends_nothing(monkeypatch, caplog):
    study = begun(330)

    def refuse(*arguments):
        raise OSError("disk full")

    monkeypatch.setattr(keeper, "store_model", refuse)
    with caplog.at_level(logging.WARNING):
        assert study.ask(SPACE).params
    assert "disk full" in caplog.text
    assert "results are not affected" in caplog.text
