"""A robust Gaussian process as a BoTorch model: its training data may have outliers.

A defence turns results into targets and a noise variance per row [Altamirano2024]_,
[Ezzerg2026]_, and hyperparameters are fitted in stoic. BoTorch gets the result, an ordinary
Gaussian process with fixed noise: its posterior is differentiable, batched, and fit for any
acquisition function.

Needs the extra ``botorch``. Everything is maximised, as everywhere in BoTorch and stoic.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from stoic.data import DISTRUSTED, Array, Observations
from stoic.domains import Box, Domain
from stoic.integrations.tables import Recipe, box_around, doubt, model_of, observations_of
from stoic.learner import has_scale
from stoic.models import GaussianProcess
from stoic.posteriors import Arms, Exact, Model, Posterior
from stoic.posteriors.absorbed import WindowPosterior
from stoic.posteriors.fitting import FixedHyperparameters
from stoic.posteriors.mixture import MixturePosterior

try:
    import botorch.fit
    import torch
    from botorch.exceptions.warnings import InputDataWarning
    from botorch.models import SingleTaskGP
    from botorch.models.utils import fantasize as fantasize_flag
    from botorch.models.utils import gpt_posterior_settings
    from botorch.posteriors import GPyTorchPosterior
    from gpytorch import settings
    from gpytorch.likelihoods import FixedNoiseGaussianLikelihood
    from gpytorch.means import ConstantMean
    from gpytorch.mlls import ExactMarginalLogLikelihood

    from stoic.integrations.torch_kernels import Covariance
except ImportError as error:
    raise ImportError(
        "stoic.integrations.botorch needs BoTorch, which is not installed: "
        "pip install 'stoic[botorch]'."
    ) from error

_RESOLVED = 1e-6  # a prior variance beside which GPyTorch's floor of 1e-10 is negligible


@dataclass(frozen=True, eq=False)
class _Observed:
    """Fitted state of a model, in the units of its transforms. Copies of a model share it."""

    observations: Observations
    posterior: Exact | Arms
    domain: Domain
    model: Model | None

    def __deepcopy__(self, memo: object) -> _Observed:
        return self

    def with_rows(self, later: Observations) -> _Observed:
        """Condition on further rows, with the defence refitted to all rows.

        The hyperparameters of a ``GaussianProcess`` are held.
        """
        if self.model is None:
            raise ValueError(
                "A model made from a posterior has no defence to judge further results by: tell "
                "them to the learner it came from, and make another one."
            )
        before = self.observations
        rows = Observations(
            np.concatenate([before.x, later.x]),
            np.append(before.observed, later.observed),
            np.append(before.noise, later.noise),
        )
        model = self.model
        if isinstance(model, GaussianProcess):
            model = replace(model, prior=self.posterior.prior, fitting=FixedHyperparameters())
        posterior = _exact(model(self.domain, rows, self.posterior))
        return replace(self, observations=rows, posterior=posterior)


class RobustConjugateGP(SingleTaskGP):  # type: ignore[misc]
    """Outlier-robust BoTorch model; one outcome, maximised.

    It is fitted when constructed: a defence and hyperparameters of stoic, then BoTorch's Gaussian
    process with fixed noise on the targets of the fitted defence. There is nothing left to train
    (``fit_gpytorch_mll`` returns at once), and rows that the defence rejects entirely are not in
    ``train_inputs``. nan and infinities are legal results.

    Parameters
    ----------
    train_X:
        Inputs, n x d, finite.
    train_Y:
        Observed results, n x 1.
    train_Yvar:
        Noise variances, n x 1, where they are known; nan where not. The model's own noise by
        default.
    outcome_transform:
        Applied before the defence. It learns from the trusted rows before it is applied.
        None by default, since stoic standardises robustly itself.
    input_transform:
        Learns from all rows.
    recipe:
        A recipe or its text, whose model is taken. By default ``recipes.loo_gp_ucb()``: of thirty
        results with three outliers of two ranges it finds all, ``recipes.a2_rcgp_ucb()`` few.
    model:
        Instead of a recipe, a model such as ``GaussianProcess(prior, defence, fitting)``.
    bounds:
        Corners of the search space, 2 x d, before the input transform, as for ``optimize_acqf``:
        lengthscales are fitted in units of its widths. By default a box around the rows, but for a
        few that are far away.

    Attributes
    ----------
    trust:
        Trust in each observed row, shape n, from 1 to 0, in the order given.
    inputs:
        Inputs of all observed rows, n x d, before the input transform.

    Raises
    ------
    ValueError
        If there is not one table of finite inputs and results, if the posterior is not that of a
        Gaussian process, or if there is no formula in torch for the kernel.

    Notes
    -----
    Predictions agree with those of one posterior in stoic up to rounding. Where the default keeps
    several explanations of the results, they are those of the likeliest, without the deviation that
    the others add: of 30 sets of 14 results with 15 % outliers, 95 % intervals covered 89 %, and
    with all explanations 92 %. GPyTorch reports no variance below 1e-10: give results in units in
    which that is negligible. A warning says if it is not, as for results that were standardised
    with a huge outlier among them.
    """

    def __init__(
        self,
        train_X: Any,
        train_Y: Any,
        train_Yvar: Any = None,
        outcome_transform: Any = None,
        input_transform: Any = None,
        *,
        recipe: Recipe | str | None = None,
        model: Model | None = None,
        bounds: Any = None,
    ) -> None:
        _check(train_X, train_Y, train_Yvar)
        for kind, transform in (("outcome", outcome_transform), ("input", input_transform)):
            if transform is not None and any(p.requires_grad for p in transform.parameters()):
                raise ValueError(
                    f"The {kind} transform {type(transform).__name__} has parameters to learn, and "
                    "RobustConjugateGP learns none in torch: fix them with "
                    "transform.requires_grad_(False), or leave the transform out."
                )
        with torch.no_grad():
            if input_transform is not None:
                input_transform.to(train_X).train()(train_X)  # which it learns from
                input_transform.eval()
            x = _array(_placed(train_X, input_transform))
            domain = box_around(x) if bounds is None else _box(bounds, train_X, input_transform)
            chosen = model_of(recipe, model, domain)
            if outcome_transform is not None:
                raw = _rows(x, train_Y, train_Yvar)
                trust = chosen(domain, raw).trust(raw)
                _learn(outcome_transform, train_X, train_Y, trust)
            rows = _rows(x, *_measured(train_X, train_Y, train_Yvar, outcome_transform))
            fit = _Observed(rows, _exact(chosen(domain, rows)), domain, chosen)
        if np.isfinite(rows.observed).any() and not has_scale(chosen, rows):
            warnings.warn(
                "No two finite results differ, so that a deviation has no scale: those of this "
                "model are arbitrary.",
                InputDataWarning,
                stacklevel=2,
            )
        self._assemble(fit, train_X, outcome_transform, input_transform)

    @classmethod
    def from_posterior(cls, posterior: Posterior, observations: Observations) -> Self:
        """Convert a posterior: ``from_posterior(learner.posterior, learner.modelled)``.

        Parameters
        ----------
        posterior:
            The exact posterior of a Gaussian process, on a finite domain or not; of a
            :class:`~stoic.posteriors.mixture.MixturePosterior` one the likeliest part, without the
            deviation that the mixture adds.
        observations:
            The observations that it was conditioned on, in whose units it predicts.

        Raises
        ------
        ValueError
            If it is another posterior (of a Student-t process, of features), or one of other rows
            or results, or if some of the observations are bounds.
        """
        if posterior.n != len(observations) or not len(observations):
            raise ValueError(
                f"The posterior rests on {posterior.n} observations and {len(observations)} were "
                "given: give those it was conditioned on, at least one."
            )
        if not observations.measured.all():
            raise ValueError(
                f"{np.count_nonzero(~observations.measured)} of the observations are bounds, which "
                "BoTorch's model cannot use: give learner.modelled, in which they are "
                "pseudo-observations."
            )
        exact = _exact(posterior.copy())
        if isinstance(exact, Exact) and not _rests_on(exact, observations):
            raise ValueError(
                "The posterior rests on other results than those given: of a learner, give "
                "learner.modelled, since the default compresses poor ones."
            )
        fit = _Observed(observations, exact, box_around(observations.x), None)
        self = cls.__new__(cls)
        self._assemble(fit, torch.tensor(observations.x), None, None)
        return self

    def _assemble(
        self, fit: _Observed, X: Any, outcome_transform: Any, input_transform: Any
    ) -> None:
        """Construct BoTorch's model on the fitted targets of the rows at ``X``."""
        X = X.detach().clone()  # which the caller may change
        prior, rows = fit.posterior.prior, fit.observations
        targets = fit.posterior.fitted_defence(rows, prior)
        if said := doubt(rows.x / fit.domain.widths, rows.observed, targets.trust):
            warnings.warn(f"{said} If they are right, use recipe='gp_ucb'.", stacklevel=3)
        kept = np.isfinite(targets.noise)
        values, noise = targets.values, targets.noise
        max_variance = float(prior.kernel.diagonal(rows.x).max())
        if max_variance < _RESOLVED:
            warnings.warn(
                f"Trusted results vary by about {max_variance**0.5:.2g}, which is too little for "
                "BoTorch to resolve: multiply all results by a constant. If they were "
                "standardised, an outlier has decided their scale: standardise later, or not at "
                "all.",
                InputDataWarning,
                stacklevel=3,  # at the constructor's caller
            )
        if not kept.any():  # GPyTorch needs a row: one of negligible weight
            warnings.warn(
                f"None of the {len(kept)} results counts, since each is nan, infinite or an "
                "outlier: the model is the prior, and best_f its mean.",
                InputDataWarning,
                stacklevel=3,
            )
            kept[0] = True
            nothing = 1e16 * (prior.noise + max_variance)
            values, noise = np.full(len(kept), prior.mean), np.full(len(kept), nothing)
        mean = ConstantMean().to(X)
        mean.initialize(constant=X.new_tensor(prior.mean))  # a float is rounded to 32 bits
        # GPyTorch would raise small noise variances to a floor, and the posterior would be another
        with settings.min_fixed_noise(0.0, 0.0, 0.0):
            super().__init__(
                X[torch.as_tensor(kept, device=X.device)],
                X.new_tensor(values[kept]).unsqueeze(-1),
                X.new_tensor(noise[kept]).unsqueeze(-1),
                covar_module=Covariance(prior.kernel),
                mean_module=mean,
                outcome_transform=None,  # the targets are in its units
                input_transform=input_transform,
            )
        if outcome_transform is not None:
            self.outcome_transform = outcome_transform
        self._subset_batch_dict: dict[str, int] = {}  # of its one output
        self._told = fit
        self._imagines = False  # True if conditioned on hypotheses, too
        self.register_buffer("inputs", X, persistent=False)
        self.register_buffer("trust", X.new_tensor(targets.trust), persistent=False)
        self.requires_grad_(False)
        self.eval()

    @classmethod
    def construct_inputs(
        cls,
        training_data: Any,
        recipe: Recipe | str | None = None,
        model: Model | None = None,
        bounds: Any = None,
    ) -> dict[str, Any]:
        """Arguments of the constructor from a data set; Ax passes its ``model_options`` here."""
        data = super().construct_inputs(training_data=training_data)
        return {**data, "recipe": recipe, "model": model, "bounds": bounds}

    def custom_fit(self, mll: Any, **options: Any) -> Any:
        """Return ``mll`` to ``fit_gpytorch_mll``: hyperparameters have been fitted already."""
        return mll.eval()

    def posterior(
        self,
        X: Any,
        output_indices: list[int] | None = None,
        observation_noise: Any = False,
        posterior_transform: Any = None,
    ) -> Any:
        """Posterior as in BoTorch; ``observation_noise=True`` adds a trusted result's noise."""
        if observation_noise is True:
            observation_noise = self._noise(X)
        # Beyond 800 rows GPyTorch would approximate.
        with settings.max_cholesky_size(sys.maxsize):
            return super().posterior(X, output_indices, observation_noise, posterior_transform)

    def fantasize(
        self, X: Any, sampler: Any, observation_noise: Any = None, **options: Any
    ) -> RobustConjugateGP:
        """Fantasize as in BoTorch; the default noise of a fantasy is that of a trusted result."""
        noise = self._noise(X) if observation_noise is None else observation_noise
        fantasies: RobustConjugateGP = super().fantasize(X, sampler, noise, **options)
        return fantasies

    def condition_on_observations(
        self, X: Any, Y: Any, noise: Any = None, **options: Any
    ) -> RobustConjugateGP:
        """Condition on further rows; the hyperparameters of a ``GaussianProcess`` are held.

        Those of a leave-one-out model, as the default has, are fitted to all rows, since it cannot
        judge results under others that it was fitted to before. The defence judges *results*, a
        table n' x d and n' x 1, together with all earlier rows, whose trust may change. To have
        hyperparameters fitted in any case, construct a new model.

        *Hypotheses* are trusted, and the rest stays as it is: what BoTorch adds while it
        fantasises, whatever comes in batches, since there are no two versions of a result, and all
        that is added to hypotheses.

        Parameters
        ----------
        X, Y:
            (batch x) n' x d and (batch x) n' x 1.
        noise:
            Noise variances in the units of the outcome transform, n' x 1; by default those of a
            trusted result.

        Raises
        ------
        ValueError
            If results are given to a model that was made from a posterior.
        """
        if fantasize_flag.on() or X.dim() > 2 or Y.dim() > 2 or self._imagines:
            batch = self.train_inputs[0].shape[:-2]  # of earlier hypotheses
            X, Y = (
                part if part.dim() > len(batch) + 1 else part.expand(*batch, *part.shape[-2:])
                for part in (X, Y)
            )
            if not torch.isfinite(Y).all():
                raise ValueError(
                    "Hypotheses, as all that comes in batches, must be finite. Results may be nan "
                    "or infinite in a table, n' x d and n' x 1, which the defence judges."
                )
            noise = self._noise(X).expand(*X.shape[:-1], 1) if noise is None else noise
            if self.prediction_strategy is None:  # which GPyTorch extends
                self.posterior(self.inputs[:1])
            with settings.min_fixed_noise(0.0, 0.0, 0.0):
                hypothetical: RobustConjugateGP = super().condition_on_observations(
                    X, Y, noise=noise, **options
                )
            hypothetical._imagines = True
            return hypothetical
        if options:
            raise TypeError(
                f"condition_on_observations has no {', '.join(options)}: the noise variances of "
                "further results are given as noise=."
            )
        _check(X, Y, noise)
        if X.shape[1] != self.inputs.shape[1]:
            raise ValueError(
                f"The model has inputs with {self.inputs.shape[1]} coordinates, and those of "
                f"further results have {X.shape[1]}."
            )
        transforms = [deepcopy(getattr(self, f"{kind}_transform", None)) for kind in _KINDS]
        outcome_transform, input_transform = transforms
        with torch.no_grad():
            x = _array(_placed(X, input_transform))
            values = _measured(X, Y, None, outcome_transform)[0]
            fit = self._told.with_rows(_rows(x, values, noise))
        conditioned = type(self).__new__(type(self))
        conditioned._assemble(fit, torch.cat([self.inputs, X]), *transforms)
        return conditioned

    def set_train_data(self, inputs: Any = None, targets: Any = None, strict: bool = True) -> None:
        """Replace inputs by transformed ones, as BoTorch does; refuse to replace results.

        Raises
        ------
        ValueError
            If ``targets`` are given: no defence would judge them.
        """
        if targets is not None:
            raise ValueError(
                "No defence would judge results that are set as training data: construct a new "
                "RobustConjugateGP, or call condition_on_observations."
            )
        super().set_train_data(inputs, targets, strict)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, **options: Any
    ) -> None:
        """Only check the state: all hyperparameters are those of the observed rows.

        Where BoTorch and Ax carry them over to other rows, this model has been fitted to those
        already.
        To store a model, pickle it.

        Raises
        ------
        RuntimeError
            If it is of another kind of model, and ``strict``.
        """
        if strict and (other := state_dict.keys() ^ self.state_dict().keys()):
            raise RuntimeError(
                f"This is not the state of a RobustConjugateGP with the same transforms: "
                f"{', '.join(sorted(other))} {'is' if len(other) == 1 else 'are'} in one of the "
                "two only."
            )

    @property
    def best_f(self) -> Any:
        """Incumbent value: the largest posterior mean at a trusted row, never at an outlier.

        Where none has a trust of 0.5, at any row. In units of ``train_Y``; if BoTorch has no
        formula for the mean behind an outcome transform, the median.
        """
        return self._trusted_means().max(dim=-1).values

    @property
    def incumbent(self) -> Any:
        """Input of the row with that mean, shape d."""
        return self.inputs[self._trusted_means().argmax(dim=-1)]

    def _trusted_means(self) -> Any:
        """Posterior means at the observed rows; minus infinity where they are not trusted."""
        input_transform, transform = (
            getattr(self, f"{kind}_transform", None) for kind in _KINDS[::-1]
        )
        self.eval()
        with torch.no_grad(), gpt_posterior_settings(), settings.max_cholesky_size(sys.maxsize):
            # At the rows themselves: an input transform may perturb later queries.
            latent = GPyTorchPosterior(self(_placed(self.inputs, input_transform)))
            mean = latent.mean
            if transform is not None:
                try:
                    mean = transform.untransform_posterior(latent, X=self.inputs).mean
                except NotImplementedError:  # no formula for it
                    mean = transform.untransform(mean, X=self.inputs)[0]
        mean = mean.squeeze(-1)
        trusted = self.trust >= DISTRUSTED
        if not trusted.any():
            trusted = torch.ones_like(trusted)
        return mean.masked_fill(~trusted | mean.isnan(), -torch.inf)

    def _noise(self, X: Any) -> Any:
        """Noise variance of a trusted result, as a tensor of shape 1 x 1."""
        return X.new_full((1, 1), self._told.posterior.prior.noise)


