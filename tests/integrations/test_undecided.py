"""A study says when its results do not tell which setting is best."""

import math
from dataclasses import dataclass, replace

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution

from stoic.data import Observations
from stoic.domains import Box
from stoic.integrations.optuna import StoicSampler, explain
from stoic.integrations.optuna.undecided import (
    alone,
    changed,
    flat,
    plain,
    steep,
    summit,
    undecided,
)
from studies import add

X = {"x": FloatDistribution(0.0, 1.0)}


@dataclass(frozen=True)
class Result:
    value: float
    expected: float
    trust: float = 1.0
    number: int = 7
    sd: float = 13.5
    noise_sd: float = 0.1

    @property
    def params(self):
        return {"x": self.expected}


def results(n=24, error=0.1, rejected=0, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(n)
    return [
        Result(value, value + error * rng.standard_normal(), float(i >= rejected))
        for i, value in enumerate(values)
    ]


@pytest.mark.parametrize(("rejected", "said"), [(7, False), (8, True), (20, True)])
def test_a_third_of_the_results_contradicts_the_others(rejected, said):
    assert (undecided(results(rejected=rejected)) is not None) == said


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(("apart", "said"), [(9.0, True), (-9.0, False)])
def test_what_is_rejected_and_worse_than_what_is_recommended_decides_nothing(apart, said, sign):
    best = sign * 3.0
    rejected = [Result(best + sign * apart, best, 0.0)] * 10
    assert (undecided([*results(20), *rejected], best, sign) is not None) == said


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_what_changed_lately_is_named(sign):
    def rows(off, before=1, other=0, n=60):
        trust = np.ones(n)
        trust[:before] = trust[n - off - other :] = 0.0
        shift = np.where(np.arange(n) < n - other, -5.0, 5.0) * (trust == 0.0)
        found = [
            Result(sign * s, 0.0, t, k) for k, (t, s) in enumerate(zip(trust, shift, strict=True))
        ]
        return [found[k] for k in np.random.default_rng(0).permutation(n)]

    assert "8 of the last 20 results" in changed(rows(8), sign)
    assert "worse than expected, and 1 of the 40 before" in changed(rows(8), sign)
    assert "better" in changed(rows(8), -sign)
    assert changed(rows(7), sign) is None
    assert changed(rows(8, other=4), sign) is None  # to both sides
    assert changed(rows(8, before=10), sign) is None  # as before
    assert changed(rows(8, n=30), sign) is None  # too few before


def test_a_study_whose_program_changed_says_so():
    study, rng = optuna.create_study(), np.random.default_rng(0)
    for k, x in enumerate(np.concatenate([rng.random(30), 0.45 + 0.1 * rng.random(40)])):
        value = (x - 0.5) ** 2 + 0.01 * rng.standard_normal() + 0.3 * (k >= 60)
        add(study, {"x": x}, X, value)
        if k == 59:
            assert explain(study).undecided is None
    assert (
        "10 of the last 20 results are distrusted, most of them worse" in explain(study).undecided
    )


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize("better", [True, False])
def test_it_is_known_in_both_directions_what_is_better(direction, better):
    """Beside 24 results of a parabola, whose best is 1e5, there are 12 that are far off."""
    sign = 1.0 if direction == "maximize" else -1.0
    study = optuna.create_study(direction=direction)
    for x in np.linspace(0.0, 1.0, 24):
        add(study, {"x": x}, X, 1e5 - sign * (x - 0.5) ** 2)
    for i, x in enumerate(np.linspace(0.02, 0.98, 12)):
        add(study, {"x": x}, X, 1e5 + sign * (1000.0 + 300.0 * i) * (1.0 if better else -1.0))
    thoughts = explain(study)
    assert sum(row.trust < 0.5 for row in thoughts.rows) == 12
    assert thoughts.recommended_mean == pytest.approx(1e5, abs=0.1)
    assert (thoughts.undecided is not None) == better


@pytest.mark.parametrize(("error", "said"), [(0.3, False), (3.0, True)])
def test_results_that_do_not_predict_each_other(error, said):
    assert (undecided(results(error=error)) is not None) == said


@pytest.mark.parametrize(("reported", "said"), [(3.0, False), (0.1, True)])
def test_results_with_much_reported_noise_need_not_predict_each_other(reported, said):
    precise = [replace(row, sd=0.1) for row in results(12)]
    noisy = [replace(row, sd=0.1, noise_sd=reported) for row in results(12, error=3.0, seed=1)]
    assert (undecided([*precise, *noisy]) is not None) == said


def test_extreme_noises_divide_by_no_zero():
    for noises in ((0.0, 1e-200), (0.0, 1e300), (1.0, math.inf)):
        rows = [
            replace(row, sd=0.0, noise_sd=noises[k % 2]) for k, row in enumerate(results(error=9.0))
        ]
        assert undecided(rows) is not None


@pytest.mark.parametrize("alike", [False, True])
def test_arms_whose_visitors_differ_are_undecided_if_they_are_alike(alike):
    rates = {"A": 0.05, "B": 0.053, "C": 0.047, "D": 0.05 if alike else 0.06}
    arms = {"arm": CategoricalDistribution(list(rates))}
    study, rng = optuna.create_study(direction="maximize"), np.random.default_rng(1)
    for arm in [*rates] * 6:
        visitors, rate = int(10 ** rng.uniform(2.0, 4.7)), rates[arm]
        share, noise = rng.binomial(visitors, rate) / visitors, rate * (1.0 - rate) / visitors
        add(study, {"arm": arm}, arms, share, {"stoic:noise": noise})
    known = explain(study)
    assert (known.undecided is not None) == alike
    assert alike or known.recommended.params == {"arm": "D"}


def test_nothing_is_said_of_few_equal_or_infinite_results():
    assert undecided(results(9, error=3.0)) is None
    assert undecided([Result(1.0, 1.0)] * 20) is None
    rounding = [Result(0.7, 0.8)] * 19  # is their variance
    assert undecided([*rounding, Result(1e9, 0.7, 0.0)]) is None
    assert undecided([Result(np.inf, 0.0), Result(np.nan, 0.0)] * 20) is None
    assert undecided([Result(1e300, -1e300), Result(-1e300, 1e300)] * 20) is None


@pytest.mark.parametrize(
    ("values", "means", "said"),
    [
        ([0.0, 1.0, 2.0, 3.0], [1.4, 1.4, 1.6, 1.6], True),
        ([0.0, 1.0, 2.0, 3.0], [0.1, 1.0, 2.0, 2.9], False),
        ([0.0, 3.0], [1.4, 1.6], False),  # too few to say
        ([1.0, 1.0, 1.0], [1.0, 1.0, 1.0], False),  # nothing to explain
        (list(range(10)), [4.5] * 10, False),  # enough for leave-one-out
    ],
)
def test_few_results_that_the_model_takes_for_noise(values, means, said):
    def predict(x):
        return np.array(means), np.ones(len(x))

    assert (flat(predict, np.zeros((len(values), 1)), np.array(values)) is not None) == said


@pytest.mark.parametrize("wrong", [0, 2])
def test_of_seven_results_two_that_are_wrong_alike_leave_nothing_to_recommend(wrong):
    rng = np.random.default_rng(1)
    study = optuna.create_study()
    for i, x in enumerate(rng.random(7)):
        add(study, {"x": x}, X, -0.7 + 0.01 * i if i < wrong else (x - 0.3) ** 2)
    assert (explain(study).undecided is not None) == bool(wrong)


@pytest.mark.parametrize(
    ("outliers", "said"),
    [pytest.param(0.0, False, marks=pytest.mark.slow), (0.1, False), (0.6, True)],
)
def test_a_study_where_most_results_are_outliers_says_so(outliers, said):
    rng = np.random.default_rng(1)

    def objective(trial):
        x, y = trial.suggest_float("x", -5.0, 5.0), trial.suggest_float("y", 0.0, 3.0)
        value = (x - 2.0) ** 2 + (y - 1.0) ** 2
        return value - rng.uniform(25.0, 150.0) if rng.random() < outliers else value

    study = optuna.create_study(sampler=StoicSampler(seed=0))
    study.optimize(objective, n_trials=30)
    assert (explain(study).undecided is not None) == said


def test_a_steep_slope_is_told_from_outliers():
    """A plateau that ends at .8, where four results lie; one outlier among its own results."""
    study = optuna.create_study()
    rng = np.random.default_rng(0)
    results = {
        x: 0.01 * (x - 4.0) ** 2 + 1e-3 * rng.standard_normal() for x in np.arange(0, 8, 0.4)
    }
    results |= {8.3: 60.0, 8.8: 75.0, 9.3: 84.0, 9.9: 90.0, 2.2: 50.0}
    for x, value in results.items():
        add(study, {"x": float(x)}, {"x": FloatDistribution(0.0, 10.0)}, value)
    thoughts = explain(study)
    distrusted = [row.number for row in thoughts.rows if row.trust < 0.5]
    assert distrusted == [20, 21, 22, 23, 24]
    assert thoughts.steep == (20, 21, 22, 23)
    assert "distrusted     1\n  trial 24: " in str(thoughts)
    assert "rather than outliers at random: trials 20, 21, 22, 23" in str(thoughts)


def test_outliers_at_random_places_are_on_no_slope():
    rng = np.random.default_rng(0)
    x, trust = rng.random((200, 2)), (rng.random(200) > 0.1).astype(float)
    fallen = steep(x, np.where(trust == 1.0, 0.0, -1.0), np.zeros(200), trust)
    assert fallen.sum() <= 0.25 * np.sum(trust == 0.0)
    better = steep(x, np.where(trust == 1.0, 0.0, 1.0), np.zeros(200), trust)
    assert not better.any()
    assert not steep(x[:1], np.array([-1.0]), np.zeros(1), np.zeros(1)).any()
    assert len(steep(x[:0], np.zeros(0), np.zeros(0), np.zeros(0))) == 0


def test_categories_and_repeats_are_no_slope():
    """One-hot categories are all equally far apart; a setting may be measured wrongly twice."""
    trust, low = np.r_[np.ones(10), 0.0, 0.0], np.r_[np.zeros(10), -60.0, -75.0]
    assert not steep(np.eye(12), low, np.zeros(12), trust).any()
    line = np.r_[np.linspace(0.0, 1.0, 10), 0.35, 0.35][:, None]
    assert not steep(line, low, np.zeros(12), trust).any()


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_a_hill_in_a_plain_is_undecided(direction):
    sign = 1.0 if direction == "maximize" else -1.0

    def accuracy(trial):
        x, y = trial.suggest_float("x", 0.0, 1.0), trial.suggest_float("y", 0.0, 1.0)
        return sign * max(0.1, 0.95 - 2.5 * math.dist([x, y], [0.7, 0.3]))

    sampler = optuna.samplers.RandomSampler(seed=1)
    study = optuna.create_study(direction=direction, sampler=sampler)
    study.optimize(accuracy, n_trials=60)
    known = explain(study)
    assert "11 distrusted results are side by side" in known.undecided
    assert "Measure the observed best again" in known.undecided


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_too_good_results_where_others_are_good_are_rather_a_summit(sign):
    rows = [Result(sign * v, sign * (v + 0.1)) for v in np.linspace(0.0, 10.0, 40)]
    good = [Result(sign * 50.0, sign * e, 0.0) for e in (8.2, 9.0, 9.4, 9.8)]
    assert "4 results are distrusted" in summit([*rows, *good], sign * 10.0, sign)
    assert summit([*rows, *good[:2]], sign * 10.0, sign) is None  # two may be by chance
    anywhere = [Result(sign * 50.0, sign * e, 0.0) for e in (1.0, 4.0, 9.0, 9.4)]
    assert summit([*rows, *anywhere], sign * 10.0, sign) is None
    assert summit([*rows, *good[:1] * 5], sign * 10.0, sign) is None  # one setting
    worse = [Result(sign * -50.0, sign * e, 0.0) for e in (8.2, 9.0, 9.4, 9.8)]
    assert summit([*rows, *worse], sign * 10.0, sign) is None


def test_outliers_at_random_are_hardly_ever_taken_for_a_summit():
    rng, said = np.random.default_rng(0), 0
    for _ in range(400):
        expected = rng.standard_normal(60)
        rows = [Result(e, e) for e in expected[5:]] + [Result(50.0, e, 0.0) for e in expected[:5]]
        said += summit(rows, expected.max(), 1.0) is not None
    assert said <= 12  # 4 are expected


def test_old_results_of_which_few_are_good_are_undecided():
    """Of 30 random settings, honest, the best are distrusted; of eighty they are not."""
    rng = np.random.default_rng(2)
    space = {name: FloatDistribution(0.0, 1.0) for name in "abcd"}
    study = optuna.create_study(direction="maximize")
    known = {}
    for n in range(1, 81):
        u = rng.random(4)
        value = 90.0 * math.exp(-14.0 * ((u - 0.4) ** 2).sum()) + rng.normal(0.0, 1.5)
        add(study, dict(zip("abcd", u.tolist(), strict=True)), space, value)
        if n in (30, 80):
            known[n] = explain(study)
    few, many = known[30], known[80]
    assert few.trust_of(few.observed_best.number) < 0.5
    assert "summit" in few.undecided
    assert many.trust_of(many.observed_best.number) >= 0.5
    assert many.undecided is None


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_certified_value_that_others_do_not_expect_rests_on_one_result(sign):
    word = "less than 85" if sign > 0.0 else "more than -85"
    assert word in alone(Result(sign * 99.9, sign * 67.2), sign * 85.0, sign)
    assert alone(Result(sign * 91.0, sign * 88.0), sign * 85.0, sign) is None
    assert alone(Result(sign * 84.0, sign * 80.0), sign * 85.0, sign) is None  # out of reach


@pytest.mark.parametrize(("height", "seen"), [(1.0, True), (-1.0, False)])
def test_a_hill_in_a_plain_decides_and_a_pit_does_not(height, seen):
    x = np.linspace(0.0, 1.0, 20)[:, None]
    bump = abs(x[:, 0] - 0.52) < 0.12
    observed = np.where(bump, height, 1e-4 * np.random.default_rng(0).normal(size=20))
    results = Observations(x, observed, np.full(20, np.nan))
    found = plain(Box([0.0], [1.0]), results, np.where(bump, 0.0, 1.0), 0.0)
    assert ("what a hill in a plain looks like" in (found or "")) == seen
