"""Learner of several objectives, each an output with a model and a defence of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from stoic.data import (
    DISTRUSTED,
    Array,
    Choice,
    FailureKind,
    Observations,
    are_variances,
    numbers,
)
from stoic.domains import Domain
from stoic.learner import Learner, generator, parts_of
from stoic.models import LeaveOneOutGP
from stoic.models.constraints import Constraints
from stoic.optimizer import Optimizer
from stoic.pareto import distinct, non_dominated
from stoic.pending import check_count, listed
from stoic.policies.base import View, choices_at
from stoic.policies.hypervolume import HypervolumeImprovement, best_trust
from stoic.policies.initial import Initial
from stoic.recipes.base import Parts, on_their_own_scale

# Share of an output's results that an explanation may reject. In a clean search of DTLZ2, where 17
# of 40 results of one output were 0 up to rounding, one without a limit rejected the other 23.
_MOST_REJECTED = 1.0 / 3.0
MOST = 3  # objectives: boxes beyond a front, and trials to find one, grow with their number


class Front(NamedTuple):
    """Recommended front: no other of the inputs compared is expected to be better in all outputs.

    Attributes
    ----------
    x:
        Inputs, (m, d), by the first output from its best.
    mean, std:
        Posterior mean and standard deviation of each output there, (m, k) both.
    """

    x: Array
    mean: Array
    std: Array


class MultiLearner(Optimizer):
    """Bayesian optimizer of two or three objectives, with the interface ask / tell / front.

    Each objective is an output with a :class:`~stoic.Learner` of its own: its model, defence and
    trust. So an outlier in one output is rejected there, and the other outputs of that evaluation
    count. Choices are made together, by
    :class:`~stoic.policies.hypervolume.HypervolumeImprovement`.

    Parameters
    ----------
    domain:
        The search space.
    n_objectives:
        2 or 3.
    recipe:
        Its model is that of each output, its initial design that of all; by default those of
        :class:`~stoic.Learner`.
    seed:
        Seed, or generator, of the learner's own randomness.

    Raises
    ------
    ValueError
        For another number of objectives.

    Notes
    -----
    Everything is maximised. Results may be nan or infinite: that is data. Inputs may not.
    """

    plans = False
    _who = "MultiLearner"

    def __init__(
        self,
        domain: Domain,
        n_objectives: int,
        recipe: Callable[[Domain], Parts] | Parts | None = None,
        seed: int | np.random.Generator | None = None,
    ) -> None:
        if not 2 <= n_objectives <= MOST:
            raise ValueError(
                f"Two or three objectives are needed, got {n_objectives}: optimize the most "
                "important ones, and give the others as constraints."
            )
        parts = on_their_own_scale(parts_of(domain, recipe))
        if isinstance(parts.model, LeaveOneOutGP):
            parts = replace(parts, model=replace(parts.model, most=_MOST_REJECTED))
        self.rng = generator(seed)
        self.policy = HypervolumeImprovement()
        # With ten points first, in 80 searches of five problems with 36 results, .67 of the front
        # of DTLZ2 is missing, else .87, and .80 of that of two summits in a plain, else .92; of the
        # others .01 more is
        self._initial = parts.policy if isinstance(parts.policy, Initial) else None
        self._left = np.empty((0, domain.dim))
        self.outputs = tuple(Learner(domain, parts, self.rng) for _ in range(n_objectives))
        self.history = self.outputs[0].history  # all others are at the same inputs

    @property
    def trust(self) -> Array:
        """Trust of each output of each observation, (n, k), from 0 (rejected) to 1 (inlier)."""
        return np.stack([output.trust for output in self.outputs], axis=1)

    def constraints(self) -> Constraints | None:
        """Return the probability that all constraints hold, for reports; None without any."""
        return self.outputs[0].constraints()

    def rules(self) -> Constraints | None:
        """Return the probability that those hold which excluded an input; None without any."""
        return self.outputs[0].rules()

    def constraint_trust(self) -> dict[str, Array]:
        """Trust of each value of each constraint, in their order; nan of no finite one."""
        return self.outputs[0].constraint_trust()

    def ask_batch(
        self,
        n: int,
        *,
        among: object = None,
        context: Mapping[int, float] | None = None,
        pending: object | None = None,
    ) -> list[Choice]:
        """Suggest ``n`` points to evaluate in parallel, all objectives at once."""
        check_count(n)
        with self.outputs[0].surrogate.threads():  # the others have as many results
            views = [
                output.view(among, context, pending)._replace(rng=self.rng)
                for output in self.outputs
            ]
            choices = self._designed(views[0], n) or self._chosen(views, n)
            for output in self.outputs:
                output.surrogate.chosen()
        if pending is None:
            for output in self.outputs:
                output.history.pending.add(choices)
        return choices

    def _designed(self, view: View, n: int) -> list[Choice]:
        """Return the next choices of the initial design, none if there is none left."""
        if self._initial is None:
            return []
        points, self._left = self._initial.designed(view, self._left, n)
        return choices_at(view.domain, points)

    def _chosen(self, views: list[View], n: int) -> list[Choice]:
        seen, finite = self.observations, np.isfinite(self.results).all(axis=1)
        complete = Observations(seen.x, np.where(finite, 0.0, np.nan), seen.noise, seen.arms)
        trust = [each.surrogate.posterior().trust(each.modelled) for each in self.outputs]
        return self.policy.choose(views, complete, np.stack(trust, axis=1), n)

    def tell(
        self,
        x: object,
        y: object = None,
        noise: object = None,
        *,
        failed: FailureKind | None = None,
        choice: Choice | Sequence[Choice | None] | None = None,
        constraints: Mapping[str, object] | None = None,
    ) -> None:
        """Add executed inputs and their results.

        Parameters
        ----------
        x:
            The executed input, shape (d,), or several, (n, d).
        y:
            The result of each objective, shape (k,), or (n, k). nan in one of them is no result of
            that objective; the others count.
        noise:
            Noise variances, shaped as ``y``; nan for an objective where they are not known.
        failed, choice, constraints:
            As of :meth:`stoic.Learner.tell`.

        Raises
        ------
        ValueError
            As by that, or if the number of results is not that of the objectives. Nothing is stored
            then.
        """
        points = numbers(x, "An input")
        count = 1 if points.ndim < 2 else len(points)
        results: list[Array | None] = [None] * len(self.outputs)
        noises = results
        if y is not None:
            results = list(self._columns(y, count, "results"))
            if noise is not None:
                noises = [
                    None if np.isnan(each).all() else each
                    for each in self._columns(noise, count, "noise variances")
                ]
                # Before the first one: nothing may be stored of what another one refuses
                known = [each for each in noises if each is not None]
                if not all(map(are_variances, known)):
                    raise ValueError(
                        "The noise variances of an objective are positive numbers, or nan where "
                        f"they are not known, got {noise!r}."
                    )
        first, *others = zip(self.outputs, results, noises, strict=True)
        output, result, variance = first
        output.tell(x, result, variance, failed=failed, choice=choice, constraints=constraints)
        # Constraints once, for all: see ``constraints``
        for output, result, variance in others:
            if y is None and failed is None:  # a rule excludes it
                output.history.answer(output.history.check(x, failed="transient", choice=choice))
            else:
                output.tell(x, result, variance, failed=failed, choice=choice)

    def _columns(self, values: object, count: int, what: str) -> Array:
        """Return the values of each objective, (k, count)."""
        rows = np.array(numbers(values, "A result"))
        k = len(self.outputs)
        if rows.shape != (count, k) and not (count == 1 and rows.shape == (k,)):
            raise ValueError(
                f"Got {what} of shape {rows.shape} at {count} input{'s' * (count != 1)}: tell {k} "
                "for each, one for each objective."
            )
        return rows.reshape(count, k).T

    def forget_pending(self, choices: Choice | Iterable[Choice] | None = None) -> None:
        """Forget pending choices, as :meth:`~stoic.optimizer.Optimizer.forget_pending`."""
        these = None if choices is None else listed(choices)
        for output in self.outputs:
            output.forget_pending(these)

    def predict(self, x: Array) -> tuple[Array, Array]:
        """Posterior mean and standard deviation of each output at ``x`` (m, d), (m, k) both.

        Hyperparameters are integrated out, if the model does that.
        """
        predicted = [output.estimate.predict(x) for output in self.outputs]
        mean, std = (np.stack(each, axis=1) for each in zip(*predicted, strict=True))
        return mean, std

    @property
    def results(self) -> Array:
        """Results of each output, (n, k)."""
        return np.stack([output.observations.observed for output in self.outputs], axis=1)

    def front(self, settings: object = None) -> Front:
        """Estimate the front: the inputs whose posterior means no others' dominate.

        Two inputs are equal in an output if their trusted results are, and their means differ by
        less than a tenth of the deviation of this difference: then it is what a smooth model leaves
        of nothing, as of a price that one category decides.

        Parameters
        ----------
        settings:
            Inputs to compare, (m, d); by default those with a trusted result of every output, at
            which the constraints hold as likely as anywhere, or with a probability of 0.9.
        """
        x = settings
        if x is None:
            x = self.observations.x
            x = x[(best_trust(x, self.trust) >= DISTRUSTED).all(axis=1)]
        x = np.unique(self._points(x), axis=0)
        constraints = self.constraints() if settings is None and len(x) else None
        if constraints is not None:
            x = x[constraints.safest(x)]
        if not len(x):
            return Front(x, *(np.empty((0, len(self.outputs))) for _ in range(2)))
        mean, std = self.predict(x)
        rows = np.flatnonzero(non_dominated(mean))
        rows = rows[distinct(mean[rows], std[rows], self._agreed(x[rows]))]
        rows = rows[np.argsort(-mean[rows, 0], kind="stable")]
        return Front(x[rows], mean[rows], std[rows])

    def _agreed(self, x: Array) -> Array:
        """Return the result of each output at ``x``, (m, k), where trusted ones agree, else nan."""
        together = np.concatenate([x, self.observations.x])
        known, place = np.unique(together, axis=0, return_inverse=True)
        here, of_results = place[: len(x)], place[len(x) :]
        results = self.results
        trusted = np.isfinite(results) & (self.trust >= DISTRUSTED)
        low, high = (np.full((len(known), results.shape[1]), end) for end in (np.inf, -np.inf))
        np.minimum.at(low, of_results, np.where(trusted, results, np.inf))
        np.maximum.at(high, of_results, np.where(trusted, results, -np.inf))
        return np.asarray(np.where(low == high, low, np.nan)[here])
