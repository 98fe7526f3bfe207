"""A robust Gaussian process as a scikit-learn regressor: some of its targets may be outliers.

Needs the extra ``sklearn``.
"""

from __future__ import annotations

import contextlib
import warnings
from typing import Any, Self

import numpy as np

from stoic import linalg
from stoic.data import Array, numbers
from stoic.integrations.tables import Recipe, box_around, doubt, model_of, observations_of
from stoic.learner import has_scale
from stoic.models.window import Bounds
from stoic.posteriors import Exact, Model
from stoic.posteriors.base import Posterior, Windowed
from stoic.posteriors.mixture import MixturePosterior
from stoic.threads import enough_threads

try:
    from sklearn.base import BaseEstimator, RegressorMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
except ImportError as error:
    raise ImportError(
        "stoic.integrations.sklearn needs scikit-learn 1.6 or newer, which is not installed: "
        "pip install 'stoic[sklearn]'."
    ) from error


# A window over all rows. On four functions of 2 to 8 coordinates with 5 % outliers the exact model
# of 1,000 rows takes 7 to 11 s, and this one is within 5 % of its root mean square error; of 10,000
# rows it takes 6 to 7 s, and a window of 1,024 in 24 to 30 s is at most 3 % better.
_EVERYWHERE = Bounds(exact=1000, chosen=512, full=512, recent=0, local=0, sample=128)


class RobustGaussianProcessRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Gaussian process regression that is robust to outliers among the targets.

    Hyperparameters are fitted in units of robust ranges of the inputs and of a robust scale of the
    targets, so neither needs to be standardised.

    Parameters
    ----------
    recipe:
        A recipe or its text, whose model is taken. By default ``recipes.loo_gp_ucb()``, which
        judges each row by all others. ``recipes.a2_rcgp_ucb()`` [Ezzerg2026]_ is for a search, and
        judges the last row as the newest; ``recipes.gp_ucb()`` trusts every target.
    model:
        Instead of a recipe, a model such as ``GaussianProcess(prior, defence, fitting)``.

    Attributes
    ----------
    weights_:
        Trust in each training row, shape (n,), from 1 to 0.
    kernel_, noise_, mean_:
        Kernel, noise variance and constant mean of the prior in force.
    posterior_:
        The posterior, see :class:`stoic.posteriors.base.Posterior`.
    n_features_in_, feature_names_in_:
        As in every estimator of scikit-learn.

    Notes
    -----
    A leave-one-out model, as the default has, is exact for up to 1,000 rows. Of more it fits its
    hyperparameters to 512 that are spread over all, and absorbs the others, each with its own
    trust: 10,000 rows take seconds.

    nan and infinities are legal targets of a fit, unless all targets are: such rows have the weight
    0. They are not legal in X, and a score needs finite targets.
    """

    def __init__(self, recipe: Recipe | str | None = None, model: Model | None = None) -> None:
        self.recipe = recipe
        self.model = model

    def fit(self, X: Any, y: Any, noise: Any = None) -> Self:
        """Fit the defence and the hyperparameters.

        Parameters
        ----------
        X:
            Inputs, shape (n, d).
        y:
            Targets, shape (n,).
        noise:
            Noise variances of the targets, shape (n,), where they are known; nan where not.

        Raises
        ------
        ValueError
            If an input is not finite or no target is, or if a noise variance is not positive.
        """
        x, y = validate_data(
            self,
            _without_mask(X),
            _missing_as_nan(y),
            validate_separately=(
                {"dtype": np.float64},
                {"dtype": np.float64, "ensure_2d": False, "ensure_all_finite": False},
            ),
        )
        y = column_or_1d(y, warn=True)
        if len(x) != len(y):
            raise ValueError(f"There are {len(x)} rows of inputs and {len(y)} targets.")
        if not np.isfinite(y).any():
            raise ValueError(
                "No target is finite, all are nan or infinity: there is nothing to fit."
            )
        rows = observations_of(x, y, None if noise is None else _noise(noise, len(y)))
        domain = box_around(x)
        model = model_of(self.recipe, self.model, domain, _EVERYWHERE)
        most = model.exact if isinstance(model, Windowed) else len(rows)
        with enough_threads(min(len(rows), most)):
            self.posterior_ = model(domain, rows)
        self.weights_ = self.posterior_.trust(rows)
        self._scaled = has_scale(model, rows)
        if said := doubt(x / domain.widths, rows.observed, self.weights_):
            warnings.warn(
                f"{said} If they are right, fit recipe='gp_ucb'.", UserWarning, stacklevel=2
            )
        prior = self.posterior_.prior
        self.kernel_, self.noise_, self.mean_ = prior.kernel, prior.noise, prior.mean
        return self

    def predict(
        self, X: Any, return_std: bool = False, return_cov: bool = False
    ) -> Array | tuple[Array, Array]:
        """Predict the posterior mean of the function, shape (m,), without the noise of a target.

        Parameters
        ----------
        X:
            Inputs, shape (m, d).
        return_std:
            True to return its standard deviation too, shape (m,); infinite as long as no two
            finite targets differ.
        return_cov:
            True to return its covariance instead, shape (m, m).

        Raises
        ------
        ValueError
            If both are requested, or a covariance of a model that is not a Gaussian process or of
            targets without a scale.
        """
        check_is_fitted(self)
        x = validate_data(self, _without_mask(X), reset=False, dtype=np.float64)
        if return_std and return_cov:
            raise ValueError("Ask for return_std or for return_cov, not for both.")
        mean, std = self.posterior_.predict(x)
        if not self._scaled:
            if return_cov:
                raise ValueError(
                    "No two finite targets differ, so that a deviation has no scale: there is no "
                    "covariance, and return_std is infinite."
                )
            std = np.full_like(std, np.inf)
        if return_cov:
            return mean, _covariance(self.posterior_, x)
        return (mean, std) if return_std else mean

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> Array:
        """Draw functions from the posterior, at the rows of X: shape (m, n_samples)."""
        if not isinstance(n_samples, int | np.integer) or n_samples < 0:
            raise ValueError(f"n_samples is a number of functions, from 0 on, got {n_samples!r}.")
        mean, covariance = self.predict(X, return_cov=True)
        draws = check_random_state(random_state).multivariate_normal(mean, covariance, n_samples)
        return np.asarray(draws.T)


def _covariance(posterior: Posterior, x: Array) -> Array:
    """Covariance of f at the rows of ``x``, about the posterior mean, shape (m, m)."""
    if isinstance(posterior, MixturePosterior):  # sum_k w_k (C_k + (m_k - m_0) (m_k - m_0)')
        means = np.array([part.predict(x)[0] for part in posterior.parts])
        apart = means - means[0]
        covariance: Array = (apart.T * posterior.weights) @ apart
        for weight, part in zip(posterior.weights, posterior.parts, strict=True):
            covariance += weight * _covariance(part, x)
        return covariance
    if not isinstance(posterior, Exact):
        raise ValueError(
            f"Only a Gaussian process has a covariance, this is a {type(posterior).__name__}: use "
            "return_std."
        )
    covariance = posterior.prior.kernel(x, x)
    if len(posterior.x):  # else no target is trusted
        V = linalg.solve_lower(posterior.L, posterior.prior.kernel(posterior.x, x))
        covariance = covariance - V.T @ V
    return covariance


def _without_mask(X: Any) -> Any:
    """Return inputs; scikit-learn would take what is behind a mask for one."""
    masked = isinstance(X, np.ma.MaskedArray) and np.count_nonzero(np.ma.getmaskarray(X))
    if masked:
        raise ValueError(
            f"{masked} inputs are masked, and there are no missing inputs: leave out the rows, or "
            "impute them."
        )
    return X


def _missing_as_nan(y: Any) -> Any:
    """Return targets with nan where they are masked, or NA in a column of objects of pandas."""
    if isinstance(y, np.ma.MaskedArray):
        return numbers(y, "A target")
    objects = getattr(getattr(y, "dtype", None), "kind", "") == "O"
    return y.mask(y.isna(), np.nan) if objects and hasattr(y, "isna") else y


def _noise(noise: Any, n: int) -> Array:
    got, given = repr(noise), np.empty(0)
    with contextlib.suppress(ValueError):
        given = numbers(noise, "A noise variance")
        got = f"shape {given.shape}"
    wrong = given[~(np.isnan(given) | ((given > 0.0) & np.isfinite(given)))]
    if given.shape != (n,) or len(wrong):
        got = f"{wrong[0]:g}" if given.shape == (n,) else got
        raise ValueError(
            f"Noise is a positive variance for each of {n} targets, or nan where it is not known, "
            f"got {got}."
        )
    return given
