"""The sampler in studies: lies, crashes, fixed and running trials, and what is thought of them."""

import html
import math
import time

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.trial import TrialState

from stoic import recipes
from stoic.integrations.optuna import AIM, FAILED, NOISE, Row, StoicSampler, explain, turns
from stoic.integrations.optuna.synced_learner import SyncedLearner
from stoic.pending import WaitingError
from stoic.policies import Policy
from stoic.policies.verified import VerifiedImprovement
from studies import add

X = {"x": FloatDistribution(-5.0, 5.0)}
XY = {"x": FloatDistribution(-5.0, 5.0), "y": FloatDistribution(0.0, 1.0)}


def bowl(trial):
    x, y = trial.suggest_float("x", -5.0, 5.0), trial.suggest_float("y", 0.0, 1.0)
    return (x - 2.0) ** 2 + 20.0 * (y - 0.3) ** 2  # from 0 to 59


def stored(values, xs, distributions=X, direction="minimize"):
    """A study with these values at these x."""
    study = optuna.create_study(direction=direction)
    for x, value in zip(xs, values, strict=True):
        add(study, {"x": x}, distributions, value)
    return study


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize("lie", [1e3, 1e300, -1e3, -1e300, math.inf, -math.inf])
def test_a_lie_changes_its_own_trust_and_little_else(lie, direction):
    sign = 1.0 if direction == "minimize" else -1.0
    xs = np.linspace(-5.0, 5.0, 21)
    honest = stored([sign * (x - 2.0) ** 2 for x in xs], xs, direction=direction)
    lied = stored([*(sign * (x - 2.0) ** 2 for x in xs), lie], [*xs, -3.25], direction=direction)
    before, after = explain(honest), explain(lied)
    assert after.recommended.params == before.recommended.params == {"x": 2.0}
    assert abs(after.model_optimum["x"] - 2.0) < 0.05
    assert abs(after.recommended_mean) < 0.5
    assert [row.number for row in after.rows] == list(range(22))
    assert after.rows[-1].trust < 0.01
    assert after.rows[-1].expected == pytest.approx(sign * 27.6, abs=3.0)
    assert all(row.trust > 0.5 for row in after.rows[:-1])


@pytest.mark.parametrize("values", [[2.0], [2.0, 2.0], [2.0, math.inf]])
def test_without_a_scale_no_finite_value_is_judged(values):
    thoughts = explain(stored(values, [0.0, 1.0][: len(values)]))
    assert all(math.isnan(row.trust) == math.isfinite(row.value) for row in thoughts.rows)
    distrusted = [row.value for row in thoughts.rows if row.distrusted]
    assert distrusted == [value for value in values if value == math.inf]
    assert thoughts.recommended.value == 2.0
    assert "trust 1" not in str(thoughts)


@pytest.mark.parametrize("worst", [30.0, 1e6])
@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_of_few_results_a_huge_bad_one_is_not_recommended(n, worst):
    space = {"x": FloatDistribution(0.0, 1.0), "y": FloatDistribution(-3.0, 3.0)}
    for seed in range(2):
        study = optuna.create_study(sampler=StoicSampler(seed=seed))
        for number in range(n):
            x, y = study.ask(space).params.values()
            study.tell(number, worst if number == 0 else (x - 0.3) ** 2 + (y + 1.0) ** 2)
        assert explain(study).recommended.number > 0


@pytest.mark.parametrize("seed", range(6))
def test_a_distrusted_trial_is_not_recommended_even_where_there_is_no_noise(seed):
    space = {"s": FloatDistribution(0.0, 1.0, step=0.25), "c": CategoricalDistribution([*"abcde"])}
    sampler = optuna.samplers.RandomSampler(seed=seed)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for number in range(25):
        trial = study.ask(space)
        value = trial.params["s"] + 0.1 * "abcde".index(trial.params["c"])
        study.tell(trial, 50.0 if number == 4 + seed % 5 else value)
    thoughts = explain(study)
    rows = {row.number: row for row in thoughts.rows}
    assert rows[thoughts.observed_best.number].trust < 0.01
    assert rows[thoughts.recommended.number].trust > 0.5
    assert 0.5 < thoughts.recommended_mean < 2.0


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 2, 3))])
def test_with_one_trial_in_ten_lying_the_optimum_is_found(seed):
    """Within 1 % of the range of the function."""
    rng = np.random.default_rng(seed)

    def lying(trial):
        value = bowl(trial)
        return float(rng.choice([1e6, -1e6, 300.0, math.inf])) if rng.random() < 0.1 else value

    study = optuna.create_study(sampler=StoicSampler(seed=seed))
    study.optimize(lying, n_trials=40)
    params = explain(study).recommended.params
    assert (params["x"] - 2.0) ** 2 + 20.0 * (params["y"] - 0.3) ** 2 < 0.6


