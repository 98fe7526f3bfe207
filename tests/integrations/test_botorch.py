"""The BoTorch model: our posterior to the last digits, and what BoTorch does with a model."""

import importlib
import pickle
import sys
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

pytest.importorskip("botorch")

import torch
from botorch import fit_gpytorch_mll
from botorch.acquisition import (
    LogExpectedImprovement,
    UpperConfidenceBound,
    qKnowledgeGradient,
    qLogNoisyExpectedImprovement,
)
from botorch.acquisition.joint_entropy_search import qJointEntropySearch
from botorch.exceptions.warnings import InputDataWarning
from botorch.models import ModelListGP, SingleTaskGP
from botorch.models.transforms import (
    Bilog,
    ChainedInputTransform,
    ChainedOutcomeTransform,
    Log,
    Normalize,
    Power,
    Standardize,
)
from botorch.models.transforms.input import InputPerturbation, Warp
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler
from gpytorch.mlls import ExactMarginalLogLikelihood

from stoic import Box, GaussianProcess, Observations, Prior, Targets, kernels, recipes
from stoic.data import as_results
from stoic.defences import AdaptivePlateau, Anchored, Plateau
from stoic.integrations.botorch import RobustConjugateGP
from stoic.integrations.torch_kernels import covariance
from stoic.learner import Learner
from stoic.models import LeaveOneOutGP, StudentTProcess
from stoic.posteriors.fitting import FixedHyperparameters
from stoic.posteriors.mixture import MixturePosterior

# What the models that BoTorch's own code makes on the way warn of.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

LIES = (1e3, -1e6, 1e300, np.nan, np.inf, -np.inf)
D64 = torch.float64


def tensor(array):
    return torch.tensor(np.asarray(array, dtype=float))


def column(array):
    return tensor(array).unsqueeze(-1)


def sine(x):
    return np.sin(5.0 * x).sum(axis=-1)


def table(n=15, d=2, seed=0, noise=0.05):
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(n, d))
    return x, sine(x) + noise * rng.standard_normal(n)


def agree(model, posterior, x, atol=1e-8, gradient=True):
    """Mean, deviation and their gradients in x are those of a posterior of ours."""
    at = tensor(x).requires_grad_()
    predicted = model.posterior(at.unsqueeze(-2))  # a batch of single points
    mean, std = predicted.mean.squeeze(), predicted.variance.sqrt().squeeze()
    expected = posterior.predict_with_gradient(x) if gradient else posterior.predict(x)
    np.testing.assert_allclose(mean.detach(), expected[0], rtol=1e-8, atol=atol)
    np.testing.assert_allclose(std.detach(), expected[1], rtol=1e-8, atol=atol)
    if not gradient:
        return
    for values, slope in ((mean, expected[2]), (std, expected[3])):
        [got] = torch.autograd.grad(values.sum(), at, retain_graph=True)
        np.testing.assert_allclose(got, slope, rtol=1e-6, atol=1e3 * atol)


@st.composite
def kernel(draw, d, depth=2):
    scale = draw(
        st.one_of(
            st.floats(0.2, 2.0),
            st.lists(st.floats(0.2, 2.0), min_size=d, max_size=d).map(np.array),
        )
    )
    stationary = (kernels.RBF, kernels.Matern12, kernels.Matern32, kernels.Matern52)
    leaf = st.sampled_from(
        [*(kind(scale) for kind in stationary), kernels.Linear(scale),
         kernels.Polynomial(2, 0.7, kernels.Linear(scale))]
    )  # fmt: skip
    if not depth:
        return draw(leaf)
    inner = kernel(d, depth - 1)
    return draw(
        st.one_of(
            leaf,
            st.builds(kernels.Scaled, inner, st.floats(0.3, 3.0)),
            st.builds(kernels.Sum, inner, inner),
            st.builds(kernels.Product, inner, inner),
        )
    )


@st.composite
def campaign(draw):
    """A model, the rows it was told, lies among them, and places to predict at."""
    d, n = draw(st.integers(1, 4)), draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    origin = draw(st.sampled_from([0.0, -3.0]))
    x = origin + rng.uniform(size=(n, d))
    x[rng.integers(n)] = x[0]  # a repeat
    y = rng.standard_normal(n)
    for row in draw(st.sets(st.integers(0, n - 1), max_size=4)):
        y[row] = draw(st.sampled_from(LIES))
    told = np.where(rng.random(n) < 0.3, 10.0 ** rng.uniform(-3, 0, n), np.nan)
    noise, mean = draw(st.sampled_from([1e-3, 0.05])), draw(st.sampled_from([0.0, 1.3]))
    prior = Prior(draw(kernel(d)), noise, mean)
    defence = draw(
        st.sampled_from(
            [
                Plateau(2.0, 0.5, mean),
                AdaptivePlateau(),
                Anchored(GaussianProcess(prior, AdaptivePlateau())),
            ]
        )
    )
    places = np.concatenate([origin + rng.uniform(-0.5, 1.5, size=(4, d)), x[:2]])
    # Of 2,000 such campaigns, variances were off by 3e-14; with any, deviations by 7e-9.
    assume(prior.kernel.diagonal(np.concatenate([places, x])).max() < 100.0)
    return GaussianProcess(prior, defence), Observations(x, as_results(y), told), places


