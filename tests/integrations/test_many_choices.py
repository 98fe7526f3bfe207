"""A category of thousands of choices: coordinates for those that trials have, and a few others."""

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution

from stoic.integrations.optuna import StoicSampler, explain
from stoic.integrations.optuna.encoding import Encoding, met
from stoic.refusal import RefusalError

CHOICES = tuple(f"word {i}" for i in range(5000))
SPACE = {"word": CategoricalDistribution(CHOICES), "x": FloatDistribution(0.0, 1.0)}
GOOD = ("word 17", "word 4203")


def value(params):
    return -((params["x"] - 0.3) ** 2) + (params["word"] in GOOD)


def studied(trials, **options):
    sampler = StoicSampler(seed=0, n_startup_trials=5, **options)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for word in GOOD:
        study.enqueue_trial({"word": word, "x": 0.9})
    for _ in range(trials):
        trial = study.ask(SPACE)
        study.tell(trial, value(trial.params))
    return study


@pytest.fixture(scope="module")
def study():
    return studied(25)


def test_coordinates_are_those_of_the_choices_that_were_met_and_some_others():
    settings = [{"word": "word 17"}, {"word": "word 17", "x": 0.1}, {"x": 0.2}]
    found = met(SPACE, settings)
    assert found == {"word": {17}}
    encoding = Encoding(SPACE, None, found)
    assert encoding.box.dim == 64 + 1
    for word in ("word 17", "word 3"):
        params = {"word": word, "x": 0.5}
        point = encoding.encode(params)
        assert point[:64].sum() == 1.0
        known = encoding.parts["word"].has(word)
        assert (encoding.decode(point) == params) == known == (word == "word 17")


def test_the_others_stay_while_they_are_enough():
    encoding = Encoding(SPACE, None, met(SPACE, []))
    tried = []
    for count in range(1, 49):
        [word] = [CHOICES[n] for n in encoding.choices["word"] if CHOICES[n] not in tried][:1]
        tried.append(word)
        following = encoding.having_met(met(SPACE, [{"word": word} for word in tried]))
        assert following.choices == encoding.choices, count
        other = following.parts["word"].other
        assert CHOICES[other] not in tried  # what stands for all others was tried by none
        encoding = following
    more = encoding.having_met(met(SPACE, [{"word": word} for word in (*tried, "word 17")]))
    assert len(more.choices["word"]) == 128
    assert more.having_met(more.met) is more


def test_few_choices_have_a_coordinate_each():
    space = {"word": CategoricalDistribution(CHOICES[:128])}
    assert met(space, [{"word": "word 1"}]) == {}
    assert Encoding(space).box.dim == 128


def test_two_choices_without_a_coordinate_are_not_the_same():
    encoding = Encoding(SPACE, None, met(SPACE, []))
    a, b = [word for word in CHOICES if not encoding.parts["word"].has(word)][:2]
    assert encoding.agrees({"word": a}, {"word": a})
    assert not encoding.agrees({"word": a}, {"word": b})


def test_a_study_finds_and_explains_the_best(study):
    known = explain(study)
    assert known.recommended.params["word"] in GOOD
    assert abs(known.recommended.params["x"] - 0.3) < 0.1
    words = [trial.params["word"] for trial in study.trials]
    assert set(words[7:]) <= set(CHOICES)
    mean, _ = known.predict([{"word": "word 17", "x": 0.3}, {"word": "word 4999", "x": 0.3}])
    assert mean[0] > 0.8
    assert mean[1] < 0.7


def test_the_explanation_of_an_untried_choice(study):
    known = explain(study, fixed={"word": "word 4999"})
    assert known.untried
    assert known.model_optimum["word"] == "word 4999"


def test_what_is_given_is_run_whether_it_has_a_coordinate_or_not():
    study = studied(8)
    study.enqueue_trial({"word": "word 4998"})
    trial = study.ask(SPACE)
    assert trial.params["word"] == "word 4998"
    study.tell(trial, 0.0)
    assert study.ask(SPACE).params["word"] in CHOICES


def test_a_resumed_study_goes_on_as_if_it_had_not_ended(study):
    other = optuna.create_study(direction="maximize", sampler=StoicSampler(seed=0))
    other.add_trials(study.trials)
    here, there = explain(study), explain(other)
    assert here.recommended.params == there.recommended.params
    np.testing.assert_allclose(here.recommended_mean, there.recommended_mean, rtol=1e-6)


def test_a_choice_that_did_well_in_an_earlier_study_is_known(study):
    sampler = StoicSampler(seed=1, warm_start=[study])
    warm = optuna.create_study(direction="maximize", sampler=sampler)
    for _ in range(4):
        trial = warm.ask(SPACE)
        warm.tell(trial, value(trial.params))
    assert {trial.params["word"] for trial in warm.trials} & set(GOOD)


def test_a_grid_has_all_choices_or_none():
    study = studied(2, recipe="rgp_ucb(budget=1.0)")
    with pytest.raises(RefusalError, match="5001 coordinates"):
        study.ask(SPACE)


def test_a_front_with_a_given_choice_of_many():
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=StoicSampler(seed=0))
    for word in GOOD:
        study.enqueue_trial({"word": word})
    for _ in range(8):
        trial = study.ask(SPACE)
        study.tell(trial, [value(trial.params), trial.params["x"]])
    known = explain(study, fixed={"word": GOOD[1]})
    assert {trial.params["word"] for trial in known.observed_front} == {GOOD[1]}
