"""Parameters whose range is another one in later trials, or in a given search space."""

import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.samplers import RandomSampler
from optuna.trial import TrialState

from stoic.integrations.optuna import StoicSampler, explain
from stoic.integrations.optuna.unmodelled import modelled_space


class Counting(RandomSampler):
    """Counts what it draws."""

    def __init__(self):
        super().__init__(seed=0)
        self.drawn = 0

    def sample_independent(self, *given):
        self.drawn += 1
        return super().sample_independent(*given)


def bowl_from(low, high):
    """x beside what the first trials can have."""
    return lambda t: (t.suggest_float("x", *(low if t.number < 12 else high)) - 1.5) ** 2


def test_a_name_in_the_queue_that_no_trial_has_is_said(caplog):
    study = optuna.create_study(sampler=StoicSampler(seed=0))
    for given in ({"lrr": 0.2}, {"lrr": 0.2}, {"lr": 0.2}, {"lrr": 0.3}, {"adam_lr": 0.9}):
        study.enqueue_trial(given)

    def objective(trial):
        if trial.suggest_float("lr", 0.0, 1.0) and not trial.number:
            raise optuna.TrialPruned  # perhaps before it had all
        trial.suggest_categorical("opt", ["sgd", "adam"])
        return trial.suggest_float("sgd_lr", 0.0, 1.0)

    study.optimize(objective, n_trials=5)
    assert caplog.messages == [
        "Trial 1 was enqueued with lrr, a parameter that no trial has: did you mean lr?"
    ]


@pytest.mark.parametrize(
    ("before", "after"), [((0, 1), (0, 2)), ((0, 2), (1, 1.7)), ((2, 9), (0, 2))]
)
def test_a_range_that_changes_is_modelled_as_a_whole_and_trials_have_the_latest(before, after):
    sampler = StoicSampler(seed=0, independent_sampler=(independent := Counting()))
    study = optuna.create_study(sampler=sampler)
    study.optimize(bowl_from(before, after), n_trials=30)
    known = explain(study)
    assert known.unmodelled == ()
    assert all(row.trust > 0.5 for row in known.rows)
    assert abs(known.recommended.params["x"] - 1.5) < 0.01
    assert independent.drawn <= 2  # the first of all, and the first one of the new range
    low, high = min(before[0], after[0]), max(before[1], after[1])
    assert modelled_space(study.trials) == {"x": FloatDistribution(low, high)}


@pytest.mark.parametrize("seed", range(2))
def test_where_the_optimum_was_cut_off_the_rest_is_explored(seed):
    """The corner nearest to it is soon known, and repeating it would be no search."""
    spaces = [{"x": FloatDistribution(-2, 4), "y": FloatDistribution(-3, 3)}] * 15
    spaces += [{"x": FloatDistribution(0.5, 1.5), "y": FloatDistribution(-3, 0)}] * 8
    study = optuna.create_study(sampler=StoicSampler(seed=seed))
    for space in spaces:
        trial = study.ask(space)
        study.tell(trial, trial.params["x"] ** 2 + (trial.params["y"] - 1) ** 2)
    asked = {(round(t.params["x"], 2), round(t.params["y"], 2)) for t in study.trials[15:]}
    assert (0.5, 0.0) in asked
    assert len(asked) == 8


def test_a_batch_is_in_the_new_range_from_its_second_suggestion_on():
    study = optuna.create_study(sampler=StoicSampler(seed=0))
    for _t in range(12):
        trial = study.ask({"x": FloatDistribution(0.0, 1.0)})
        study.tell(trial, (trial.params["x"] + 0.7) ** 2)
    wider = [study.ask({"x": FloatDistribution(-1.0, 1.0)}) for _ in range(4)]
    assert wider[0].params["x"] >= 0.0  # a sampler learns of a range after its suggestion
    assert min(trial.params["x"] for trial in wider) < 0.0
    for trial in wider:  # once they failed, they said nothing
        study.tell(trial, state=TrialState.FAIL)
    assert study.sampler.infer_relative_search_space(study, study.trials[0]) == {
        "x": FloatDistribution(0.0, 1.0)
    }
    # One that was killed says nothing once a later one has ended
    study.ask({"x": FloatDistribution(-9.0, 9.0)})
    later = study.ask({"x": FloatDistribution(0.0, 1.0)})
    study.tell(later, 1.0)
    assert modelled_space(study.trials) == {"x": FloatDistribution(0.0, 1.0)}
    assert study.sampler.infer_relative_search_space(study, later) == modelled_space(study.trials)
    # A narrower one at once
    inside = [study.ask({"x": FloatDistribution(0.0, 0.4)}) for _ in range(4)]
    assert all(trial.params["x"] <= 0.4 for trial in inside)
    assert len({trial.params["x"] for trial in inside}) == 4


def test_an_integer_below_another_parameter_is_modelled():
    def objective(trial):
        m = trial.suggest_int("m", 2, 20)
        return (m - 15) ** 2 + (trial.suggest_int("n", 1, m) - 12) ** 2

    study = optuna.create_study(sampler=StoicSampler(seed=0))
    study.optimize(objective, n_trials=30)
    assert explain(study).recommended.params == {"m": 15, "n": 12}
    assert modelled_space(study.trials)["n"].low == 1


@pytest.mark.parametrize("high", [0.2, 2.0])
def test_a_given_search_space_that_trials_do_not_have_is_searched_where_they_do(high, caplog):
    given = {"x": FloatDistribution(0.0, 1.0), "z": FloatDistribution(0.0, 1.0)}
    study = optuna.create_study(sampler=StoicSampler(seed=0, search_space=given))
    study.optimize(lambda t: (t.suggest_float("x", 0.0, high) - 0.45 * high) ** 2, n_trials=20)
    assert abs(study.best_params["x"] - 0.45 * high) < 0.01
    said = caplog.messages
    assert any(each.startswith("search_space has z, which no complete trial") for each in said)
    wider = "search_space has x as float(0, 1) and trials have it as float(0, 2): only what both"
    assert any(each.startswith(wider) for each in said) == (high > 1.0)