def test_a_batch_of_a_process_for_each_trial_is_that_of_one(monkeypatch):
    """From the fifth trial on choices depend on how many began since the last result."""
    xs = np.linspace(-5.0, 5.0, 12)
    values = [9.0 if k == 4 else -((x - 2.0) ** 2) for k, x in enumerate(xs)]
    one, several = (stored(values, xs, direction="maximize") for _ in range(2))
    one.sampler, chosen = StoicSampler(seed=0), []
    for _ in range(8):
        several.sampler = StoicSampler(seed=0)
        chosen.append(several.ask(X).params)
    assert chosen == [one.ask(X).params for _ in range(8)]
    monkeypatch.setattr("stoic.policies.verified._BATCH", 99)
    undoubted = stored(values, xs, direction="maximize")
    undoubted.sampler = StoicSampler(seed=0)
    assert [undoubted.ask(X).params for _ in range(8)] != chosen


@pytest.mark.parametrize("ending", [TrialState.COMPLETE, TrialState.FAIL])
def test_a_result_ends_a_batch_for_all_processes(ending, monkeypatch):
    """Whoever runs meanwhile began before it."""
    counted, choose = [], VerifiedImprovement.choose
    monkeypatch.setattr(
        VerifiedImprovement,
        "choose",
        lambda self, view, *of: counted.append(view.asked) or choose(self, view, *of),
    )
    study = stored((np.arange(12) - 4.0) ** 2, np.linspace(-5.0, 5.0, 12))

    def begun():
        study.sampler = StoicSampler(seed=0)
        return study.ask(X)

    trials = [begun() for _ in range(4)]
    study.tell(trials[1], 1.0 if ending == TrialState.COMPLETE else None, state=ending)
    for _ in range(3):
        begun()
    assert counted == [0, 1, 2, 3, 0, 1, 2]


def test_a_study_in_the_place_of_a_deleted_one_is_another():
    storage = optuna.storages.get_storage("sqlite://")
    aim = {"threshold": "adaptive", "margin": 0.1, "tolerance": {"x": 0.1}}
    sampler = StoicSampler(seed=0, **aim)
    for level in (0.0, 100.0):  # the second study gets the numbers of the first
        study = optuna.create_study(storage=storage, study_name="mine", sampler=sampler)
        study.optimize(lambda trial: level + trial.suggest_float("x", 0.0, 1.0), n_trials=11)  # noqa: B023
        told = [-value for value in sampler._synced.learner.observations.observed]
        assert told == [trial.value for trial in study.trials[:10]]
        assert study.user_attrs[AIM] == aim
        optuna.delete_study(storage=storage, study_name="mine")


def test_the_same_seed_gives_the_same_trials():
    runs = []
    for seed in (3, 3, 4):
        study = optuna.create_study(sampler=StoicSampler(seed=seed, n_startup_trials=4))
        study.optimize(bowl, n_trials=9)
        runs.append([trial.params for trial in study.trials])
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def failed_at(x, kind, **how):
    return optuna.create_trial(
        **({"state": TrialState.FAIL} | how),
        params={"x": x},
        distributions=X,
        user_attrs={} if kind is None else {FAILED: kind},
    )


def learner_after(*trials):
    study = stored([(x - 2.0) ** 2 for x in np.linspace(-5.0, 5.0, 11)], np.linspace(-5.0, 5.0, 11))
    study.sampler = StoicSampler(seed=0, n_startup_trials=0)
    study.add_trials(trials)
    study.ask(X)
    return study.sampler._synced


@pytest.mark.parametrize("kind", ["transient", "infeasible", "bad"])
def test_a_kind_of_failure_reaches_the_learner(kind):
    campaign = learner_after(failed_at(1.0, kind), failed_at(2.0, None))
    assert campaign.learner.failures.kinds == (kind,)
    np.testing.assert_allclose(campaign.learner.failures.x, [[0.6]])
    assert campaign.failed == [11]
    assert campaign.observed == [*range(11), 12]
    assert len(campaign.learner) == 12
    assert math.isnan(campaign.learner.observations.observed[-1])


@pytest.mark.parametrize("kind", ["Infeasible", "oom", "", 3, 0.5, True, ["bad"], {"bad": 1}])
def test_an_unknown_kind_is_a_failure_without_one(kind):
    campaign = learner_after(failed_at(1.0, kind))
    assert len(campaign.learner.failures) == 0
    assert math.isnan(campaign.learner.observations.observed[-1])


def test_only_failed_trials_have_a_kind_of_failure():
    pruned = failed_at(1.0, "bad", state=TrialState.PRUNED)
    complete = failed_at(1.0, "bad", state=TrialState.COMPLETE, value=7.0)
    campaign = learner_after(pruned, complete)
    assert len(campaign.learner.failures) == 0
    assert campaign.learner.observations.observed[-1] == -7.0
    assert campaign.unfinished.partial.keys() == {campaign.observed[-2]}


