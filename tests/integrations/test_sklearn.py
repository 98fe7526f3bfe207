"""The regressor: what scikit-learn asks of one, and what lies among the targets do to it."""

import importlib
import sys

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from stoic import Box, GaussianProcess, Learner, Prior, recipes
from stoic.defences import Plateau
from stoic.integrations.sklearn import RobustGaussianProcessRegressor
from stoic.integrations.tables import box_around, doubt, hill
from stoic.kernels import RBF, Scaled
from stoic.models import StudentTProcess
from stoic.posteriors.absorbed import WindowPosterior
from stoic.posteriors.mixture import MixturePosterior

LIES = [1e6, -1e6, np.nan, np.inf, -np.inf, 1e300]


@parametrize_with_checks([RobustGaussianProcessRegressor()])
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([RobustGaussianProcessRegressor(recipes.loo_gp_ucb())])
def test_scikit_learn_accepts_it_with_another_recipe(estimator, check):
    check(estimator)


def table(n=60, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3.0, 3.0, size=(n, 2))
    return X, np.sin(2.0 * X[:, 0]) + X[:, 1] + noise * rng.standard_normal(n)


@pytest.mark.parametrize(
    "recipe", [recipes.loo_gp_ucb(), recipes.a2_rcgp_ucb(), recipes.fc_rcgp_ucb(), recipes.tp_ucb()]
)
def test_it_is_the_model_of_a_recipe(recipe):
    X, y = table()
    y[5] = 1e3
    learner = Learner(Box(X.min(axis=0), X.max(axis=0)), recipe)
    learner.tell(X, y)
    regressor = RobustGaussianProcessRegressor(recipe).fit(X, y)
    somewhere = np.random.default_rng(1).uniform(-4.0, 4.0, size=(20, 2))
    found = regressor.predict(somewhere, return_std=True)
    np.testing.assert_array_equal(found, learner.posterior.predict(somewhere))
    np.testing.assert_array_equal(regressor.weights_, learner.trust)
    assert regressor.kernel_ is regressor.posterior_.prior.kernel


def test_leave_one_out_stands_many_lies_of_moderate_size():
    X, y = table(100)
    elsewhere, truth = table(200, seed=1, noise=0.0)
    rng = np.random.default_rng(0)
    lying = rng.choice(100, 15, replace=False)
    y[lying] += rng.uniform(3.0, 20.0, 15) * rng.choice([-1.0, 1.0], 15)
    regressor = RobustGaussianProcessRegressor(recipes.loo_gp_ucb()).fit(X, y)
    assert regressor.score(elsewhere, truth) > 0.98
    assert regressor.weights_[lying].max() < 0.1
    assert RobustGaussianProcessRegressor(recipes.gp_ucb()).fit(X, y).score(elsewhere, truth) < 0.5


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_gets_no_weight_and_moves_little(lie):
    X, y = table()
    elsewhere, truth = table(200, seed=1, noise=0.0)
    clean = RobustGaussianProcessRegressor().fit(X, y)
    lied = RobustGaussianProcessRegressor().fit(
        np.vstack([X, X[:3] + 0.3]), np.append(y, [lie, lie, lie])
    )
    assert lied.weights_[-3:].max() < 1e-3
    assert lied.weights_[:-3].min() > 0.5
    assert clean.score(elsewhere, truth) > 0.98
    assert lied.score(elsewhere, truth) > 0.98


def test_without_lies_it_predicts_as_scikit_learn_s_own_does():
    X, y = table()
    elsewhere = table(200, seed=1)[0]
    prior = Prior(Scaled(RBF(1.2), 2.0), 0.01)
    ours = RobustGaussianProcessRegressor(model=GaussianProcess(prior, Plateau(10.0, 1.0)))
    kernels = importlib.import_module("sklearn.gaussian_process.kernels")
    theirs = GaussianProcessRegressor(
        kernels.ConstantKernel(2.0) * kernels.RBF(1.2), alpha=0.01, optimizer=None
    )
    expected = theirs.fit(X, y).predict(elsewhere, return_std=True)
    got = ours.fit(X, y).predict(elsewhere, return_std=True)
    np.testing.assert_allclose(got, expected, atol=1e-9)
    np.testing.assert_allclose(
        ours.predict(elsewhere, return_cov=True)[1],
        theirs.predict(elsewhere, return_cov=True)[1],
        atol=1e-9,
    )
    assert np.all(ours.weights_ == 1.0)