@pytest.mark.filterwarnings("ignore:None of the")
@given(campaign())
def test_it_agrees_with_our_posterior(drawn):
    model, rows, places = drawn
    bounds = np.stack([rows.x.min(axis=0) - 1.0, rows.x.max(axis=0) + 1.0])
    ours = model(Box(*bounds), rows)
    made = RobustConjugateGP(
        tensor(rows.x), column(rows.observed), column(rows.noise), model=model, bounds=bounds
    )
    # Of the gradients, at places where no kernel has a kink.
    agree(made, ours, places, gradient=False)
    agree(made, ours, places[:4])
    np.testing.assert_array_equal(made.trust, ours.trust(rows))
    agree(RobustConjugateGP.from_posterior(ours, rows), ours, places, gradient=False)


def test_where_nothing_is_believed_there_is_the_prior():
    rows = Observations(np.array([[0.3], [0.6]]), np.array([1e6, np.nan]), np.full(2, np.nan))
    model = GaussianProcess(Prior(kernels.Linear(), 0.01, 0.7), Plateau(1.0, 1.0))
    with pytest.warns(InputDataWarning, match="None of the 2 results counts"):
        made = RobustConjugateGP(tensor(rows.x), column(rows.observed), model=model)
    agree(made, model(Box([0.0], [1.0]), rows), np.array([[-0.4], [0.3], [2.0]]))
    assert not made.trust.any()


@pytest.mark.parametrize("kind", kernels.KERNELS)
def test_every_kernel_has_a_formula_in_torch(kind):
    rng = np.random.default_rng(0)
    x, z = rng.uniform(-2.0, 1.0, size=(5, 3)), rng.uniform(-2.0, 1.0, size=(4, 3))
    some = kernels.RBF(np.array([0.5, 1.0, 2.0]))
    if kind is kernels.Precomputed:
        root = rng.standard_normal((6, 6))
        k, x, z = kind(root @ root.T), np.arange(5.0)[:, None], np.arange(6.0)[:, None]
    elif kind is kernels.Polynomial:
        k = kind(3)
    elif kind is kernels.Scaled:
        k = kind(some, 2.5)
    elif kind in (kernels.Sum, kernels.Product):
        k = kind(some, kernels.Linear())
    else:
        k = kind(np.array([0.5, 1.0, 2.0]))
    np.testing.assert_allclose(covariance(k, tensor(x), tensor(z)), k(x, z), rtol=1e-12)


def test_a_kernel_of_one_s_own_can_be_registered():
    class Cosine(kernels.Stationary):
        def profile(self, squares):
            return np.cos(np.sqrt(squares)), np.zeros_like(squares)

    x = tensor([[0.0], [1.0]])
    with pytest.raises(ValueError, match="no formula in torch for the kernel Cosine"):
        covariance(Cosine(), x, x)

    @covariance.register(Cosine)
    def _(kernel, x, z):
        return torch.cos(
            (x.unsqueeze(-2) - z.unsqueeze(-3)).squeeze(-1) / float(kernel.lengthscale)
        )

    np.testing.assert_allclose(covariance(Cosine(2.0), x, x), Cosine(2.0)(x.numpy(), x.numpy()))


@pytest.mark.parametrize(
    "write", [recipes.a2_rcgp_ucb, recipes.fc_rcgp_ucb, recipes.loo_gp_ucb, recipes.gp_ucb]
)
def test_it_is_the_model_of_a_learner(write):
    x, y = table()
    y[3] = 50.0 if write is recipes.gp_ucb else 1e6
    box = Box([0.0, 0.0], [1.0, 1.0])
    recipe = write()
    learner = Learner(box, recipe)
    learner.tell(x, y)
    made = RobustConjugateGP(tensor(x), column(y), recipe=recipe, bounds=[[0.0, 0.0], [1.0, 1.0]])
    places = np.random.default_rng(1).uniform(size=(8, 2))
    agree(made, learner.posterior, places)
    np.testing.assert_array_equal(made.trust, learner.trust)
    same = RobustConjugateGP.from_posterior(learner.posterior, learner.modelled)
    agree(same, learner.posterior, places)


def test_leave_one_out_with_hyperparameters_fitted():
    x, y = table(30)
    y[[3, 8]] = 40.0, np.nan
    prior = Prior(kernels.Matern52(np.ones(2)), 0.02)
    model = LeaveOneOutGP(prior)
    made = RobustConjugateGP(tensor(x), column(y), model=model)
    assert made.trust[[3, 8]].max() < 1e-3
    assert made.trust.sum() > 27.0
    clean = RobustConjugateGP(tensor(x), column(sine(x)), model=model)
    places = tensor(np.random.default_rng(1).uniform(size=(20, 2)))
    difference = made.posterior(places).mean - clean.posterior(places).mean
    assert difference.abs().max() < 0.3


