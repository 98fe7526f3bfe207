"""The optimizer: a model, a confidence and a policy over a domain, with its observations.

It is the only mutable object on the optimizer's side. ``tell`` only appends; ``ask`` computes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import overload

import numpy as np

from stoic.data import (
    FAILURES,
    VARIANCES,
    Array,
    Booleans,
    Choice,
    FailureKind,
    Failures,
    Integers,
    Observations,
    Recommendation,
    as_results,
)
from stoic.domains import Among, Box, Domain, Finite
from stoic.models import LeaveOneOutGP
from stoic.models.censored import Sites, given_censored
from stoic.models.constraints import ConstraintHistory, Constraints
from stoic.models.feasibility import Feasibility
from stoic.pending import Pending, WaitingError, check_count
from stoic.policies.base import Band, View
from stoic.policies.ucb import UpperConfidenceBound
from stoic.posteriors.absorbed import WindowPosterior
from stoic.posteriors.base import Integrating, Posterior
from stoic.recipes import Parts, robust

_ROOM = 64  # rows of memory at the start; doubled when it is full


class Learner:
    """Bayesian optimizer with the interface ask / tell / recommend.

    Parameters
    ----------
    domain:
        The search space, in the user's own units.
    recipe:
        The method: a value of :mod:`stoic.recipes`, such as ``rgp_ucb(budget=5.0)``, or the
        :class:`~stoic.recipes.base.Parts` of a learner. By default :func:`~stoic.recipes.robust`.
    seed:
        Seed, or generator, of the learner's own randomness (designs, starting points).

    Raises
    ------
    ValueError
        If the policy needs a finite domain and did not get one, or the recipe balances several
        learners.

    Notes
    -----
    Everything is maximised. Results may be nan or infinite: that is data. Inputs may not.
    """

    def __init__(
        self,
        domain: Domain,
        recipe: Callable[[Domain], Parts] | Parts | None = None,
        seed: int | np.random.Generator | None = None,
    ) -> None:
        recipe = recipe or robust()
        parts = recipe(domain) if callable(recipe) else recipe
        if not isinstance(parts, Parts):
            raise ValueError(
                "A learner has one model, one confidence and one policy, and this recipe has "
                f"others: build it with stoic.balancing.build(domain, recipe). Got {recipe!r}."
            )
        policy = parts.policy
        if policy.needs_finite and not domain.finite:
            raise ValueError(
                f"{type(policy).__name__} needs a finite domain, got {domain!r}: "
                "use Box(...).grid(50)."
            )
        self.domain = domain
        self.parts = parts
        self.model = parts.model
        self.confidence = parts.confidence
        self.policy = policy
        self.rng = np.random.default_rng(seed)
        self._state = policy.start(domain)
        self._pending = Pending()
        self._latest: Posterior | None = None
        self._estimate: Posterior | None = None  # a cache, valid until the next tell
        self._revised = False  # True if both are of earlier results
        self._nowhere = np.empty((0, domain.dim))
        self._none_failed = Failures(self._nowhere, ())
        self._n = 0
        self._x = np.empty((_ROOM, domain.dim))
        self._observed = np.empty(_ROOM)
        self._noise = np.empty(_ROOM)
        self._arms = np.empty(_ROOM, dtype=np.intp) if domain.finite else None
        self._censored = np.zeros(_ROOM, dtype=bool)
        self._observations: Observations | None = None  # a cache, valid until the next tell
        self._sites: Sites | None = None  # of censored observations: a cache, and a warm start
        self._failures: list[tuple[Array, FailureKind]] = []
        self._classifier: tuple[int, Feasibility] | None = None  # a cache, with n
        self._constraints = ConstraintHistory(domain, robust()(domain).model)

    def __len__(self) -> int:
        return self._n

    @property
    def observations(self) -> Observations:
        """All observations so far, as views: not to be written to."""
        observations = self._observations
        if observations is None:
            n = self._n
            arms = None if self._arms is None else self._arms[:n]
            censored = self._censored[:n] if self._censored[:n].any() else None
            observations = Observations(
                self._x[:n], self._observed[:n], self._noise[:n], arms, censored=censored
            )
            self._observations = observations
        return observations

    @property
    def modelled(self) -> Observations:
        """Observations as the model has them: pseudo-observations instead of censored ones."""
        if self.observations.censored is None:
            return self.observations
        self._posterior()
        assert self._sites is not None
        return self._sites.observations

    @overload
    def ask(
        self,
        n: None = None,
        *,
        among: object = None,
        context: Mapping[int, float] | None = None,
        pending: object | None = None,
    ) -> Choice: ...

    @overload
    def ask(
        self,
        n: int,
        *,
        among: object = None,
        context: Mapping[int, float] | None = None,
        pending: object | None = None,
    ) -> list[Choice]: ...

    def ask(
        self,
        n: int | None = None,
        *,
        among: object = None,
        context: Mapping[int, float] | None = None,
        pending: object | None = None,
    ) -> Choice | list[Choice]:
        """Suggest where to evaluate next: one choice, or a list of ``n`` to evaluate in parallel.

        Pending choices are taken into account, so two calls in a row suggest different points. A
        policy that plans in batches may return fewer than ``n``, and an empty list while it waits
        for pending results.

        Parameters
        ----------
        n:
            Number of choices; ``None`` returns a single one, not a list.
        among:
            The feasible subset of the domain for this call: row numbers or a mask of a finite
            domain, or a smaller ``Box``.
        context:
            Fixed coordinates for this call: coordinate number -> value. Only points with these
            values may be chosen; executed points may differ, as when the context turns out to be
            another.
        pending:
            Pending points that the caller keeps account of, shape (k, d). Then the learner does
            not: it neither remembers these choices nor counts its own.

        Raises
        ------
        ValueError
            If ``n`` is not positive, ``among`` is not part of the domain, or no point has the
            ``context``.
        NothingLeftError
            A ``ValueError``: if the policy's plan has nothing left to play there.
        WaitingError
            If one choice is requested and the policy waits for pending results.
        """
        count = check_count(n)
        view = self._view(self._part(among, context))
        if pending is not None:
            theirs = np.array(pending, dtype=float).reshape(-1, self.domain.dim)
            view = view._replace(find_pending=lambda: theirs, owns_pending=False)
        choices, self._state = self.policy.choose(view, self._state, count)
        if pending is None:
            self._pending.add(choices)
        if n is not None:
            return choices
        if not choices:
            raise WaitingError(
                f"{type(self.policy).__name__} waits for {len(view.pending)} results: tell them, "
                "or call forget_pending() if they will never come."
            )
        return choices[0]

    def tell(
        self,
        x: object,
        y: object = None,
        noise: object = None,
        *,
        failed: FailureKind | None = None,
        choice: Choice | Sequence[Choice] | None = None,
        constraints: Mapping[str, object] | None = None,
        censored: bool = False,
    ) -> None:
        """Add executed inputs and their results: one, or several in order.

        Parameters
        ----------
        x:
            The *executed* input, shape (d,), or several, shape (n, d). Any point of the domain,
            whatever was suggested.
        y:
            The result, or results, shape (n,). nan and infinities are data. A finite result beyond
            1e150 in size counts as that, so that its square is a number.
        noise:
            Noise *variance* of this result, if it is known: one number, or one per result.
        failed:
            Instead of a result, the kind of failure: ``"transient"``, ``"infeasible"`` or
            ``"bad"``, see :class:`~stoic.data.Failures`. Where it is not known, give nan as a
            result.
        choice:
            The choice that this answers, one per result: exactly that is no longer pending, and
            nothing changes if it was not. By default the oldest choice of the same point, or the
            oldest of all if this point was never suggested.
        constraints:
            Name of a constraint -> its value, or values, shape (n,); it holds up to 0. Each has a
            model of its own, by that of :func:`~stoic.recipes.robust`. nan: it is not known whether
            it holds. A name that is left out has no result here.
        censored:
            True if the result is at most ``y``, a finite bound: a run was stopped when it could not
            become better. See :mod:`stoic.models.censored`.

        Raises
        ------
        ValueError
            If an input is not finite or not in the domain, if the numbers of inputs and results
            or choices differ, or if a noise variance is not positive, or if there is not either a
            result or a kind of failure, or if the policy does not weigh constraints. Nothing is
            stored then.
        """
        points = np.asarray(x, dtype=float)
        if points.ndim < 2:
            points = points.reshape(1, -1)
        arms = self.domain.locate(points)
        k = len(points)
        answered = [choice] if isinstance(choice, Choice) else choice
        if answered is not None and len(answered) != k:
            raise ValueError(f"Got {k} inputs but {len(answered)} choices: give one for each.")
        if (y is None) == (failed is None):
            raise ValueError(
                "Tell a result y, or why there is none: failed='transient', 'infeasible' or 'bad'."
            )
        if constraints and not self.policy.constrained:
            raise ValueError(
                f"{type(self.policy).__name__} does not weigh constraints: take the default "
                "recipe, robust(), or tell inputs that violate one as failed='infeasible'."
            )
        outputs = ConstraintHistory.check(constraints or {}, k)
        if failed is None:
            self._remember(points, arms, y, noise, censored)
        elif failed in FAILURES:
            self._failures += [(point, failed) for point in points.copy()]
            self._classifier = None
        else:
            raise ValueError(f"failed is one of {', '.join(FAILURES)}, got {failed!r}.")
        self._constraints.tell(points, outputs)
        if self._pending:
            for row, point in enumerate(points):
                self._pending.answer(point, None if answered is None else answered[row])

    def revise(
        self, row: int, y: float, noise: float | None = None, *, censored: bool = False
    ) -> None:
        """Replace what was told of one observation, for results that are estimates themselves.

        Parameters
        ----------
        row:
            Its number, from 0.
        y, noise, censored:
            As in :meth:`tell`.

        Raises
        ------
        ValueError
            If there is no such observation, if the policy plans by what it has seen, or as in
            :meth:`tell`.
        """
        if self.plans:
            raise ValueError(
                f"{type(self.policy).__name__} plans by results, which cannot change: tell final "
                "ones."
            )
        if not 0 <= row < self._n:
            raise ValueError(f"There are {self._n} observations, and no number {row}.")
        last, self._n = self._n, row
        arms = None if self._arms is None else self._arms[row : row + 1]
        try:
            self._remember(self._x[row : row + 1], arms, y, noise, censored)
        finally:
            self._n = last
        self._revised = True

    def _remember(
        self, points: Array, arms: Integers | None, y: object, noise: object, censored: bool
    ) -> None:
        """Append results, or nothing if one of them is not valid."""
        k = len(points)
        observed = as_results(y)
        if len(observed) != k:
            raise ValueError(f"Got {k} inputs but {len(observed)} results: tell one for each.")
        if censored and not np.isfinite(observed).all():
            raise ValueError(f"The bound of a censored result is a finite number, got {y!r}.")
        if noise is not None:
            variance = np.asarray(noise, dtype=float).reshape(-1)
            if len(variance) not in (1, k):
                raise ValueError(
                    f"Got {k} results but {len(variance)} noise variances: give one for each, or "
                    "one for all."
                )
            if not np.all((variance > 0.0) & np.isfinite(variance)):
                raise ValueError(f"A noise variance is a positive number, got {noise!r}.")
        first, last = self._n, self._n + k
        if last > len(self._observed):
            self._grow(last)
        self._x[first:last] = points
        self._observed[first:last] = observed
        self._noise[first:last] = np.nan if noise is None else np.clip(variance, *VARIANCES)
        self._censored[first:last] = censored
        if self._arms is not None and arms is not None:
            self._arms[first:last] = arms
        self._n = last
        self._observations = None

    def recommend(
        self,
        width: float | None = 2.0,
        *,
        settings: object = None,
        among: object = None,
        context: Mapping[int, float] | None = None,
    ) -> Recommendation:
        """Recommend the estimated optimum, by model and not by the highest observation.

        Parameters
        ----------
        width:
            Width of the lower bound, in posterior standard deviations. ``None`` takes the
            confidence's own width, under which the bound has whatever guarantee that has; those
            widths are made for exploring and are wide.
        settings:
            Candidates instead of the executed points, shape (k, d): the suggested points, where
            something else was executed.
        among, context:
            As in :meth:`ask`: the best of a subset of the domain. Where nothing was tried in it,
            the point of the best lower bound.

        Raises
        ------
        ValueError
            If there are no observations yet, or as :meth:`ask` does.
        """
        if not self._n:
            raise ValueError(
                "Nothing was observed yet, so there is nothing to recommend: ask, tell."
            )
        band = self.band() if width is None else Band(self._reported(), width)
        part = self._part(among, context)
        # A stream of its own: a recommendation must not change the next suggestion.
        view = self._view(part)._replace(rng=np.random.default_rng(0))
        # A point whose observations are all rejected, or censored, is not recommended.
        if settings is None:
            trusted = (self.trust > 0.0) & self.observations.measured
            x = self.observations.x[trusted if trusted.any() else slice(None)]
        else:
            x = np.array(settings, dtype=float).reshape(-1, self.domain.dim)
            self.domain.locate(x)
        tried = np.unique(x, axis=0)
        if part is not self.domain:
            tried = tried[part.contains(tried)]
        if not len(tried):
            tried = view.maximise(UpperConfidenceBound(Band(self._posterior(), -band.width))).x[
                None
            ]
        reported = view._replace(constraints=self.constraints)
        best, notes = self.policy.settle(reported, self._state, band, tried)
        mean, _ = band.posterior.predict(tried)
        lower, upper = band.bounds(tried)
        peak = view.maximise(UpperConfidenceBound(Band(self._posterior(), 0.0)))
        return Recommendation(
            tried[best].copy(),
            float(mean[best]),
            float(lower[best]),
            float(upper[best]),
            peak.x.copy(),
            peak.height,
            notes,
        )

    @property
    def posterior(self) -> Posterior:
        """Posterior over f given all observations; later ones do not change it."""
        return self._posterior().copy()

    @property
    def estimate(self) -> Posterior:
        """Posterior for reports: hyperparameters integrated out, if the model does that.

        Choices are made by :attr:`posterior`, which is quicker; recommendations and their bounds
        come from here.
        """
        return self._reported().copy()

    def constraints(self) -> Constraints | None:
        """Return the probability that all constraints hold, for reports; None without any."""
        return self._constraints(integrated=True)

    @property
    def failures(self) -> Failures:
        """Reported failures, in order."""
        if not self._failures:
            return self._none_failed
        points, kinds = zip(*self._failures, strict=True)
        return Failures(np.array(points), kinds)

    @property
    def trust(self) -> Array:
        """Trust weight of each observation, shape (n,), from 0 (rejected) to 1 (inlier)."""
        return self._posterior().trust(self.modelled)

    def active(self) -> Booleans:
        """Mask of the rows of a finite domain that may still be optimal, shape (N,).

        The rows that an elimination policy keeps; for any other policy, those whose upper
        confidence bound reaches the best lower bound.

        Raises
        ------
        ValueError
            On a continuous domain.
        """
        if not isinstance(self.domain, Finite):
            raise ValueError(f"What is ruled out of {self.domain!r} has no list: use its grid(50).")
        return self.policy.active(self._view(self.domain), self._state)

    def band(self) -> Band:
        """Confidence band of f, with the confidence's own width, valid until the next tell.

        Given all observations; by a phased policy given its last complete epoch.
        """
        return self.policy.band(self._view(self.domain), self._state)

    @property
    def plans(self) -> bool:
        """True if the policy plans its plays in advance, the first points included."""
        return self.policy.plans

    @property
    def pending(self) -> list[Choice]:
        """Choices without a result yet, oldest first."""
        return list(self._pending)

    def forget_pending(self, *choices: Choice) -> None:
        """Forget these pending choices, or all: no result will come."""
        for choice in choices:
            self._pending.answer(choice.x, choice)
        if not choices:
            self._pending.clear()

    def _view(self, among: Domain | Among) -> View:
        observations = self.modelled
        if isinstance(self.model, LeaveOneOutGP) and self.model.bounded(observations):
            posterior = self._posterior()
            assert isinstance(posterior, WindowPosterior)
            observations = observations.only(posterior.rows)
        return View(
            self.domain,
            among,
            observations,
            self.rng,
            self._given,
            self._pending_points,
            self.failures,
            self._feasibility,
            constraints=self._constraints,
        )

    def _pending_points(self) -> Array:
        if not self._pending:
            return self._nowhere
        return np.array([choice.x for choice in self._pending])

    def _given(self, observations: Observations | None = None, t: int | None = None) -> Band:
        if observations is None:
            posterior, n = self._posterior(), self._n
            if isinstance(posterior, WindowPosterior):
                posterior = posterior.near
        else:
            posterior, n = self.model(self.domain, observations, None), len(observations)
        return Band(posterior, self.confidence(posterior, t or n + 1))

    def _feasibility(self) -> Feasibility | None:
        """Classifier of inputs that give results; a nan result says nothing about that."""
        if not self._failures or not len(self.failures.of("infeasible")):
            return None
        if self._classifier is None or self._classifier[0] != self._n:
            observations = self.observations
            feasible = observations.x[np.isfinite(observations.observed)]
            infeasible = self.failures.of("infeasible")
            learned = Feasibility.learned(self.domain, feasible, infeasible)
            self._classifier = (self._n, learned)
        return self._classifier[1]

    def _posterior(self) -> Posterior:
        """Posterior given all observations; updated, where other windows are computed afresh."""
        posterior = self._latest
        if posterior is None or posterior.n != self._n or self._revised:
            observations = self.observations
            if self._sites is not None or self._revised or observations.censored is not None:
                # Rows that came before have changed: only a model that revises can go on from here.
                posterior = posterior if isinstance(self.model, LeaveOneOutGP) else None
            if observations.censored is None:
                posterior, self._sites = self.model(self.domain, observations, posterior), None
            else:
                posterior, self._sites = given_censored(
                    self.model, self.domain, observations, posterior, self._sites
                )
            self._latest, self._estimate, self._revised = posterior, None, False
        return posterior

    def _reported(self) -> Posterior:
        """Posterior with hyperparameters integrated out, if the model does that."""
        posterior = self._posterior()
        if not isinstance(self.model, Integrating):
            return posterior
        if self._estimate is None or self._estimate.n != self._n:
            self._estimate = self.model.integrated(self.domain, self.modelled, posterior)
        return self._estimate

    def _part(self, among: object, context: Mapping[int, float] | None) -> Domain | Among:
        part = self.domain if among is None else self._among(among)
        return part.having(context) if context else part

    def _among(self, among: object) -> Domain | Among:
        if isinstance(self.domain, Finite):
            return Among(self.domain, np.asarray(among))
        if isinstance(among, Box) and among.dim == self.domain.dim:
            self.domain.locate(np.stack([among.lower, among.upper]))
            return among.on_lattices_of(self.domain)
        raise ValueError(
            f"On {self.domain!r} choose among the points of a smaller Box with {self.domain.dim} "
            f"coordinates, got {among!r}."
        )

    def _grow(self, rows: int) -> None:
        room = 1 << (rows - 1).bit_length()

        def larger(old: Array) -> Array:
            new = np.empty((room, *old.shape[1:]), dtype=old.dtype)
            new[: self._n] = old[: self._n]
            return new

        self._x, self._observed, self._noise = map(larger, (self._x, self._observed, self._noise))
        self._censored = np.append(self._censored, np.zeros(room - len(self._censored), dtype=bool))
        if self._arms is not None:
            arms: Integers = np.empty(room, dtype=np.intp)
            arms[: self._n] = self._arms[: self._n]
            self._arms = arms