def test_nothing_depends_on_units():
    X, y = table()
    y[[3, 17]] = 40.0, -np.inf
    here = RobustGaussianProcessRegressor().fit(X, y)
    units, origin = np.array([1e-3, 50.0]), np.array([7.0, -2e3])
    there = RobustGaussianProcessRegressor().fit(X * units + origin, 1e4 * y - 3e5)
    np.testing.assert_allclose(there.weights_, here.weights_, atol=1e-3)
    got = there.predict(X * units + origin, return_std=True)
    mean, std = here.predict(X, return_std=True)
    np.testing.assert_allclose((got[0] + 3e5) / 1e4, mean, atol=1e-4)
    np.testing.assert_allclose(got[1] / 1e4, std, atol=1e-4)


def test_draws_have_the_mean_and_the_covariance():
    X, y = table(20)
    regressor = RobustGaussianProcessRegressor().fit(X, y)
    somewhere = table(4, seed=3)[0]
    mean, covariance = regressor.predict(somewhere, return_cov=True)
    assert np.linalg.eigvalsh(covariance).min() > 0.0
    n = 4000  # seeded; 5 standard errors, so a right formula fails with a probability below 1e-5
    draws = regressor.sample_y(somewhere, n, random_state=1)
    assert draws.shape == (4, n)
    error = np.sqrt(np.diagonal(covariance) / n)
    assert np.all(np.abs(draws.mean(axis=1) - mean) < 5.0 * error)
    np.testing.assert_allclose(np.cov(draws), covariance, atol=5.0 * error.max() ** 2 * n**0.5 * 2)
    np.testing.assert_array_equal(regressor.sample_y(somewhere), regressor.sample_y(somewhere))


def test_noise_that_is_told_is_used():
    X, y = table(15)
    y[4] += 1.0
    noise = np.full(15, np.nan)
    noise[4] = 1e6

    others = np.delete(np.arange(15), 4)
    prior = Prior(Scaled(RBF(1.2), 2.0), 0.01)
    regressor = RobustGaussianProcessRegressor(model=GaussianProcess(prior))
    with_noise = regressor.fit(X, y, noise=noise).predict(X)
    np.testing.assert_allclose(
        regressor.fit(X[others], y[others]).predict(X), with_noise, atol=1e-5
    )


def test_it_works_where_estimators_work():
    X, y = table(80)
    elsewhere, truth = table(100, seed=1, noise=0.0)
    y[::10] = 1e4
    pipeline = make_pipeline(StandardScaler(), RobustGaussianProcessRegressor())
    scores = cross_val_score(pipeline, X, y, cv=3, scoring="neg_median_absolute_error")
    assert scores.min() > -0.3
    search = GridSearchCV(
        pipeline,
        {"robustgaussianprocessregressor__recipe": [recipes.gp_ucb(), recipes.loo_gp_ucb()]},
        cv=3,
        scoring="neg_median_absolute_error",
    )
    search.fit(X, y)
    [recipe] = search.best_params_.values()
    assert recipe == recipes.loo_gp_ucb()
    assert search.best_estimator_.score(elsewhere, truth) > 0.98


def test_a_recipe_may_be_named():
    X, y = table(10)
    by_name, by_value = (
        RobustGaussianProcessRegressor(recipe).fit(X, y).predict(X)
        for recipe in ("gp_ucb", recipes.gp_ucb())
    )
    np.testing.assert_array_equal(by_name, by_value)


def test_targets_that_no_model_is_right_for_are_named():
    X, y = table(10)
    with (
        pytest.warns(UserWarning, match="take the logarithm of the values"),
        pytest.warns(UserWarning, match="9 of 10 finite results are distrusted"),
    ):
        RobustGaussianProcessRegressor().fit(X, 1e100 * y)


def test_one_target_that_counts_is_enough():
    regressor = RobustGaussianProcessRegressor(recipes.loo_gp_ucb())
    regressor.fit([[0.0], [1.0]], [np.nan, 2.0])
    np.testing.assert_array_equal(regressor.weights_, [0.0, 1.0])
    assert np.isfinite(regressor.predict([[0.5]])).all()
    refusing = GaussianProcess(Prior(RBF(1.0), 0.01), Plateau(0.0, 1e-9))  # believes nothing
    regressor = RobustGaussianProcessRegressor(model=refusing).fit([[0.0], [1.0]], [3.0, 2.0])
    assert regressor.predict([[0.5]], return_cov=True) == (0.0, 1.0)