def test_the_posterior_of_a_finite_domain_is_known_everywhere():
    grid = Box([0.0], [1.0]).grid(21)
    learner = Learner(grid, recipes.fc_rcgp_ucb(prior=Prior(kernels.RBF(0.2), 0.01)))
    rng = np.random.default_rng(0)
    for arm in rng.integers(21, size=12):
        learner.tell(grid.points[arm], 1e5 if arm == 3 else sine(grid.points[arm]))
    made = RobustConjugateGP.from_posterior(learner.posterior, learner.modelled)
    predicted = made.posterior(tensor(grid.points))
    np.testing.assert_allclose(predicted.mean[:, 0], learner.posterior.mean, atol=1e-8)
    np.testing.assert_allclose(predicted.variance[:, 0], learner.posterior.variance, atol=1e-8)


def test_of_a_dispute_the_likeliest_explanation_is_taken():
    x = np.array([0.05, 0.2, 0.3, 0.45, 0.5, 0.62, 0.7, 0.78, 1.0])[:, None]
    rows = Observations(x, np.append(sine(x[:8]), -4.0), np.full(9, np.nan))
    prior = Prior(kernels.Matern52(0.3), 0.01)
    model = LeaveOneOutGP(prior, FixedHyperparameters(), outlier_penalty=0.5)
    disputed = model(Box([0.0], [1.0]), rows)
    assert isinstance(disputed, MixturePosterior)
    places = np.random.default_rng(0).uniform(size=(5, 1))
    Y, bounds = column(rows.observed), np.array([[0.0], [1.0]])
    for made in (
        RobustConjugateGP.from_posterior(disputed, rows),
        RobustConjugateGP(tensor(x), Y, model=model, bounds=bounds),
    ):
        agree(made, disputed.parts[0], places)
        np.testing.assert_array_equal(made.trust, disputed.trust(rows))
    later = made.condition_on_observations(tensor([[0.9]]), tensor([[-2.0]]))
    assert torch.isfinite(later.posterior(tensor(places)).mean).all()


def test_more_than_800_rows_are_solved_exactly():
    x, y = table(850)
    model = GaussianProcess(Prior(kernels.Matern52(0.3), 0.01), Plateau(3.0, 1.0))
    made = RobustConjugateGP(tensor(x), column(y), model=model)
    ours = model(Box([0.0, 0.0], [1.0, 1.0]), Observations(x, y, np.full(850, np.nan)))
    agree(made, ours, table(10, seed=3)[0], gradient=False)


def test_a_small_noise_is_not_rounded_up():
    x, y = table()
    prior = Prior(kernels.Scaled(kernels.RBF(0.4), 1e-4), 1e-9, 0.02)  # GPyTorch's floor is 1e-6
    model = GaussianProcess(prior, Plateau(1.0, 1.0))
    made = RobustConjugateGP(tensor(x), column(1e-2 * y), model=model)
    ours = model(Box([0.0, 0.0], [1.0, 1.0]), Observations(x, 1e-2 * y, np.full(15, np.nan)))
    places = table(10, seed=3)[0]
    agree(made, ours, places, gradient=False)
    later = made.condition_on_observations(tensor(places[:1, None]), tensor([[[0.03]]]))
    assert later.likelihood.noise.max() == prior.noise


def test_units_that_botorch_cannot_resolve_are_said():
    x, y = table()
    y[3] = 1e7
    standardised = (y - y.mean()) / y.std()
    with pytest.warns(InputDataWarning, match="an outlier has decided their scale"):
        RobustConjugateGP(tensor(x), column(standardised))


def test_batches_are_joint_within_and_independent_across():
    x, y = table()
    y[2] = -1e6
    made = RobustConjugateGP(tensor(x), column(y))
    X = torch.rand(4, 3, 5, 2, dtype=D64, generator=torch.Generator().manual_seed(0))
    batched = made.posterior(X)
    assert batched.mean.shape == batched.variance.shape == (4, 3, 5, 1)
    alone = made.posterior(X[2, 1])
    np.testing.assert_allclose(batched.mean[2, 1], alone.mean, atol=1e-10)
    joint = batched.distribution.covariance_matrix[2, 1]
    posterior, at = made._told.posterior, X[2, 1].numpy()
    K = posterior.prior.kernel(at, posterior.x)
    A = posterior.prior.kernel(posterior.x, posterior.x) + np.diag(posterior.noise)
    expected = posterior.prior.kernel(at, at) - K @ np.linalg.solve(A, K.T)
    np.testing.assert_allclose(joint, expected, atol=1e-9)
    assert batched.rsample(torch.Size([7])).shape == (7, 4, 3, 5, 1)