if hasattr(botorch.fit, "FitGPyTorchMLL"):  # before 0.18 BoTorch found how to fit by types

    @botorch.fit.FitGPyTorchMLL.register(  # type: ignore[untyped-decorator]
        ExactMarginalLogLikelihood, FixedNoiseGaussianLikelihood, RobustConjugateGP
    )
    def _nothing_to_fit(mll: Any, *types: Any, **options: Any) -> Any:
        return mll.eval()


_KINDS = ("outcome", "input")


def _box(bounds: Any, X: Any, transform: Any) -> Box:
    """Build the box of given corners, transformed as the inputs ``X`` are."""
    corners, dim = torch.as_tensor(bounds).to(X), X.shape[1]
    if corners.shape != (2, dim) or not (corners[0] < corners[1]).all():
        raise ValueError(
            f"Bounds are the lower and then the upper corner of {dim} inputs, shape 2 x {dim}, got "
            f"shape {tuple(corners.shape)}: {corners.tolist()}."
        )
    outside = int((X.lt(corners[0]) | X.gt(corners[1])).any(dim=1).sum())
    if 2 * outside > len(X):
        warnings.warn(
            f"{outside} of the {len(X)} inputs are outside of the bounds, which are those of the "
            "search space, before an input transform. Lengthscales are fitted in units of it.",
            InputDataWarning,
            stacklevel=3,
        )
    placed = _array(_placed(corners, transform))
    lower, upper = placed.min(axis=0), placed.max(axis=0)
    if not (lower < upper).all():
        raise ValueError("The input transform makes no box of the bounds: leave bounds out.")
    return Box(lower, upper)