def test_refusals():
    X, y = table(10)
    regressor = RobustGaussianProcessRegressor()
    for targets, noise, match in (
        (np.full(10, np.inf), None, "No target is finite"),
        (y[:9], None, "10 rows of inputs and 9 targets"),
        (y, np.zeros(10), "positive variance for each of 10 .* got 0"),
        (y, np.ones(9), r"got shape \(9,\)"),
        (y, "abc", "positive variance for each of 10 .* got 'abc'"),
    ):
        with pytest.raises(ValueError, match=match):
            regressor.fit(X, targets, noise=noise)
    with pytest.raises(ValueError, match="There is no recipe 'gpucb'"):
        RobustGaussianProcessRegressor("gpucb").fit(X, y)
    with pytest.raises(ValueError, match="balances several models"):
        RobustGaussianProcessRegressor("any_threat").fit(X, y)
    for options, match in (
        (
            {"recipe": "gp_ucb", "model": StudentTProcess(Prior(RBF(1.0), 0.1))},
            "not both: got 'gp_",
        ),
        ({"recipe": ""}, "Cannot read the recipe ''"),
        ({"recipe": 0}, "A recipe is one of .* got 0"),
        ({"model": "gp"}, "A model is one such as .* got model='gp'"),
        ({"model": recipes.gp_ucb()}, r"given as recipe=, got model=gp_ucb\(\)"),
    ):
        with pytest.raises(ValueError, match=match):
            RobustGaussianProcessRegressor(**options).fit(X, y)
    with pytest.raises(ValueError, match="stable_opt: missing a required argument: 'radius'"):
        RobustGaussianProcessRegressor(recipes.stable_opt).fit(X, y)
    RobustGaussianProcessRegressor(recipes.gp_ucb).fit(X, y)
    for count in (-1, 2.5):
        with pytest.raises(ValueError, match="n_samples is a number of functions, from 0 on"):
            regressor.fit(X, y).sample_y(X, count)
    with pytest.raises(ValueError, match="not for both"):
        regressor.fit(X, y).predict(X, return_std=True, return_cov=True)
    student = RobustGaussianProcessRegressor(model=StudentTProcess(Prior(RBF(1.0), 0.1)))
    with pytest.raises(ValueError, match="this is a StudentT: use return_std"):
        student.fit(X, y).predict(X, return_cov=True)


def test_without_scikit_learn_the_extra_is_named(monkeypatch):
    monkeypatch.delitem(sys.modules, "stoic.integrations.sklearn")
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    with pytest.raises(ImportError, match=r"pip install 'stoic\[sklearn\]'"):
        importlib.import_module("stoic.integrations.sklearn")


def test_the_covariance_of_a_dispute_has_its_variance():
    """Two targets that contradict each other, and nobody to ask: each may be the lie."""
    X, y = np.array([[0.0], [0.3], [0.5], [0.51], [0.8], [1.0]]), np.array([0, 0.1, 0, 6.0, 0.1, 0])
    regressor = RobustGaussianProcessRegressor().fit(X, y)
    assert isinstance(regressor.posterior_, MixturePosterior)
    elsewhere = np.linspace(0.0, 1.0, 7)[:, None]
    _, std = regressor.predict(elsewhere, return_std=True)
    _, covariance = regressor.predict(elsewhere, return_cov=True)
    np.testing.assert_allclose(np.sqrt(np.diagonal(covariance)), std, rtol=1e-6)
    assert np.linalg.eigvalsh(covariance).min() > -1e-8 * covariance.max()