@pytest.mark.parametrize("kind", [kernels.Matern12, kernels.Matern32, kernels.Matern52])
def test_gradients_are_finite_where_something_was_measured(kind):
    x, y = table(6)
    model = GaussianProcess(Prior(kind(0.5), 0.01))
    made = RobustConjugateGP(tensor(x), column(y), model=model)
    at = tensor(x).requires_grad_()
    predicted = made.posterior(at.unsqueeze(-2))
    (predicted.mean + predicted.variance).sum().backward()
    assert torch.isfinite(at.grad).all()


def test_results_that_come_later_are_judged():
    x, y = table(20)
    defence = AdaptivePlateau()
    model = GaussianProcess(Prior(kernels.Scaled(kernels.RBF(0.4), 1.5), 0.01), defence)
    made = RobustConjugateGP(tensor(x[:17]), column(y[:17]), model=model, bounds=[[0, 0], [1, 1]])
    y[18] = 1e4
    later = made.condition_on_observations(tensor(x[17:]), column(y[17:]))
    ours = model(Box([0.0, 0.0], [1.0, 1.0]), Observations(x, y, np.full(20, np.nan)))
    agree(later, ours, table(5, seed=2)[0])
    assert later.trust[18] == 0.0
    assert made.trust.shape == (17,)  # which is what it was
    twice = made
    for row in (17, 18, 19):
        twice = twice.condition_on_observations(tensor(x[[row]]), column(y[[row]]))
    agree(twice, ours, table(5, seed=2)[0])


def test_later_results_keep_the_hyperparameters_and_the_transforms():
    x, y = table(20)
    transforms = Standardize(m=1), Normalize(d=2)
    made = RobustConjugateGP(tensor(x), column(100.0 * y + 7.0), None, *transforms)
    later = made.condition_on_observations(tensor([[0.5, 0.6]]), tensor([[1e8]]))
    before, after = (model._told.posterior.prior for model in (made, later))
    np.testing.assert_array_equal(after.kernel.theta, before.kernel.theta)
    assert (after.noise, after.mean) == (before.noise, before.mean)
    assert later.trust[-1] == 0.0
    places = tensor(table(5, seed=2)[0])
    difference = later.posterior(places).mean - made.posterior(places).mean
    assert difference.abs().max() < 10.0
    assert torch.equal(later.outcome_transform.stdvs, made.outcome_transform.stdvs)
    assert torch.equal(later.input_transform.offset, made.input_transform.offset)
    told = made.condition_on_observations(
        tensor([[0.5, 0.6]]), tensor([[100.0]]), noise=tensor([[1e-4]])
    )
    assert abs(float(told.posterior(tensor([[0.5, 0.6]])).mean) - 100.0) < 2.0


def test_results_after_some_without_a_scale_are_believed():
    x, y = table(40)
    with pytest.warns(InputDataWarning, match="No two finite results differ"):
        made = RobustConjugateGP(tensor(x[:3]), column(np.full(3, 0.7)))
    later = made.condition_on_observations(tensor(x[3:]), column(y[3:]))
    assert (later.trust[3:] >= 0.5).all()


def test_results_that_do_not_differ_have_no_scale():
    x, _ = table(5)
    with pytest.warns(InputDataWarning, match="No two finite results differ"):
        RobustConjugateGP(tensor(x), column(np.full(5, 7.0)))


@pytest.mark.parametrize("size", [2.0, 5.0, 30.0])
def test_by_default_outliers_of_a_few_ranges_are_found_and_are_no_incumbent(size):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        x = rng.uniform(size=(30, 2))
        y = np.sin(5.0 * x[:, 0]) + x[:, 1] + 0.02 * rng.standard_normal(30)
        y[[4, 11, 20]] += size
        made = RobustConjugateGP(tensor(x), column(y), bounds=[[0.0, 0.0], [1.0, 1.0]])
        assert made.trust[[4, 11, 20]].max() < 0.5
        assert float(made.best_f) < 2.1


def test_hypotheses_are_believed():
    x, y = table()
    y[4] = np.inf
    made = RobustConjugateGP(tensor(x), column(y), model=GaussianProcess(
        Prior(kernels.RBF(0.4), 0.01), Plateau(3.0, 1.0)
    ))  # fmt: skip
    posterior = made._told.posterior
    X, Y = table(3, seed=5)
    Y[1] = 100.0  # if it were so
    several = torch.stack([column(Y), column(Y + 1.0)])
    believing = made.condition_on_observations(tensor(X).expand(2, 3, 2), several)
    rows = Observations(X, Y, np.full(3, np.nan))
    for k in range(2):
        targets = Targets(Y + k, np.full(3, 0.01), np.ones(3))
        ours = posterior.extend(posterior.fitted_defence, rows, targets)
        place = tensor(table(4, seed=6)[0])
        predicted = believing.posterior(place)
        mean, std = ours.predict(place.numpy())
        np.testing.assert_allclose(predicted.mean[k, :, 0], mean, atol=1e-7)
        np.testing.assert_allclose(predicted.variance[k, :, 0].sqrt(), std, atol=1e-7)
    assert believing.batch_shape == (2,)