def _check(X: Any, Y: Any, Yvar: Any) -> None:
    """Refuse anything but one table of inputs and results."""
    parts = {"Inputs": X, "Results": Y} | ({} if Yvar is None else {"Noise variances": Yvar})
    for name, given in parts.items():
        if not torch.is_tensor(given):
            raise TypeError(f"{name} are a tensor, got {type(given).__name__}: torch.as_tensor.")
    if X.dim() != 2 or Y.shape != (*X.shape[:1], 1) or not len(X):
        if X.dim() > 2 or Y.dim() > 2:
            do = "construct a model of each table, as of each fold of a cross-validation"
        elif not len(X) or X.dim() < 2 or len(Y) != len(X):
            do = "there is a row of inputs for each result, and one row at least"
        elif Y.dim() < 2:
            do = "give Y.unsqueeze(-1)"
        else:
            do = "for several outcomes use a ModelListGP of one model each, in Ax "
            do += "SurrogateSpec(..., allow_batched_models=False)"
        raise ValueError(
            "RobustConjugateGP needs one table of results, n x d inputs with n x 1 results, got "
            f"shapes {tuple(X.shape)} and {tuple(Y.shape)}: {do}."
        )
    if not X.is_floating_point():
        raise ValueError(f"Inputs must be floating-point numbers, got {X.dtype}: X.double().")
    if not torch.isfinite(X).all():
        raise ValueError("Inputs must be finite; results need not be. Drop the rows whose are not.")
    if Yvar is None:
        return
    known = Yvar[~torch.isnan(Yvar)]
    if Yvar.shape != Y.shape or not ((known > 0.0) & torch.isfinite(known)).all():
        raise ValueError(
            "Noise is a positive variance for each result, shape n x 1, or nan where it is not "
            f"known, got shape {tuple(Yvar.shape)} and values from "
            f"{float(known.min()) if len(known) else np.nan:g}."
        )