def test_thousands_of_rows_are_fitted_in_a_window():
    rng = np.random.default_rng(0)
    X, Z = rng.random((3000, 2)), rng.random((500, 2))
    f = lambda x: np.sin(6.0 * x[:, 0]) * np.cos(5.0 * x[:, 1])  # noqa: E731
    outlier = rng.random(3000) < 0.05
    y = f(X) + 0.05 * rng.normal(size=3000) + 5.0 * outlier
    y[7] = np.nan
    found = RobustGaussianProcessRegressor().fit(X, y)
    assert isinstance(found.posterior_, WindowPosterior)
    assert len(found.posterior_.rows) <= 512
    mean, std = found.predict(Z, return_std=True)
    assert np.sqrt(np.mean((mean - f(Z)) ** 2)) < 0.02  # the noise is 0.05
    assert np.mean(np.abs(mean - f(Z)) < 3.0 * std) > 0.95
    assert found.weights_.shape == (3000,)
    assert found.weights_[7] == 0.0
    assert np.mean(found.weights_[outlier] < 0.5) > 0.99
    assert np.mean(found.weights_[~outlier] < 0.5) < 0.01
    assert np.diagonal(found.predict(Z, return_cov=True)[1]) == pytest.approx(std**2, rel=1e-6)


def cone(seed):
    """A cone in a quarter of a plain, without noise."""
    x = np.random.default_rng(seed).uniform(size=(80, 2))
    away = np.hypot(x[:, 0] - 0.7, x[:, 1] - 0.3)
    return x, np.maximum(0.0, np.quantile(away, 0.25) - away)


@pytest.mark.parametrize("seed", range(3))
def test_a_hill_in_a_plain_is_said_to_look_like_outliers(seed):
    x, y = cone(seed)
    with pytest.warns(UserWarning, match="20 distrusted results are side by side, and the 60"):
        regressor = RobustGaussianProcessRegressor().fit(x, y)
    assert (regressor.weights_[y > 0.0] < 0.5).all()  # or nothing would be said
    assert RobustGaussianProcessRegressor("gp_ucb").fit(x, y).score(x, y) > 0.99


def test_outliers_in_a_plain_are_no_hill():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        trust = np.where(np.arange(40) < 4, 0.0, 1.0)
        assert hill(rng.uniform(size=(40, 3)), 1.0 - trust, trust) is None
    x, y = cone(0)
    assert hill(x, y, np.where(y > 0.0, 0.0, 1.0)) is not None
    assert hill(x, y, np.ones(80)) is None
    twice = np.repeat(np.random.default_rng(1).uniform(size=(40, 2)), 2, axis=0)
    trust = np.where(np.arange(80) < 8, 0.0, 1.0)  # each repeated, and none side by side
    twice[:8] = np.repeat([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], 2, axis=0)
    assert hill(twice, 1.0 - trust, trust) is None
    assert hill(x, 10.0 * x[:, 0] + y, np.where(y > 0.0, 0.0, 1.0)) is None  # a slope is no plain