def test_fantasies_have_the_noise_of_what_is_believed():
    x, y = table()
    y[4] = 100.0
    model = GaussianProcess(Prior(kernels.RBF(0.4), 0.01), AdaptivePlateau())
    made = RobustConjugateGP(tensor(x), column(y), model=model)
    assert made.likelihood.noise.mean() > 1.0  # what BoTorch would take
    X = tensor(table(2, seed=5)[0])
    fantasies = made.fantasize(X, SobolQMCNormalSampler(torch.Size([6]), seed=0))
    assert fantasies.posterior(X).mean.shape == (6, 2, 1)
    np.testing.assert_array_equal(fantasies.likelihood.noise[..., -2:], 0.01)
    noisy, plain = made.posterior(X, observation_noise=True), made.posterior(X)
    np.testing.assert_allclose(noisy.variance - plain.variance, 0.01, atol=1e-12)
    two = made.posterior(X, observation_noise=torch.full((2, 1), 0.5, dtype=D64))
    np.testing.assert_allclose(two.variance - plain.variance, 0.5, atol=1e-12)


def test_an_outcome_transform_learns_from_what_is_believed():
    x, y = table(25)
    y = 1e3 * y + 5e4
    y[[1, 2, 3]] = 1e12, np.nan, -np.inf
    made = RobustConjugateGP(tensor(x), column(y), outcome_transform=Standardize(m=1))
    believed = np.delete(y, [1, 2, 3])
    assert float(made.outcome_transform.stdvs) == pytest.approx(believed.std(ddof=1), rel=0.3)
    places = tensor(table(10, seed=2)[0])
    plain = RobustConjugateGP(tensor(x), column(y)).posterior(places)
    standardised = made.posterior(places)
    np.testing.assert_allclose(standardised.mean, plain.mean, atol=1.0)  # of a range of 3000
    np.testing.assert_allclose(standardised.variance.sqrt(), plain.variance.sqrt(), atol=1.0)
    np.testing.assert_array_equal(made.trust, RobustConjugateGP(tensor(x), column(y)).trust)
    assert 5e4 < float(made.best_f) < 5.3e4


def test_a_logarithm_makes_what_is_negative_a_lie():
    x, y = table(25)
    y = np.exp(y)
    y[[1, 2]] = -3.0, 0.0
    made = RobustConjugateGP(tensor(x), column(y), outcome_transform=Log())
    assert made.trust[[1, 2]].max() == 0.0
    places = table(10, seed=2)[0]
    median = made.posterior(tensor(places)).rsample(torch.Size([400])).median(dim=0).values
    np.testing.assert_allclose(median.log().squeeze(), sine(places), atol=0.3)
    nothing = torch.full((3, 1), torch.nan, dtype=D64)
    for transform in (Standardize(m=1), Log()):
        with pytest.warns(InputDataWarning, match="None of the 3 results counts"):
            made = RobustConjugateGP(tensor(x[:3]), nothing, outcome_transform=transform)
        assert torch.isfinite(made.posterior(tensor(places)).variance).all()


@pytest.mark.parametrize("odd", [-0.01, 0.0])
def test_one_believed_result_without_a_logarithm_does_not_spoil_the_others(odd):
    x, y = table(30)
    y = 0.05 + 0.02 * (y + 2.0)
    y[4] = odd
    logarithm = ChainedOutcomeTransform(log=Log(), standard=Standardize(1))
    made = RobustConjugateGP(tensor(x), column(y), outcome_transform=logarithm)
    assert made.trust[4] == 0.0
    assert made.trust.sum() > 25.0
    without = np.delete(np.arange(30), 4)
    logarithm = ChainedOutcomeTransform(log=Log(), standard=Standardize(1))
    rest = RobustConjugateGP(tensor(x[without]), column(y[without]), outcome_transform=logarithm)
    at = tensor(table(5, seed=1)[0])
    torch.testing.assert_close(made.posterior(at).mean, rest.posterior(at).mean, rtol=0.02, atol=0)
    with pytest.warns(InputDataWarning, match="None of the 30 results counts"):
        nothing = RobustConjugateGP(tensor(x), -column(y.clip(0.01)), outcome_transform=Log())
    assert torch.isfinite(nothing.posterior(at).mean).all()