def _exact(posterior: Posterior) -> Exact | Arms:
    if isinstance(posterior, WindowPosterior):
        raise ValueError(
            f"The default approximates the posterior of {posterior.n} observations, which has no "
            "target for each row: fit RobustConjugateGP to them instead."
        )
    if isinstance(posterior, MixturePosterior):
        posterior = posterior.parts[0]
    if not isinstance(posterior, Exact | Arms):
        raise ValueError(
            "RobustConjugateGP needs the exact posterior of a Gaussian process, which has a target "
            f"and a noise for each row, got {type(posterior).__name__}."
        )
    return posterior


def _rests_on(posterior: Exact, observations: Observations) -> bool:
    targets = posterior.fitted_defence(observations, posterior.prior)
    kept = np.isfinite(targets.noise)
    values, known = targets.values[kept] - posterior.prior.mean, posterior.L @ posterior.residual
    return len(values) == len(known) and np.allclose(
        values, known, rtol=1e-6, atol=1e-6 * float(np.abs(known).max(initial=0.0))
    )


def _array(tensor: Any) -> Array:
    return np.asarray(tensor.detach().cpu().double().numpy())


def _rows(x: Array, Y: Any, Yvar: Any) -> Observations:
    noise = None if Yvar is None else _array(Yvar)[:, 0]
    return observations_of(x, _array(Y)[:, 0], noise)


def _placed(X: Any, transform: Any) -> Any:
    """Transform inputs as the model is trained on them."""
    return X if transform is None else transform.preprocess_transform(X)


def _measured(X: Any, Y: Any, Yvar: Any, transform: Any) -> tuple[Any, Any]:
    """Results and their noise in the units of a fitted outcome transform."""
    if transform is None:
        return Y, Yvar
    values, noise = transform.eval()(Y=Y, Yvar=Yvar, X=X)
    return values, noise


def _learn(transform: Any, X: Any, Y: Any, trust: Array) -> None:
    """Fit an outcome transform to the trusted rows that it can transform."""
    transform.to(Y)
    trusted = torch.as_tensor(trust >= DISTRUSTED, device=Y.device)
    if not trusted.any():
        trusted = torch.isfinite(Y[:, 0])
    for row in trusted.nonzero():  # a logarithm before a mean would make all results nan
        alone = deepcopy(transform).train()(Y=Y[row], X=X[row])[0]
        trusted[row] = bool(torch.isfinite(alone).all())
    if not trusted.any():  # no row is usable: any number does
        X, Y, trusted = X[:1], torch.ones_like(Y[:1]), torch.ones_like(trusted[:1])
    transform.train()(Y=Y[trusted], X=X[trusted])