def test_a_transient_failure_is_asked_again_but_not_for_ever():
    def dying(trial):
        x = trial.suggest_float("x", -5.0, 5.0)
        if abs(x - 2.0) < 0.5:  # where the best is, and it takes the worker with it
            trial.set_user_attr(FAILED, "transient")
            return math.nan
        return (x - 2.0) ** 2

    study = optuna.create_study(sampler=StoicSampler(seed=0, n_startup_trials=6))
    study.optimize(dying, n_trials=40)
    failed = [t.params["x"] for t in study.trials if t.state == TrialState.FAIL]
    again = np.sum(np.abs(np.subtract.outer(failed, failed)) < 0.1, axis=1)  # 1 % of the range
    assert 2 <= again.max() <= 6
    assert len(study.trials) - len(failed) > 10
    one = learner_after(failed_at(2.0, "transient"))
    assert abs(one.learner.ask(pending=()).x[0] - 0.7) < 0.01  # where it would be without it
    three = learner_after(*[failed_at(2.0, "transient")] * 3)
    assert three.learner.failures.kinds == ("transient", "transient", "infeasible")


@pytest.mark.slow
def test_infinite_results_in_a_region_do_not_stop_the_search():
    def diverging(trial):
        x = trial.suggest_float("x", -5.0, 5.0)
        return math.inf if x > 1.0 else (x - 2.0) ** 2

    study = optuna.create_study(sampler=StoicSampler(seed=1, n_startup_trials=5))
    study.optimize(diverging, n_trials=35)
    told = [t.value for t in study.trials]
    assert np.sum(np.isinf(told)) <= 12
    assert -0.5 < explain(study).recommended.params["x"] <= 1.0


def test_running_trials_keep_others_away():
    study = optuna.create_study(sampler=StoicSampler(seed=0, n_startup_trials=3))
    study.optimize(bowl, n_trials=8)
    running = [study.ask(XY) for _ in range(6)]  # none of them is told
    points = np.array([[t.params["x"] / 10.0, t.params["y"]] for t in running])
    gaps = np.abs(points[:, None] - points[None]).max(axis=2)
    assert np.min(gaps[np.triu_indices(6, 1)]) > 1e-3


def test_threads_that_stop_waiting_for_one_another_tell_each_result_once(monkeypatch):
    tell = SyncedLearner._tell

    def slowly(self, trial, x):
        time.sleep(0.002)
        tell(self, trial, x)
        time.sleep(0.002)

    monkeypatch.setattr(SyncedLearner, "_tell", slowly)
    monkeypatch.setattr(turns, "_LONGEST", 0.0)
    sampler = StoicSampler(seed=0, n_startup_trials=3)
    study = optuna.create_study(sampler=sampler)
    study.optimize(bowl, n_trials=30, n_jobs=8)
    told = sampler._synced.observed
    assert len(set(told)) == len(told) > 15
    # Two of eight that do not wait may query the best corner at once.
    points = {(trial.params["x"], trial.params["y"]) for trial in study.trials}
    assert len(points) >= 20


def test_a_fixed_value_outside_of_the_space_is_ignored():
    study = optuna.create_study(sampler=StoicSampler(seed=0, n_startup_trials=2))
    study.optimize(bowl, n_trials=4)
    study.enqueue_trial({"x": 77.0})
    with pytest.warns(UserWarning, match="out of range"):
        trial = study.ask(XY)
    assert trial.params["x"] == 77.0  # Optuna's own rule for enqueued values


def test_a_told_noise_variance_is_used():
    # The same odd value, told as exact and as vague: only the vague one leaves the curve alone.
    xs = np.linspace(-5.0, 5.0, 11)

    def mean_at_the_odd_value(noise):
        study = stored([(x - 2.0) ** 2 for x in xs], xs)
        add(study, {"x": 0.5}, X, 6.0, {} if noise is None else {NOISE: noise})
        known = explain(study, recipe=recipes.gp_ucb())
        assert noise != 1e4 or known.rows[-1].noise_sd == 100.0
        return known.predict({"x": 0.5})[0][0]

    exact, vague = mean_at_the_odd_value(1e-4), mean_at_the_odd_value(1e4)
    assert abs(exact - 6.0) < 0.5
    assert abs(vague - 2.25) < 0.5
    untold = mean_at_the_odd_value(None)
    for nonsense in ("a", -1.0, math.nan, True):
        assert mean_at_the_odd_value(nonsense) == untold