def test_an_input_transform_is_applied_before_the_defence():
    x, y = table(25)
    y[5] = np.nan
    x[5] = 2.0, 2.0  # the corner, and left out of the solve
    wide = 1e3 * x - 500.0
    made = RobustConjugateGP(tensor(wide), column(y), input_transform=Normalize(d=2))
    units = (x - x.min(axis=0)) / (x.max(axis=0) - x.min(axis=0))
    ours = Learner(Box([0.0, 0.0], [1.0, 1.0]), recipes.loo_gp_ucb())
    ours.tell(units, y)
    places = units[:6] * 0.9
    there = 1e3 * (x.min(axis=0) + places * (x.max(axis=0) - x.min(axis=0))) - 500.0
    predicted = made.posterior(tensor(there))
    np.testing.assert_allclose(predicted.mean[:, 0], ours.posterior.predict(places)[0], atol=1e-6)
    learned = made.input_transform.offset.clone()
    made.train()
    np.testing.assert_allclose(made.train_inputs[0], np.delete(wide, 5, axis=0))
    made.eval()
    assert torch.equal(made.input_transform.offset, learned)
    np.testing.assert_allclose(made.posterior(tensor(there)).mean, predicted.mean)


def corrupted(n=12):
    """-(x - 0.3)^2 - (z - 0.7)^2, and a lie that is far better."""
    x = np.random.default_rng(4).uniform(size=(n, 2))
    y = -((x - [0.3, 0.7]) ** 2).sum(axis=1)
    y[0] = 1e6
    x[0] = 0.9, 0.1
    return x, y


def test_the_incumbent_is_no_lie():
    x, y = corrupted()
    made = RobustConjugateGP(tensor(x), column(y))
    honest = np.argmax(y[1:]) + 1
    np.testing.assert_array_equal(made.incumbent, x[honest])
    assert float(made.best_f) == pytest.approx(y[honest], abs=0.02)
    fantasies = made.fantasize(tensor([[0.3, 0.7]]), SobolQMCNormalSampler(torch.Size([4]), seed=0))
    assert fantasies.best_f.shape == (4,)
    assert fantasies.incumbent.shape == (4, 2)
    unbelieving = GaussianProcess(Prior(kernels.RBF(0.4), 0.01), Plateau(0.0, 1e-9))
    with (
        pytest.warns(UserWarning, match="12 of 12 finite results are distrusted"),
        pytest.warns(InputDataWarning, match="results counts"),
    ):
        nobody = RobustConjugateGP(tensor(x), column(y), model=unbelieving)
    assert float(nobody.best_f) == 0.0  # the prior mean


UNIT = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=D64)


@pytest.mark.parametrize("transformed", [False, True])
@pytest.mark.parametrize("acquisition", ["UCB", "qLogNEI", "LogEI"])
def test_the_next_point_is_near_the_optimum(acquisition, transformed):
    torch.manual_seed(0)
    x, y = corrupted(25)
    transforms = (Standardize(m=1), Normalize(d=2, bounds=UNIT)) if transformed else (None, None)
    made = RobustConjugateGP(tensor(x), column(y), None, *transforms)
    q = 1
    if acquisition == "UCB":
        function = UpperConfidenceBound(made, beta=0.1)
    elif acquisition == "LogEI":
        function = LogExpectedImprovement(made, best_f=made.best_f)
    else:
        sampler, q = SobolQMCNormalSampler(torch.Size([64]), seed=0), 2
        function = qLogNoisyExpectedImprovement(made, made.inputs, sampler=sampler)
    candidates, value = optimize_acqf(function, UNIT, q=q, num_restarts=3, raw_samples=32)
    assert candidates.shape == (q, 2)
    assert torch.isfinite(value).all()
    np.testing.assert_allclose(candidates[0], [0.3, 0.7], atol=0.15)


def test_acquisition_functions_that_imagine_results():
    torch.manual_seed(0)
    x, y = corrupted()
    made = RobustConjugateGP(tensor(x), column(y))
    X = torch.rand(3, 1 + 4, 2, dtype=D64).requires_grad_()
    value = qKnowledgeGradient(made, num_fantasies=4)(X)
    value.sum().backward()
    assert value.shape == (3,)
    assert torch.isfinite(X.grad).all()
    optima = torch.rand(4, 2, dtype=D64), torch.rand(4, 1, dtype=D64)
    assert torch.isfinite(qJointEntropySearch(made, *optima)(X[:, :1])).all()


def test_the_best_so_far_is_at_the_rows_whatever_is_asked_beside_them():
    x, y = table()
    X, Y = tensor(x), column(y)
    moves = InputPerturbation(tensor([[0.0, 0.0], [0.1, -0.1]]))
    moved = ChainedInputTransform(scaled=Normalize(2), moved=moves)
    made = RobustConjugateGP(X, Y, input_transform=moved)
    still = RobustConjugateGP(X, Y, input_transform=Normalize(2))
    assert made.posterior(X).mean.shape == (30, 1)
    assert made.best_f == still.best_f
    assert torch.equal(made.incumbent, still.incumbent)


