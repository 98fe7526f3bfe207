"""Noise that trials report: of some, of most, and in the wrong unit."""

import math

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution

from stoic.data import DISTRUSTED
from stoic.integrations.optuna import NOISE, StoicSampler, explain
from studies import add

SPACE = {"x": FloatDistribution(0.0, 1.0), "z": FloatDistribution(0.0, 1.0)}
N = 1000  # visitors of a batch


def rate(x, z):
    return 0.03 + 0.04 * math.exp(-(((x - 0.6) / 0.3) ** 2) - z**2)


def shares(broken=(), noise=lambda v: v * (1.0 - v) / N, count=30, n=N, seed=0):
    """Shares of random settings with a plug-in variance; nothing came in at the broken ones."""
    study, rng = optuna.create_study(direction="maximize"), np.random.default_rng(seed)
    for k in range(count):
        x, z = rng.random(2)
        v = 0.0 if k in broken else rng.binomial(n, rate(x, z)) / n
        attrs = {} if noise(v) is None else {NOISE: noise(v)}
        add(study, {"x": x, "z": z}, SPACE, v, attrs=attrs)
    return study


@pytest.mark.parametrize("broken", [(3,), (3, 9), (3, 9, 15, 21)])
@pytest.mark.parametrize("zero", [0.0, None])
def test_results_without_a_noise_have_that_of_most_others(broken, zero):
    """They had one of their own, as wide as they were off, and covered for each other."""
    study = shares(broken, lambda v: v * (1.0 - v) / N if v else zero)
    known = explain(study)
    rows = {row.number: row for row in known.rows}
    reported = [t.user_attrs[NOISE] for t in study.trials if t.user_attrs.get(NOISE)]
    for number in broken:
        assert rows[number].trust < DISTRUSTED
        assert 0.7 < rows[number].noise_sd / math.sqrt(np.median(reported)) < 1.5
    assert known.recommended.number not in broken
    rest = [row.trust for row in known.rows if row.number not in broken]
    assert min(rest) >= DISTRUSTED


def test_a_batch_without_a_success_is_not_exact():
    """Of small batches many have none: they were exact, and the model followed them."""
    study = shares(noise=lambda v: v * (1.0 - v) / 30, n=30)
    known = explain(study)
    assert sum(trial.value == 0.0 for trial in study.trials) > 5
    assert known.recommended_mean > 0.02
    assert known.recommended_std > 0.003


def test_the_noise_is_the_same_whenever_it_is_learned():
    """A sampler that has seen trial by trial knows what one knows that reads them at once."""
    study, trials = optuna.create_study(direction="maximize"), shares((0, 4)).trials
    study.sampler = StoicSampler(seed=0)
    for trial in trials:
        study.add_trial(trial)
        study.tell(study.ask(SPACE), state=optuna.trial.TrialState.FAIL)
    asked = study.ask(SPACE).params
    again = optuna.create_study(direction="maximize", sampler=StoicSampler(seed=0))
    again.add_trials(study.trials[:-1])
    assert again.ask(SPACE).params == asked


def test_the_noise_of_failures_is_none_of_the_results():
    study, rng = shares(noise=lambda v: None), np.random.default_rng(1)
    alone = explain(study).rows[0].noise_sd
    for _ in range(40):
        params, failed = dict(zip("xz", rng.random(2), strict=True)), optuna.trial.TrialState.FAIL
        add(study, params, SPACE, state=failed, attrs={NOISE: 1.0, "stoic:failed": "transient"})
        add(study, params, SPACE, state=failed, attrs={NOISE: 1.0})
    assert explain(study).rows[0].noise_sd < 2.0 * alone


@pytest.mark.parametrize(("noise", "sd"), [(1.7e308, 1e150), (5e-324, 2.2e-162)])
def test_a_noise_may_have_any_size(noise, sd):
    study = shares((3,), lambda v: noise if v else None)
    assert explain(study).rows[3].noise_sd == pytest.approx(sd, rel=0.5)  # models take up to 1e300


def test_results_that_are_most_keep_a_noise_of_their_own():
    study = shares(noise=lambda v: 1e-10 if v > 0.06 else None)
    rows = [row for row in explain(study).rows if study.trials[row.number].value <= 0.06]
    assert len(rows) > 15
    assert all(row.noise_sd > 1e-3 for row in rows)


def test_a_standard_error_for_a_variance_is_pointed_out():
    study = shares(noise=lambda v: math.sqrt(v * (1.0 - v) / N))
    (said,) = [text for text in explain(study).unmodelled if "stoic:noise is a variance" in text]
    assert said.startswith("The reported noise has a standard deviation of 0.08")
    assert not [text for text in explain(shares()).unmodelled if "variance" in text]
    few = shares(noise=lambda v: 0.1 if v > 0.068 else None)
    assert not [text for text in explain(few).unmodelled if "variance" in text]