def test_failures_end_the_startup_too():
    study = optuna.create_study(sampler=StoicSampler(seed=0, n_startup_trials=5))
    study.optimize(lambda t: t.suggest_float("x", 0.0, 1.0), n_trials=2)
    study.optimize(lambda t: t.suggest_float("x", 0.0, 1.0) * math.nan, n_trials=6, catch=())
    assert len(study.sampler._synced.observed) >= 5  # the model decides


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_a_row_says_why_it_is_distrusted(direction):
    sign = 1.0 if direction == "minimize" else -1.0
    xs = np.linspace(-5.0, 5.0, 21)
    values = [*(sign * (x - 2.0) ** 2 for x in xs), 1e6, math.inf]
    study = stored(values, [*xs, -3.25, 0.25], direction=direction)
    *honest, lie, infinite = explain(study, recipe=recipes.a2_rcgp_ucb()).rows
    for row in honest:
        assert abs(row.value - row.centre) <= row.half_width  # within the plateau: believed
        assert row.trust == 1.0
        assert abs(row.residual) < 6.0
        spread = math.hypot(row.sd, row.noise_sd)
        assert row.residual == pytest.approx((row.value - row.expected) / spread)
    assert lie.centre == pytest.approx(sign * 27.6, abs=3.0)
    assert lie.half_width > 0.0
    assert abs(lie.value - lie.centre) > lie.half_width
    assert lie.residual > 1e4
    assert infinite.residual == math.inf


def test_there_is_a_plateau_only_where_the_method_has_one():
    xs = np.linspace(-5.0, 5.0, 11)
    study = stored([(x - 2.0) ** 2 for x in xs], xs)
    for row in explain(study, recipe=recipes.gp_ucb()).rows:
        assert row.centre is row.half_width is None
        assert row.noise_sd > 0.0
    fixed = recipes.fc_rcgp_ucb()  # one centre for all rows
    assert len({row.centre for row in explain(study, recipe=fixed).rows}) == 1


def test_a_residual_without_any_spread():
    assert Row(0, 1.0, 1.0, 0.0, 1.0).residual == 0.0
    assert Row(0, math.inf, math.inf, 0.0, 1.0).residual == 0.0
    assert Row(0, 1.0, 2.0, 0.0, 1.0).residual == -math.inf


def test_nothing_shared_or_nothing_complete_is_no_error():
    empty = explain(optuna.create_study())
    assert empty.recommended is None
    assert empty.rows == ()
    assert math.isnan(empty.recommended_mean)
    study = optuna.create_study()
    add(study, {"x": 1.0}, X, 3.0)
    add(study, {"z": 1.0}, {"z": FloatDistribution(0.0, 2.0)}, 2.0)
    thoughts = explain(study)
    assert thoughts.recommended.number == 1
    assert [row.trust for row in thoughts.rows] == [1.0, 1.0]


@pytest.mark.parametrize("values", [[1.0], [1.0, 1.0], [2.0] * 12, [math.inf] * 4, [1.0, math.inf]])
def test_poor_studies_are_explained_and_continued(values):
    study = stored(values, np.linspace(-4.0, 4.0, len(values)))
    assert (explain(study).recommended is not None) == any(map(math.isfinite, values))
    study.sampler = StoicSampler(seed=0, n_startup_trials=0)
    assert -5.0 <= study.ask(X).params["x"] <= 5.0


def test_a_negative_startup_is_refused():
    with pytest.raises(ValueError, match="n_startup_trials"):
        StoicSampler(n_startup_trials=-1)


def test_a_policy_that_chooses_nothing_is_named():
    class Idle(Policy):
        def start(self, domain):
            return None

        def choose(self, view, state, n):
            return [], None

    idle = recipes.gp_ucb(policy=Idle())
    study = optuna.create_study(sampler=StoicSampler(recipe=idle, n_startup_trials=1))
    study.tell(study.ask(X), 1.0)
    with pytest.raises(WaitingError, match="Idle chose nothing, though no result is pending"):
        study.ask(X)


def test_an_explanation_is_a_text_and_a_table():
    study = optuna.create_study(sampler=StoicSampler(seed=0))
    study.optimize(lambda trial: (trial.suggest_float("x", 0, 1) - 0.3) ** 2, n_trials=12)
    known = explain(study, recipe="gp_ucb")  # a text, as in the sampler
    text = str(known)
    assert f"\nrecommended    trial {known.recommended.number}: " in text
    assert repr(known) == text
    assert known._repr_html_() == f"<pre>{html.escape(text)}</pre>"
    one, several = known.predict({"x": 0.5}), known.predict([{"x": 0.5}, {"x": 0.1}])
    assert one[0] == pytest.approx(several[0][:1])
    pytest.importorskip("pandas")
    frame = known.to_frame()
    assert frame.loc[3, "params_x"] == study.trials[3].params["x"]
    assert frame["trust"].tolist() == [row.trust for row in known.rows]