@pytest.mark.parametrize("transform", [Bilog(), Power(3.0), Log(), Standardize(1)])
def test_the_best_so_far_is_in_the_units_of_the_results(transform):
    x, y = table(noise=1e-4)
    y = y - y.min() + 1.0
    made = RobustConjugateGP(tensor(x), column(y), outcome_transform=transform)
    assert made.best_f == pytest.approx(y.max(), rel=0.01)
    assert torch.equal(made.incumbent, tensor(x[y.argmax()]))


def test_what_is_added_to_hypotheses_is_one():
    x, y = table(12)
    X, Y = tensor(x), column(y)
    model = RobustConjugateGP(X[:9], Y[:9])
    imagined = Y[9:11] + tensor([[[0.0]], [[1.0]], [[2.0]]])  # three versions of two results
    versions = model.condition_on_observations(X[9:11].expand(3, 2, 2), imagined)
    further = versions.condition_on_observations(X[11:], Y[11:])
    at = tensor(table(4, seed=1)[0])
    for k in range(3):
        told = torch.cat([imagined[k], Y[11:]]).unsqueeze(0)
        both = model.condition_on_observations(X[9:].unsqueeze(0), told)
        torch.testing.assert_close(further.posterior(at).mean[k], both.posterior(at).mean[0])


def test_the_state_of_a_model_of_other_rows_changes_nothing():
    x, y = table()
    here, there = (
        RobustConjugateGP(tensor(x), column(scale * y), outcome_transform=Standardize(1))
        for scale in (1.0, 1000.0)
    )
    before = here.posterior(tensor(x)).mean
    here.load_state_dict(there.state_dict())
    assert torch.equal(here.posterior(tensor(x)).mean, before)
    with pytest.raises(RuntimeError, match=r"not the state of.*covar_module"):
        here.load_state_dict(SingleTaskGP(tensor(x), column(y)).state_dict())


def test_what_is_handed_over_may_be_changed_later_and_may_have_a_gradient():
    x, y = table()
    X = tensor(x).requires_grad_()
    made = RobustConjugateGP(2.0 * X, column(y))
    assert torch.equal(deepcopy(made).inputs, tensor(2.0 * x))
    X = tensor(x)
    made = RobustConjugateGP(X, column(y))
    X.zero_()
    assert torch.equal(made.inputs, tensor(x))


def test_nothing_is_left_to_train():
    x, y = corrupted()
    made = RobustConjugateGP(tensor(x), column(y))
    before = made.posterior(tensor(x)).mean
    mll = fit_gpytorch_mll(ExactMarginalLogLikelihood(made.likelihood, made))
    assert not mll.training
    assert torch.equal(made.posterior(tensor(x)).mean, before)
    assert not any(parameter.requires_grad for parameter in made.parameters())


def test_it_is_a_model_like_others():
    x, y = table()
    y[4] = np.nan
    made = RobustConjugateGP(tensor(x), column(y), None, Standardize(m=1), Normalize(d=2))
    places = tensor(table(5, seed=2)[0])
    expected = made.posterior(places).mean
    for copy in (deepcopy(made), pickle.loads(pickle.dumps(made)), made.subset_output([0])):
        assert torch.equal(copy.posterior(places).mean, expected)
        assert torch.equal(copy.trust, made.trust)
    again = RobustConjugateGP(tensor(x), column(y), None, Standardize(m=1), Normalize(d=2))
    again.load_state_dict(made.state_dict())
    np.testing.assert_allclose(again.posterior(places).mean, expected, atol=1e-10)
    two = ModelListGP(made, SingleTaskGP(tensor(x[:4]), column(y[:4])))
    assert two.posterior(places).mean.shape == (5, 2)
    assert (made.num_outputs, made.batch_shape) == (1, ())
    single = deepcopy(made).to(torch.float32)
    np.testing.assert_allclose(single.posterior(places.float()).mean, expected, atol=1e-3)


def test_nothing_that_is_handed_over_changes():
    x, y = corrupted()
    X, Y, Yvar = tensor(x), column(y), torch.full((12, 1), 0.01, dtype=D64)
    before = X.clone(), Y.clone(), Yvar.clone()
    made = RobustConjugateGP(X, Y, Yvar)
    made.condition_on_observations(X[:1], Y[1:2])
    assert all(map(torch.equal, before, (X, Y, Yvar)))


