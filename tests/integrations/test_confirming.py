"""Confirming measurements of any study: what is measured, stated, and what failures do."""

import json
import math
import random

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.samplers import PartialFixedSampler
from optuna.trial import TrialState

from stoic.confirmation import Comparison
from stoic.integrations.optuna import CONFIRM, EXECUTED, FAILED, StoicSampler, confirm, explain
from stoic.integrations.optuna.confirming import next_confirmation, standing
from stoic.integrations.optuna.internals import constraint_attrs, constraints
from stoic.integrations.retrying import retrying
from stoic.printable import probability
from stoic.refusal import RefusalError
from studies import add

SPACE = {"x": FloatDistribution(0.0, 1.0), "kind": CategoricalDistribution(["a", "b"])}


def truth(x, kind):
    return (x - 0.3) ** 2 + 0.3 * (kind == "b")


def study_of(values, direction="minimize"):
    """Study of any sampler with these (x, kind, value)."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0), direction=direction)
    for x, kind, value in values:
        add(study, {"x": x, "kind": kind}, SPACE, value)
    return study


def noisy(n=16, seed=0, sign=1.0):
    rng = random.Random(seed)
    points = [(rng.random(), rng.choice("ab")) for _ in range(n)]
    return [(x, k, sign * (truth(x, k) + rng.gauss(0.0, 0.02))) for x, k in points]


def objective(seed=1, sign=1.0, spoil=lambda trial: None):
    rng = random.Random(seed)

    def measure(trial):
        x, kind = trial.suggest_float("x", 0, 1), trial.suggest_categorical("kind", ["a", "b"])
        spoilt = spoil(trial)
        return sign * (truth(x, kind) + rng.gauss(0.0, 0.02)) if spoilt is None else spoilt

    return measure


def test_measurements_are_ordinary_trials_at_settings_that_were_tried():
    study = study_of(noisy())
    assert explain(study).confirmation is None
    assert next_confirmation(study) == explain(study).recommended.params
    found = confirm(study, objective(), 5)
    marked = [t for t in study.trials if t.user_attrs.get(CONFIRM)]
    assert 1 <= len(marked) == found.measurements <= 5
    tried = [t.params for t in study.trials[:16]]
    assert all(t.params in tried and t.state == TrialState.COMPLETE for t in marked)
    known = explain(study)
    assert known.confirmation == found  # later, and from the storage alone
    assert known.recommended.params == dict(found.recommended.params)
    assert known.recommended.number == found.recommended.number
    assert str(found) == repr(found)
    assert f"trial {known.recommended.number}, " in str(found)
    assert len(known.rows) == 16 + len(marked)  # judged as every result


def test_trials_of_other_workers_in_between_are_theirs():
    study = study_of(noisy())

    def ask(trial):
        study.ask({"x": FloatDistribution(0.0, 1.0)})  # the latest trial is another one's

    assert confirm(study, objective(spoil=ask), 3).measurements >= 1


def test_no_value_can_be_given_to_a_confirming_measurement():
    study = optuna.create_study(sampler=StoicSampler(seed=0))
    study.optimize(lambda trial: (trial.suggest_int("n", 1, 9) - 5) ** 2, 12)
    study.sampler = PartialFixedSampler({"n": 9}, StoicSampler(seed=0, confirm=4))
    with pytest.raises(RefusalError, match="leave out PartialFixedSampler, or confirm"):
        study.optimize(lambda trial: pytest.fail("it runs"), 1)
    for wrong in (lambda: confirm(study, None, 3), lambda: retrying(None)):
        with pytest.raises(RefusalError, match="objective must be a function, got None"):
            wrong()


def test_an_objective_of_another_study_is_refused():
    study = study_of(noisy())
    with pytest.raises(RefusalError, match="it is that of another study"):
        confirm(study, lambda trial: trial.suggest_float("z", 0.0, 1.0), 3)
    assert study.trials[-1].state == TrialState.FAIL  # its value would be one of this study


@pytest.mark.filterwarnings("ignore:Choices for a categorical")  # not every storage can hold
def test_choices_that_have_no_hash_are_confirmed():
    def choosing(trial):
        return float(trial.suggest_categorical("c", [[1], [2]])[0])

    study = optuna.create_study(sampler=StoicSampler(seed=0))
    study.optimize(choosing, n_trials=12)
    assert confirm(study, choosing, 2) is not None
    assert all(trial.state == TrialState.COMPLETE for trial in study.trials)


def test_a_sampler_confirms_what_confirm_does():
    study, twin = study_of(noisy()), study_of(noisy())
    study.sampler = StoicSampler(seed=0, confirm=3)
    study.optimize(objective(), n_trials=5)
    found = confirm(twin, objective(), 3)
    marked = [t.number for t in study.trials if t.user_attrs.get(CONFIRM)]
    first = 16 + found.measurements
    assert marked[: found.measurements] == list(range(16, first))
    assert [t.params for t in study.trials[:first]] == [t.params for t in twin.trials]
    assert len(marked) <= 3 < 5 == len(study.trials) - 16  # the others search
    assert explain(study).confirmation.measurements == len(marked)


def test_a_sampler_confirms_nothing_before_there_is_something_and_leaves_the_queue_alone():
    study = optuna.create_study(sampler=StoicSampler(seed=0, confirm=2, n_startup_trials=4))
    study.optimize(objective(), n_trials=4)
    study.enqueue_trial({"x": 0.5, "kind": "b"})
    study.optimize(objective(), n_trials=3)
    marked = [t.number for t in study.trials if t.user_attrs.get(CONFIRM)]
    assert marked[0] == 5
    assert len(marked) <= 2
    assert study.trials[4].params == {"x": 0.5, "kind": "b"}


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"confirm": -1}, "confirm must be at least 0, got -1"),
        ({"confirm": 2.5}, "confirm must be a whole number, got 2.5"),
        ({"n_startup_trials": "4"}, "n_startup_trials must be a whole number, got '4'"),
        ({"confirm": 2, "tolerance": {"x": 0.1}}, "leave out one or the other"),
        ({"constraints_func": 5}, "constraints_func is a function of a trial, got 5"),
        ({"independent_sampler": 5}, "independent_sampler is a sampler of Optuna, got 5"),
        ({"search_space": 5}, "search_space has a distribution of Optuna for each name.*got 5"),
        ({"search_space": {"x": (0, 1)}}, r"search_space has .* as in .* got \{'x': \(0, 1\)\}"),
    ],
)
def test_a_sampler_refuses_options_that_make_no_sense(options, match):
    with pytest.raises(RefusalError, match=match):
        StoicSampler(**options)


def test_the_outcome_is_consistent():
    study = study_of(noisy())
    found, known = confirm(study, objective(), 6), explain(study)
    assert found.lower < known.recommended_mean < found.upper
    width = 2 * 1.959963984540054 * known.recommended_std
    assert found.upper - found.lower == pytest.approx(width)
    assert 0.0 <= found.expected_loss <= found.largest_loss
    assert found.probability == found.recommended.probability
    assert 0.9 <= sum(c.probability for c in found.candidates) <= 1.0 + 1e-9
    assert found.recommended.measurements >= 2
    assert found.sentence().startswith(f"{found.measurements} measurement")
    assert json.loads(json.dumps(found.record()))["probability"] == found.probability


def test_maximising_is_the_mirror_image():
    low, high = study_of(noisy()), study_of(noisy(sign=-1.0), "maximize")
    ours, theirs = confirm(low, objective(), 3), confirm(high, objective(sign=-1.0), 3)
    assert [t.params for t in low.trials] == [t.params for t in high.trials]
    assert ours.lower == pytest.approx(-theirs.upper)
    assert ours.expected_loss == pytest.approx(theirs.expected_loss)


def test_a_settled_study_is_left_alone():
    smooth = [(k / 10, "a", 10.0 * (k / 10 - 0.3) ** 2) for k in range(11)]
    study = study_of([*smooth, (0.3, "a", 0.001)])
    found = confirm(study, objective(), 4)
    assert len(study.trials) == len(smooth) + 1
    assert found.settled
    assert found.measurements == 0
    assert found.probability > 0.95


def test_a_lucky_result_loses_its_place():
    # One result is far too good; what is measured again there is not.
    values = [*noisy(20), (0.9, "a", -0.2)]
    study = study_of(values)
    confirm(study, objective(), 8)
    assert explain(study).recommended.params != {"x": 0.9, "kind": "a"}


def test_an_outlier_among_the_repeats_does_not_decide():
    study = study_of(noisy(20))
    leader = explain(study).recommended.params
    n = len(study.trials)
    confirm(study, objective(spoil=lambda t: 1e6 if t.number == n else None), 8)
    known = explain(study)
    assert next(row.trust for row in known.rows if row.number == n) < 0.5
    assert truth(**known.recommended.params) <= truth(**leader) + 0.02


def test_failures_count_against_a_candidate():
    study = study_of(noisy())
    leader = explain(study).recommended.params

    def fail_there(trial):
        if trial.params == leader:
            raise RuntimeError("out of memory")

    found = confirm(study, objective(spoil=fail_there), 4)
    assert (found.failed, found.uncounted) == (1, 0)  # after which it is no candidate
    assert f"left out: trial {found.left_out[0]}" in str(found)
    assert dict(found.recommended.params) != leader
    assert explain(study).recommended.params != leader


def test_a_clear_leader_that_fails_again_and_again_is_no_candidate():
    study = optuna.create_study()
    for k in range(4):
        add(study, {"x": k / 3.0}, SPACE, 9.0 * k)
    found = confirm(study, lambda trial: 1.0 / trial.suggest_float("x", 0.0, 1.0), 4)
    assert (found.failed, found.uncounted, found.left_out) == (1, 0, (0,))


@pytest.mark.parametrize("again", [(0,), (0, 1), (0, 1, 2)])
def test_before_the_program_has_worked_failures_of_two_settings_are_its_own(again):
    study = optuna.create_study()
    for k in range(4):
        add(study, {"x": k / 3.0}, SPACE, 9.0 * k)
    for k in again:
        add(study, {"x": k / 3.0}, SPACE, attrs={CONFIRM: True})
    found = explain(study)
    assert (found.recommended.number == 0) is (len(again) > 1)
    assert found.confirmation.uncounted == (len(again) if len(again) > 1 else 0)


def test_a_transient_failure_counts_against_nobody():
    study = study_of(noisy())
    leader = next_confirmation(study)
    add(study, leader, SPACE, attrs={CONFIRM: True, FAILED: "transient"})
    found = standing(study).outcome()
    assert found.failed == 0
    assert found.measurements == 1
    assert next_confirmation(study) == leader


def test_a_pending_measurement_verifies_the_leader(monkeypatch):
    seen, study = [], study_of(noisy())

    def record(self, verified, rng):
        seen.append(verified)
        return self.leader

    monkeypatch.setattr(Comparison, "next_measurement", record)
    leader = next_confirmation(study)
    study.enqueue_trial(leader, user_attrs={CONFIRM: True})
    study.ask(SPACE)  # runs, and has no result yet
    assert next_confirmation(study) == leader
    assert seen == [False, True]


@pytest.mark.parametrize("recipe", ["robust", "gp_ucb", "rgp_ucb(budget=5)", "loo_gp_ucb"])
def test_every_recipe_is_confirmed(recipe):
    sampler = StoicSampler(seed=0, recipe=recipe, n_startup_trials=6, search_space=SPACE)
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective(), n_trials=10)
    found = confirm(study, objective(2), 2)
    assert found.measurements == 2 or found.settled
    assert math.isfinite(found.expected_loss)
    assert explain(study).confirmation == found


def test_there_may_be_nothing_to_confirm():
    assert confirm(optuna.create_study(), lambda trial: 0.0, 3) is None
    only = optuna.create_study()
    add(only, {}, {}, 1.0)
    assert confirm(only, lambda trial: 0.0, 3) is None


def test_equal_values_and_infinite_ones_break_nothing():
    for values in ([1.0] * 4, [1.0, 2.0, math.inf, -math.inf], [1e300, -1e300, 0.0, 1e299]):
        study = study_of([(0.1 + 0.2 * k, "a", value) for k, value in enumerate(values)])
        confirm(study, objective(), 2)
        explain(study)


def test_a_count_that_is_none_is_refused():
    study = study_of(noisy())
    with pytest.raises(RefusalError, match="n_trials must be a whole number, got '10'"):
        confirm(study, lambda trial: 1.0, n_trials="10")
    with pytest.raises(RefusalError, match="an Optuna study and then its objective, got <function"):
        confirm(lambda trial: 1.0, study, n_trials=1)
    with pytest.raises(RefusalError, match="n_trials must be at least 1, got 0"):
        confirm(study, objective(), 0)


@pytest.mark.parametrize(("settings", "counts"), [((3, 3, 4, 2), False), ((3, 3, 3, 3), True)])
def test_failures_of_three_settings_in_a_row_are_the_programs(settings, counts):
    """The fourth of seven is the best, and was confirmed once before."""
    study = optuna.create_study()
    for k in range(7):
        add(study, {"x": k / 6.0}, SPACE, (k / 6.0 - 0.5) ** 2)
    add(study, {"x": 0.5}, SPACE, 0.0, {CONFIRM: True})
    for k in settings:
        add(study, {"x": k / 6.0}, SPACE, attrs={CONFIRM: True})
    assert (explain(study).recommended.params["x"] == 0.5) is not counts


def test_what_waits_in_the_queue_is_no_measurement():
    study = study_of(noisy())
    study.enqueue_trial({"x": 0.9, "kind": "a"})
    for _ in range(2):
        assert confirm(study, objective(), 2).measurements >= 1
    assert [t.params for t in study.get_trials(states=(TrialState.WAITING,))] == [{}]


def test_an_interrupted_measurement_does_not_run_for_ever():
    study = study_of(noisy())

    def interrupted(trial):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        confirm(study, interrupted, 2)
    assert study.trials[-1].state == TrialState.FAIL


def test_measurements_by_the_sampler_need_one_objective():
    study = optuna.create_study(directions=["minimize"] * 2, sampler=StoicSampler(confirm=3))
    with pytest.raises(RefusalError, match=r"one objective|2 objectives"):
        study.optimize(lambda trial: (trial.suggest_float("x", 0, 1), 1.0), n_trials=12)


def test_a_value_of_a_constraint_beyond_its_limit_is_no_failure():
    rng = random.Random(1)

    def excess(trial):
        return [trial.params["x"] - 0.5 + rng.gauss(0.0, 0.01)]

    def limited(trial):
        return 10.0 * trial.suggest_float("x", 0, 1) + rng.gauss(0.0, 0.05)

    sampler = StoicSampler(seed=0, constraints_func=excess)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(limited, n_trials=25)
    before = explain(study).recommended
    found = confirm(study, limited, 6)
    marked = [t for t in study.trials if t.user_attrs.get(CONFIRM)]
    assert any(constraints(t)["0"] > 0.0 for t in marked)
    assert found.failed == 0
    assert found.left_out == ()
    assert marked[0].params == before.params
    assert explain(study).recommended.params["x"] < 0.505


def test_runs_as_asked_and_elsewhere_are_one_setting():
    study, space = optuna.create_study(), {"x": FloatDistribution(0.0, 1.0)}
    for k, x in enumerate([0.1, 0.5, 0.9, 0.3, 0.3, 0.3, 0.7]):
        attrs = {EXECUTED: {"x": 0.3 + 0.01 * (k - 3)}} if k in (4, 5) else {}
        add(study, {"x": x}, space, (x - 0.3) ** 2 + 1e-3 * (k % 3), attrs=attrs)
    found = standing(study)
    near = [x for x in found.x[:, 0] if abs(x - 0.3) < 0.05]
    assert len(near) == 1
    at = list(found.x[:, 0]).index(near[0])
    assert found._count(lambda t: True)[at] == 3


def test_what_was_asked_is_asked_again_where_another_setting_was_run():
    rng, space = random.Random(0), {"x": FloatDistribution(0.0, 1.0)}
    study = optuna.create_study(sampler=StoicSampler(seed=0))

    def run():
        trial = study.ask(space)
        x = min(1.0, trial.params["x"] + 0.05 + rng.gauss(0.0, 0.005))
        trial.set_user_attr(EXECUTED, {"x": x})
        study.tell(trial, (x - 0.6) ** 2 + rng.gauss(0.0, 0.003))

    for _ in range(20):
        run()
    searched = [t.params["x"] for t in study.trials]
    study.sampler = StoicSampler(seed=0, confirm=5)
    for _ in range(5):
        run()
    marked = [t for t in study.trials if t.user_attrs.get(CONFIRM)]
    assert marked
    assert all(t.params["x"] in searched for t in marked)
    first = marked[0].params
    found = standing(study)
    again = [t for t in study.trials if t.params == first]
    at = next(k for k, x in enumerate(found.x) if found.places.count(x[None], again[:1])[0])
    assert found._count(lambda t: True)[at] >= len(again) > 1
    assert all((found.synced.run(t) == found.x).all(axis=1).sum() <= 1 for t in again)
    assert sum((found.synced.run(t) == found.x).all(axis=1).any() for t in again) == 1  # merged


@pytest.mark.parametrize("seed", [0, 3, 4])
def test_what_is_recommended_is_what_the_confirmation_compares(seed):
    rng, space = random.Random(seed), {"x": FloatDistribution(0.0, 1.0)}
    study = optuna.create_study(sampler=StoicSampler(seed=seed))
    for k in range(26):
        study.sampler = StoicSampler(seed=seed, confirm=8 if k > 17 else 0)
        trial = study.ask(space)
        x = min(max(trial.params["x"] + rng.uniform(-0.05, 0.05), 0.0), 1.0)
        trial.set_user_attr(EXECUTED, {"x": x})
        study.tell(trial, 100.0 * (x - 0.6) ** 2 + rng.gauss(0.0, 0.05))
    found = explain(study)
    assert found.recommended.number == found.confirmation.recommended.number
    mean = found.confirmation.recommended.mean
    assert found.recommended_mean == pytest.approx(mean, abs=1e-6)


def test_what_was_run_for_several_settings_stays_a_candidate():
    study, space = optuna.create_study(), {"k": CategoricalDistribution(["a", "b", "c"])}
    for n in range(12):
        add(study, {"k": "abc"[n % 3]}, space, [1.0, 0.0, 2.0][n % 3] + 0.01 * (n % 4))
    add(study, {"k": "a"}, space, 0.01, attrs={EXECUTED: {"k": "b"}})
    add(study, {"k": "b"}, space, 0.0, attrs={CONFIRM: True})
    known = explain(study)
    assert known.recommended.params == {"k": "b"}
    assert known.confirmation.recommended.params == {"k": "b"}


def test_what_is_hardly_feasible_is_not_settled():
    study, space = optuna.create_study(), {"x": FloatDistribution(0.0, 1.0)}
    for k in range(14):  # the limit was added to a study that ran, and has not been met
        system = constraint_attrs({"size": 2.0 - 0.1 * k}) if k > 11 else None
        add(study, {"x": (3 * k % 14) / 14}, space, (3 * k % 14) / 14, system=system)
    found = standing(study).outcome()
    assert found.feasible < 0.5
    assert not found.settled
    assert not found.safe
    assert f"likeliest to be feasible ({probability(found.feasible)})" in found.sentence()
    assert found.record()["feasible"] == found.feasible
    again = {"x": found.recommended.params["x"]}
    for _ in range(4):
        add(
            study,
            again,
            space,
            again["x"],
            {CONFIRM: True},
            system=constraint_attrs({"size": -1.0}),
        )
    found = standing(study).outcome()
    assert found.settled
    assert found.safe
    assert "likely to be feasible with probability" in found.sentence()