def wave(n, seed):
    """Inputs, a function of them, and a generator for more."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-4.0, 4.0, (n, 1))
    return x, np.sinc(x[:, 0]), rng


@pytest.mark.parametrize("seed", range(4))
def test_labels_that_are_0_and_1_are_noise_and_no_outliers(seed):
    x, f, rng = wave(200, seed)
    probability = 0.3 + 0.6 * f
    y = (rng.random(200) < probability).astype(float)
    regressor = RobustGaussianProcessRegressor().fit(x, y)
    assert (regressor.weights_ >= 0.5).all()
    others = RobustGaussianProcessRegressor("gp_ucb").fit(x, y)
    error, least = (np.std(each.predict(x) - probability) for each in (regressor, others))
    assert error < 1.1 * least
    y[:20] = 9.0
    assert (RobustGaussianProcessRegressor().fit(x, y).weights_[:20] < 0.5).all()


@pytest.mark.parametrize("value", [-99.0, -999.0])
@pytest.mark.parametrize("seed", range(2, 5))
def test_a_constant_far_away_is_as_if_it_were_missing(seed, value):
    x, f, rng = wave(60, seed)
    y = f + 0.05 * rng.standard_normal(60)
    y[:18] = np.nan
    missing = RobustGaussianProcessRegressor().fit(x, y)
    y[:18] = value
    there = RobustGaussianProcessRegressor().fit(x, y)
    assert (there.weights_[:18] < 0.5).all()
    lengthscale = there.kernel_.kernel.lengthscale  # 0.05 to 0.2, if fitted to the constant, too
    np.testing.assert_allclose(lengthscale, missing.kernel_.kernel.lengthscale, rtol=0.3)
    assert np.sqrt(np.mean((there.predict(x) - f) ** 2)) < 0.05


def test_what_rejects_most_targets_says_so():
    x, y = cone(0)
    trust = np.where(np.arange(80) < 41, 0.0, 1.0)
    assert "41 of 80 finite results are distrusted" in doubt(x, y, trust)
    trust[0] = 1.0
    assert doubt(x, y, trust) is None
    trust[0] = 0.0
    y[70:] = np.nan  # which no count has
    assert "41 of 70 finite results are distrusted" in doubt(x, y, trust)
    assert doubt(x[:3], y[:3], trust[:3]) is None  # three say little


@pytest.mark.parametrize("y", [[4e6], [4e6, np.nan], [3.0, 3.0]])
def test_targets_that_do_not_differ_have_no_deviation(y):
    X = np.arange(len(y), dtype=float)[:, None]
    regressor = RobustGaussianProcessRegressor().fit(X, y)
    mean, std = regressor.predict([[9.0]], return_std=True)
    assert (mean, std) == (y[0], np.inf)
    with pytest.raises(ValueError, match="no covariance, and return_std is infinite"):
        regressor.sample_y(X)


def test_masked_targets_and_those_of_pandas_are_missing():
    pd = pytest.importorskip("pandas")
    x = np.linspace(0.0, 1.0, 20)[:, None]
    y = np.sin(6.0 * x[:, 0])
    expected = RobustGaussianProcessRegressor().fit(x, np.append(np.nan, y[1:]))
    missing = [True] + 19 * [False]
    for targets in (np.ma.array(y, mask=missing), pd.Series([pd.NA, *y[1:]], dtype=object)):
        found = RobustGaussianProcessRegressor().fit(x, targets)
        assert found.weights_[0] == 0.0
        assert found.predict(x) == pytest.approx(expected.predict(x))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("far", [150.0, 1e4, -9999.0])
def test_an_input_far_from_all_others_is_no_unit_of_lengthscales(seed, far):
    def f(x):
        return np.sin(2.0 * x[:, 0]) + 0.5 * x[:, 1] ** 2

    rng = np.random.default_rng(seed)
    x, test = rng.uniform(-3.0, 3.0, (120, 2)), rng.uniform(-3.0, 3.0, (300, 2))
    y = f(x) + 0.05 * rng.standard_normal(120)
    x[7] = far
    assert RobustGaussianProcessRegressor().fit(x, y).score(test, f(test)) > 0.995


@pytest.mark.parametrize(("n", "few"), [(50, 5), (30, 3), (20, 2), (100, 10), (100, 9)])
def test_a_column_that_seldom_varies_has_its_width(n, few):
    rng = np.random.default_rng(n + few)
    x = np.column_stack([rng.random(n), np.zeros(n)])
    for constant in (0.0, 1e-17 * rng.standard_normal(n), 0.01 * rng.standard_normal(n)):
        x[:, 1] = constant
        x[rng.choice(n, few, replace=False), 1] = np.arange(1.0, 1.0 + few)
        assert box_around(x).widths[1] >= few


def test_a_few_places_far_away_have_no_width():
    x = np.random.default_rng(0).random((120, 2))
    x[:11, 0] = -9999.0
    x[[20, 30, 40], 1] = 1e3, -1e4, 1e6
    assert (box_around(x).widths <= 1.0).all()
    x[50, 1] = 1e5  # one place too many
    assert box_around(x).widths[1] > 1e6


def test_masked_inputs_are_refused_and_masked_noise_is_not_known():
    x = np.linspace(0.0, 1.0, 20)[:, None]
    y, first = np.sin(6.0 * x[:, 0]), np.arange(20) == 0
    masked = np.ma.array(x, mask=first[:, None])
    with pytest.raises(ValueError, match="1 inputs are masked"):
        RobustGaussianProcessRegressor().fit(masked, y)
    fitted = RobustGaussianProcessRegressor().fit(np.ma.array(x, mask=False), y)
    with pytest.raises(ValueError, match="1 inputs are masked"):
        fitted.predict(masked)
    noise = np.where(first, 1e-9, 0.01)
    masked, known = (
        RobustGaussianProcessRegressor().fit(x, y, noise=variances).predict(x)
        for variances in (np.ma.array(noise, mask=first), np.where(first, np.nan, noise))
    )
    np.testing.assert_array_equal(masked, known)