def test_refusals():
    X, Y = tensor(table()[0]), column(table()[1])
    table_only = r"one table of results.*"
    for arguments, match in (
        ((X, Y[:, 0]), table_only + r"Y\.unsqueeze\(-1\)"),
        ((X, Y[:9]), table_only + "for each result"),
        ((X.expand(3, 15, 2), Y), table_only + "each fold"),
        ((X[:0], Y[:0]), table_only + "one row at least"),
        ((X, Y.expand(15, 2)), table_only + "ModelListGP"),
        ((torch.arange(15).unsqueeze(-1), Y), r"floating-point numbers, got torch\.int64"),
        ((X / 0.0, Y), "Inputs must be finite"),
        ((X, Y, -torch.ones_like(Y)), "values from -1"),
    ):
        with pytest.raises(ValueError, match=match):
            RobustConjugateGP(*arguments)
    for arguments, match in (
        ((X.numpy(), Y), "Inputs are a tensor, got ndarray"),
        ((X, Y.tolist()), "Results are a tensor, got list"),
        ((X, Y, 0.1), "Noise variances are a tensor, got float"),
    ):
        with pytest.raises(TypeError, match=match):
            RobustConjugateGP(*arguments)
    for corners in (torch.zeros(1, 2), torch.zeros(2, 3), [(0.0, 1.0), (0.0, 1.0)]):
        with pytest.raises(ValueError, match=r"corner of 2 inputs, shape 2 x 2, got shape"):
            RobustConjugateGP(X, Y, bounds=corners)
    with pytest.raises(ValueError, match=r"Warp has parameters to learn.*requires_grad_\(False\)"):
        RobustConjugateGP(X, Y, input_transform=Warp(d=2, indices=[0, 1]))
    model = RobustConjugateGP(X, Y, input_transform=Warp(d=2, indices=[0]).requires_grad_(False))
    with pytest.raises(ValueError, match="No defence would judge"):
        model.set_train_data(X, Y[:, 0], strict=False)
    with pytest.raises(TypeError, match=r"has no Yvar: .* are given as noise="):
        model.condition_on_observations(X[:2], Y[:2], Yvar=Y[:2])
    with pytest.raises(ValueError, match=r"inputs with 2 coordinates, and .* have 1"):
        model.condition_on_observations(X[:2, :1], Y[:2])
    for wrong in (np.nan, np.inf):
        with pytest.raises(ValueError, match=r"Hypotheses, .* must be finite"):
            model.condition_on_observations(X[:3, None], torch.full((3, 1, 1), wrong))
    student = StudentTProcess(Prior(kernels.RBF(1.0), 0.1))
    with pytest.raises(ValueError, match="exact posterior of a Gaussian process"):
        RobustConjugateGP(X, Y, model=student)
    rows = Observations(X.numpy(), Y[:, 0].numpy(), np.full(15, np.nan))
    box = Box([0.0, 0.0], [1.0, 1.0])
    with pytest.raises(ValueError, match="got StudentT"):
        RobustConjugateGP.from_posterior(student(box, rows), rows)
    ours = GaussianProcess(Prior(kernels.RBF(1.0), 0.1))(box, rows)
    with pytest.raises(ValueError, match="15 observations and 14 were given"):
        RobustConjugateGP.from_posterior(ours, rows.until(14))
    bounds = replace(rows, censored=np.arange(15) == 3)
    with pytest.raises(ValueError, match=r"1 of the observations are bounds.*learner\.modelled"):
        RobustConjugateGP.from_posterior(ours, bounds)
    with pytest.raises(ValueError, match=r"other results than .* give learner\.modelled"):
        RobustConjugateGP.from_posterior(ours, replace(rows, observed=rows.observed + 1.0))
    with pytest.raises(ValueError, match="tell them to the learner"):
        RobustConjugateGP.from_posterior(ours, rows).condition_on_observations(X[:1], Y[:1])


def test_without_botorch_the_extra_is_named(monkeypatch):
    for name, missing in (("botorch", "botorch.models"), ("torch_kernels", "gpytorch.kernels")):
        with monkeypatch.context() as patch:
            patch.delitem(sys.modules, f"stoic.integrations.{name}")
            patch.setitem(sys.modules, missing, None)
            with pytest.raises(ImportError, match=r"pip install 'stoic\[botorch\]'"):
                importlib.import_module(f"stoic.integrations.{name}")


def test_bounds_are_those_of_inputs_as_they_are_given():
    corners, generator = tensor([[0.0, 0.0], [100.0, 0.01]]), torch.Generator().manual_seed(0)
    unit = torch.rand(40, 2, dtype=torch.float64, generator=generator)
    Y = 1.0 - ((unit - 0.3) ** 2).sum(dim=-1, keepdim=True)
    scale = Normalize(d=2, bounds=corners)
    made = RobustConjugateGP(unit * corners[1], Y, input_transform=scale, bounds=corners)
    same = RobustConjugateGP(unit, Y, bounds=UNIT)
    at = torch.rand(9, 2, dtype=torch.float64, generator=generator)
    expected = same.posterior(at).mean
    torch.testing.assert_close(made.posterior(at * corners[1]).mean, expected, rtol=1e-4, atol=1e-5)
    with pytest.warns(InputDataWarning, match="40 of the 40 inputs are outside of the bounds"):
        RobustConjugateGP(unit + 2.0, Y, bounds=UNIT)


def test_a_single_result_has_no_scale():
    with pytest.warns(InputDataWarning, match="No two finite results differ"):
        RobustConjugateGP(tensor([[0.3, 0.4]]), tensor([[1.0]]))
