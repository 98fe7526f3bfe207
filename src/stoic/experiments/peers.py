"""Methods of other libraries, as players of the same games."""

from __future__ import annotations

import warnings
from functools import cache
from importlib import import_module
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from stoic.confidence import Schedule
from stoic.data import Array, Booleans, Choice, Recommendation
from stoic.domains import Box, Domain, Finite

_ITERATIONS = 100  # of each fit


class _Bound(NamedTuple):
    """Upper confidence bound of a BoTorch model as a surface; a width of 0 is the mean."""

    model: Any
    width: float

    def _heights(self, x: Any) -> Any:
        posterior = self.model.posterior(x)
        std = posterior.variance.clamp_min(0.0).sqrt()  # rounding may leave less than 0
        return (posterior.mean + self.width * std).squeeze(-1)

    def __call__(self, x: Array) -> Array:
        torch = _botorch().torch
        with torch.no_grad():
            return np.asarray(self._heights(torch.tensor(x)).numpy())

    def with_gradient(self, x: Array) -> tuple[Array, Array]:
        at = _botorch().torch.tensor(x, requires_grad=True)
        heights = self._heights(at)
        # A row has its own height alone, so the gradient of the sum is that of each row
        heights.sum().backward()
        return heights.detach().numpy(), at.grad.numpy()


class RelevancePursuit:
    """UCB on a Gaussian process with relevance pursuit [Ament2024]_, by BoTorch.

    The model gives single results a noise of their own, and chooses their number by its evidence.
    Model and fit are ``RobustRelevancePursuitSingleTaskGP`` with BoTorch's defaults, but that each
    of its fits ends after 100 iterations: without a limit one of 100 results took 25 to 34 seconds
    instead of 3, and moved the mean by at most 0.01 noise standard deviations. The width is the
    schedule of our own methods, and so is the search for the highest bound. Results that are not
    finite, which BoTorch refuses, are left out. If its fit fails, the next point is drawn
    uniformly, and the failure counted.

    Parameters
    ----------
    domain:
        Domain to query.
    seed:
        Seed of its own random stream.

    Attributes
    ----------
    failures:
        Number of failed fits.

    Raises
    ------
    ImportError
        If BoTorch is missing; it comes with the extra ``botorch``.
    """

    def __init__(self, domain: Domain, seed: int) -> None:
        _botorch()
        self.domain = domain
        self.rng = np.random.default_rng(seed)
        self.failures = 0
        self._x = np.empty((0, domain.dim))
        self._y = np.empty(0)
        self._rounds = 0
        self._model: Any = None

    def ask_batch(self, n: int) -> list[Choice]:
        """Maximise the upper bound n times with the same model: it has no batches of its own."""
        model = self.fitted()
        if model is None:
            return [Choice(x) for x in self.domain.sample(n, self.rng)]
        # A schedule looks at no posterior.
        surface = _Bound(model, Schedule()(model, self._rounds + 1))
        peaks = [self.domain.maximise(surface, self.rng, self._x) for _ in range(n)]
        return [Choice(peak.x, peak.arm) for peak in peaks]

    def tell(self, x: Array, y: Array) -> None:
        """Count the results, and keep the finite ones."""
        points, results = np.atleast_2d(x), np.atleast_1d(np.asarray(y, dtype=float))
        finite = np.isfinite(results)
        self._rounds += len(results)
        self._x = np.concatenate([self._x, points[finite]])
        self._y = np.append(self._y, results[finite])
        self._model = None

    def active(self) -> Booleans:
        """All rows: this method rules out nothing."""
        assert isinstance(self.domain, Finite)
        return np.ones(len(self.domain), dtype=np.bool_)

    def recommend(self) -> Recommendation:
        """Recommend the queried point with the best lower bound, as our learners do."""
        model = self.fitted()
        if model is None:
            known = len(self._y) > 0
            x = self._x[np.argmax(self._y)] if known else self.domain.sample(1, self.rng)[0]
            y = float(np.max(self._y, initial=-np.inf))
            return Recommendation(x.copy(), y, y, y, x.copy(), y)
        tried = np.unique(self._x, axis=0)
        lower, mean, upper = (_Bound(model, width)(tried) for width in (-2.0, 0.0, 2.0))
        best = int(np.argmax(lower))
        # A stream of its own: to recommend does not change what is queried next
        peak = self.domain.maximise(_Bound(model, 0.0), np.random.default_rng(0), tried)
        return Recommendation(
            tried[best].copy(), float(mean[best]), float(lower[best]), float(upper[best]),
            peak.x.copy(), peak.height,
        )  # fmt: skip

    def fitted(self) -> Any:
        """Model of all observations; ``None`` if these are too few or the fit fails."""
        if self._model is None and len(self._y) >= 2:
            try:
                self._model = self._fit()
            except (RuntimeError, ValueError, ArithmeticError):  # torch's, botorch's, gpytorch's
                self.failures += 1
        return self._model

    def _fit(self) -> Any:
        botorch = _botorch()
        torch, n = botorch.torch, len(self._y)
        # The domain's corners, not those of the points so far, which move from fit to fit
        corners = torch.tensor(self._corners())
        model = botorch.Robust(
            torch.tensor(self._x),
            torch.tensor(self._y[:, None]),
            input_transform=botorch.Normalize(self.domain.dim, bounds=corners),
            outcome_transform=botorch.Standardize(1),
            prior_mean_of_support=max(int(0.2 * n), 1),  # its default is 0 for 4 results: no prior
        )
        options = {"options": {"maxiter": _ITERATIONS}}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fits that stop early, scales beyond its taste
            botorch.fit(botorch.Likelihood(model.likelihood, model), optimizer_kwargs=options)
        return model.eval()

    def _corners(self) -> Array:
        """Smallest box around the domain, shape (2, d)."""
        if isinstance(self.domain, Finite):
            low = self.domain.points.min(axis=0)
            return np.stack([low, low + self.domain.widths])
        assert isinstance(self.domain, Box)
        return np.stack([self.domain.lower, self.domain.upper])


@cache
def _botorch() -> Any:
    """Names of torch, GPyTorch and BoTorch."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what they deprecate among themselves
            robust = import_module("botorch.models.robust_relevance_pursuit_model")
            return SimpleNamespace(
                Robust=robust.RobustRelevancePursuitSingleTaskGP,
                torch=import_module("torch"),
                Normalize=import_module("botorch.models.transforms.input").Normalize,
                Standardize=import_module("botorch.models.transforms.outcome").Standardize,
                Likelihood=import_module("gpytorch.mlls").ExactMarginalLogLikelihood,
                fit=import_module("botorch.fit").fit_gpytorch_mll,
            )
    except ImportError as error:
        raise ImportError(
            "Relevance pursuit needs BoTorch with its robust model, which is not installed: "
            "pip install 'stoic[botorch]'."
        ) from error
