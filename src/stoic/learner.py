"""The optimizer: a model, a confidence and a policy over a domain, with its observations.

It is the only mutable object on the optimizer's side. ``tell`` only appends; ``ask`` computes.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from numbers import Real

import numpy as np

from stoic.confidence.base import Band, check_width
from stoic.data import (
    DISTRUSTED,
    Array,
    Booleans,
    Choice,
    FailureKind,
    Observations,
    Recommendation,
)
from stoic.defences import Defence
from stoic.domains import Among, Box, Domain, Finite
from stoic.history import History
from stoic.models.constraints import ConstraintHistory, Constraints
from stoic.models.rescaling import Rescaling
from stoic.optimizer import Optimizer, ShownRecommendation
from stoic.pending import check_count
from stoic.policies.base import Notes, Policy, View
from stoic.policies.initial import Initial
from stoic.policies.ucb import UpperConfidenceBound
from stoic.policies.untried import candidates, goes_before, spread_of_results
from stoic.policies.verified import VerifiedImprovement
from stoic.posteriors.base import Posterior
from stoic.posteriors.fitting import Fitting, extreme
from stoic.posteriors.prior import Prior
from stoic.recipes import Parts, Recipe, robust
from stoic.recipes.base import on_their_own_scale
from stoic.recipes.parts import check_prior
from stoic.surrogate import Surrogate

# Results before the default method's model decides, as in StoicSampler. Of forty searches of a
# summit in a plain of three dimensions with noise, 44 results each, none stays in the plain, and
# three do without a design, two of them in batches of four.
_DESIGN = 10


def has_scale(model: object, observations: Observations) -> bool:
    """Return True if deviations have a scale: that of the model, or of results that differ."""
    # A model without a fitting, or with given hyperparameters, has a scale of its own
    if not isinstance(getattr(model, "fitting", None), Fitting):
        return True
    values = observations.observed[np.isfinite(observations.observed) & observations.measured]
    return len(np.unique(values)) > 1


def generator(seed: int | np.random.Generator | None) -> np.random.Generator:
    """Return the generator of a seed, or a generator as it is, so that all share one stream."""
    try:
        if isinstance(seed, np.random.RandomState):  # which spawns no others
            raise TypeError(seed)
        return np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"A seed is a whole number from 0 on, a generator of NumPy or None, got {seed!r}."
        ) from error


def parts_of(domain: Domain, recipe: Callable[[Domain], Parts] | Parts | None) -> Parts:
    """Build the parts of one learner; by default the default method behind a design."""
    if recipe is None:
        size = min(_DESIGN, len(domain.points)) if isinstance(domain, Finite) else _DESIGN
        recipe = robust(policy=Initial(VerifiedImprovement(), size))
    if not callable(recipe) and not isinstance(recipe, Parts):
        raise TypeError(f"A recipe is a value of stoic.recipes, as gp_ucb(), got {recipe!r}.")
    parts = recipe(domain) if callable(recipe) else recipe
    if not isinstance(parts, Parts):
        raise ValueError(
            "A learner has one model, one confidence and one policy, and this recipe has "
            f"others: build it with stoic.balancing.build(domain, recipe). Got {recipe!r}."
        )
    model = parts.model
    if not callable(model) or isinstance(model, type | Recipe):
        raise TypeError(
            f"A model is one of stoic.models, such as GaussianProcess(prior), got {model!r}."
        )
    if isinstance(model, Defence):
        raise TypeError(
            f"{model!r} is a defence, which is part of a model: GaussianProcess(prior, defence)."
        )
    if not isinstance(parts.policy, Policy):
        raise TypeError(f"A policy is one of stoic.policies, such as UCB(), got {parts.policy!r}.")
    check_width(parts.confidence)
    return parts


class Learner(ShownRecommendation, Optimizer):
    """Bayesian optimizer with the interface ask / tell / recommend.

    Parameters
    ----------
    domain:
        The search space, in the user's own units.
    recipe:
        The method: a value of :mod:`stoic.recipes`, such as ``rgp_ucb(budget=5.0)``, or the
        :class:`~stoic.recipes.base.Parts` of a learner. By default
        :func:`~stoic.recipes.robust`, after ten points that cover the domain.
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
        if not isinstance(domain, Domain):
            raise TypeError(
                "A domain is a Box(lower, upper), or a Finite(points) whose rows are the choices: "
                f"got {domain!r}."
            )
        parts = parts_of(domain, recipe)
        parts = parts if parts.policy.ordinal else on_their_own_scale(parts)
        if isinstance(prior := getattr(parts.model, "prior", None), Prior):
            check_prior(domain, prior)
        policy = parts.policy
        if policy.needs_finite and not domain.finite:
            raise ValueError(
                f"{type(policy).__name__} needs a finite domain, got {domain!r}: "
                "use Box(...).grid(50)."
            )
        self.parts = parts
        self.model = parts.model
        self.confidence = parts.confidence
        self.policy, self._who = policy, type(policy).__name__
        self.rng = generator(seed)
        self.history = History(domain)
        self.surrogate = Surrogate(
            self.history, parts.model, parts.confidence, robust()(domain).model
        )
        self._state = policy.start(domain)

    def ask_batch(
        self,
        n: int,
        *,
        among: object = None,
        context: Mapping[int, float] | None = None,
        pending: object | None = None,
    ) -> list[Choice]:
        """Suggest ``n`` points to evaluate in parallel, see :meth:`Optimizer.ask_batch`."""
        check_count(n)
        with self.surrogate.threads():
            view = self.view(among, context, pending)
            choices, state = self.policy.choose(view, self._state, n)
        self._check_chosen(view, choices)
        self._state = state
        self.surrogate.chosen()
        self.history.asked += len(choices)
        if pending is None:
            self.history.pending.add(choices)
        return choices

    def _check_chosen(self, view: View, choices: Sequence[Choice]) -> None:
        """Refuse what a policy may not choose."""
        part = view.among
        if isinstance(part, Among):  # by rows: rounds of a finite domain take microseconds
            inside = all(choice.arm in part.arms for choice in choices)
        elif self.domain.finite or not choices:
            return
        else:
            x = np.array([choice.x for choice in choices])
            try:
                self.domain.locate(x)
            except ValueError as error:
                raise ValueError(f"{self._who} chose outside of the domain. {error}") from None
            inside = part is self.domain or bool(part.contains(x).all())
        if not inside:
            chosen = [choice.x.tolist() for choice in choices]
            raise ValueError(
                f"{self._who} chose {chosen}, outside of the part of the domain that among= or "
                "context= leaves: a policy chooses in view.among."
            )

    def view(
        self,
        among: object = None,
        context: Mapping[int, float] | None = None,
        pending: object | None = None,
    ) -> View:
        """Input of the policy for a suggestion; arguments as of :meth:`ask_batch`."""
        view = self._view(self._part(among, context))
        if pending is None:
            return view
        return view._replace(pending=self._points(pending), owns_pending=False)

    def tell(
        self,
        x: object,
        y: object = None,
        noise: object = None,
        *,
        failed: FailureKind | None = None,
        choice: Choice | Sequence[Choice | None] | None = None,
        constraints: Mapping[str, object] | None = None,
        censored: bool | Sequence[bool] | Booleans = False,
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
            Noise *variance* of this result, if it is known: one number, or one per result, nan
            where it is not.
        failed:
            Instead of a result, the kind of failure: ``"transient"``, ``"infeasible"`` or
            ``"bad"``, see :class:`~stoic.data.Failures`. Where it is not known, give nan as a
            result.
        choice:
            The choice that this answers, one per result: exactly that is no longer pending, and
            nothing changes if it was not; None in a list for a result that answers none. By default
            the oldest choice of the same point, or the nearest one if this point is not pending.
        constraints:
            Name of a constraint -> its value, or values, shape (n,); it holds up to 0. Each has a
            model of its own, by that of :func:`~stoic.recipes.robust`. nan: it is not known whether
            it holds. A name that is left out has no result here. They may be all there is, without
            a result or a failure, where one is violated and so nothing was run.
        censored:
            True if the result is at most ``y``, a finite bound: a run was stopped when it could not
            become better; for all, or one per result. See :mod:`stoic.models.censored`.

        Raises
        ------
        ValueError
            If an input is not finite or not in the domain, if the numbers of inputs and results
            or choices differ, or if a noise variance is not positive, or if there is not either a
            result or a kind of failure or a violated constraint, or if the policy does not weigh
            constraints. Nothing is stored then.
        """
        excluded = y is None and failed is None and bool(constraints)
        kind: FailureKind | None = "transient" if excluded else failed
        evaluations = self.history.check(x, y, noise, kind, choice, censored)
        given = {} if constraints is None else constraints
        outputs = ConstraintHistory.check(given, len(evaluations.x))
        if excluded and not np.any([values > 0.0 for values in outputs.values()], axis=0).all():
            raise ValueError(
                "Constraints alone say why nothing was run, and here they hold: tell a result y, "
                "or failed='transient', 'infeasible' or 'bad'."
            )
        if outputs and not self.policy.constrained:
            raise ValueError(
                f"{type(self.policy).__name__} does not weigh constraints: take the default "
                "recipe, robust(), or tell inputs that violate one as failed='infeasible'."
            )
        # All is checked before anything is stored
        if not excluded:
            self.history.add(evaluations)
        if outputs:
            for said in self.surrogate.outputs.misspelt(outputs):
                warnings.warn(said, UserWarning, stacklevel=2)
            self.surrogate.outputs.tell(evaluations.x, outputs, excluded)
        if self.history.pending or choice is not None:
            self.history.answer(evaluations)

    def revise(
        self, row: int, y: float, noise: float | None = None, *, censored: bool = False
    ) -> None:
        """Replace the result of one observation, for results that are estimates themselves.

        Parameters
        ----------
        row:
            Its row in ``observations``, from 0; failures have none.
        y, noise, censored:
            As in :meth:`tell`.

        Raises
        ------
        ValueError
            If there is no such observation, if the policy plans by what it has seen, or as in
            :meth:`tell`.
        """
        if self.plans:
            raise ValueError(f"{self._who} plans by results, which cannot change: tell final ones.")
        whole = isinstance(row, int | np.integer) and not isinstance(row, bool)
        if not (whole and 0 <= row < len(self)):
            raise ValueError(f"There are {len(self)} observations, and no number {row!r}.")
        if y is None:
            raise ValueError("A revised result is a number, and nan where there is none: got None.")
        point = self.observations.x[row]
        self.history.revise(row, self.history.check(point, y, noise, censored=censored))

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
            something else was executed. Of none, the point of the best lower bound, tried or not.
        among, context:
            As in :meth:`ask`: the best of a subset of the domain. That is the point of the best
            lower bound where no trusted result is, or where this bound is clearly above the mean at
            the best one that was tried: in a new context one bad point alone is no answer.

        Raises
        ------
        ValueError
            If there are no observations yet, if the width is below 0 or not finite, or as
            :meth:`ask` does.
        """
        self._check_recommendable()
        if not (width is None or (isinstance(width, Real) and 0.0 <= width < math.inf)):
            raise ValueError(f"The width of a bound is a number >= 0, got {width!r}.")
        # Who gives settings, as explain does, has its own place for sentences
        for said in extreme(self.observations.observed) if settings is None else ():
            warnings.warn(said, UserWarning, stacklevel=2)
        with self.surrogate.threads():
            band = self.band() if width is None else Band(self.surrogate.integrated(), width)
            part = self._part(among, context)
            # A stream of its own: a recommendation must not change the next suggestion.
            view = self._view(part)._replace(rng=np.random.default_rng(0))
            posterior = self.surrogate.posterior()
            tried = np.unique(
                self._eligible(part) if settings is None else self._points(settings), axis=0
            )
            if part is not self.domain:
                tried = tried[part.contains(tried)]

            def best_of(points: Array) -> tuple[Array, Notes]:
                best, notes = self.policy.recommend(reported, self._state, band, points)
                return points[[best]], notes

            reported = view._replace(reported=True)
            scaled = has_scale(self.model, self.observations)
            # Of thousands, each predicted by dozens of draws, one is needed
            here, notes = best_of(tried if len(tried) else candidates(view, band))
            if len(tried) and part is not self.domain and settings is None and scaled:
                other, _ = best_of(candidates(view, band))
                spread = spread_of_results(band, self.modelled, self.trust)
                if goes_before(other, here, band, spread, reported.constraints()):
                    here, notes = best_of(np.concatenate([here, other]))
            mean, _ = band.posterior.predict(here)
            lower, upper = band.bounds(here)
            if band.width > 0.0 and not scaled:
                lower, upper = np.array([-math.inf]), np.array([math.inf])
            peak = view.maximise(UpperConfidenceBound(Band(posterior, 0.0)))  # the mean
            # The height of the peak may be weighted by probabilities of a result
            height, _ = posterior.predict(peak.x[None])
            values = self.scale.inverse(np.concatenate([mean, lower, upper, height]))
            expected, low, high, highest = values.tolist()
            return Recommendation(
                here[0].copy(), expected, low, high, peak.x.copy(), highest, notes
            )

    def _eligible(self, part: Domain | Among) -> Array:
        """Return the inputs that may be recommended, (k, d), on the lattices of a box.

        One whose observations are all rejected, or censored, is not. Where no other is left all
        are, but in a part of the domain none is.
        """
        # Beyond a window the bound is another model's, which may trust it
        whole = part is self.domain
        least = 0.0 if whole and self.surrogate.exact is None else DISTRUSTED
        trust, x = self.trust, self.observations.x
        trusted = (trust >= least) & (trust > 0.0) & self.observations.measured
        x = x if whole and not trusted.any() else x[trusted]
        domain = self.domain
        if not (isinstance(domain, Box) and domain.lattices):
            return x
        return np.where(domain.apart(x).any(axis=1, keepdims=True), x, domain.snap(x))

    @property
    def posterior(self) -> Posterior:
        """Posterior over f given all observations, in units of :attr:`modelled`.

        Later ones do not change it.
        """
        return self.surrogate.posterior().copy()

    @property
    def estimate(self) -> Posterior:
        """Posterior for reports: hyperparameters integrated out, if the model does that.

        It is in units of :attr:`modelled`; those of the results are those of :meth:`predict`.
        Choices are made by :attr:`posterior`, which is quicker; recommendations and their bounds
        come from here. Beyond a window, in a cube about the best it may be that of the nearest
        observations alone, and jump at the faces (:mod:`stoic.models.near_best`).
        """
        return self.surrogate.integrated().copy()

    def predict(self, x: object) -> tuple[Array, Array]:
        """Mean and standard deviation of f at inputs (m, d), both (m,), in units of the results.

        They are those of :attr:`estimate`.
        """
        return self.scale.restored(*self.estimate.predict(self._points(x)))

    @property
    def scale(self) -> Rescaling:
        """Scale of :attr:`modelled`, from units of the results and back."""
        return self.surrogate.scale

    def constraints(self) -> Constraints | None:
        return self.surrogate.constraints(integrated=True)

    def rules(self) -> Constraints | None:
        """Return the probability that those hold which excluded an input; None without any."""
        with self.surrogate.threads():
            return self.surrogate.outputs.rules()

    def constraint_trust(self) -> dict[str, Array]:
        """Trust of each value of each constraint, in their order; nan of no finite one."""
        return self.surrogate.outputs.trust()

    @property
    def trust(self) -> Array:
        """Trust weight of each observation, shape (n,), from 0 (rejected) to 1 (inlier).

        Beyond a window that of :attr:`estimate`, which is slower than ``posterior.trust``.
        """
        return self.surrogate.trust()

    @property
    def modelled(self) -> Observations:
        """Observations as the model has them.

        Poor results are compressed by the default method (:mod:`stoic.models.rescaling`), and
        pseudo-observations stand for censored ones.
        """
        return self.surrogate.modelled()

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

        Given all observations, in units of :attr:`modelled`; by a phased policy given its last
        complete epoch.
        """
        return self.policy.band(self._view(self.domain), self._state)

    @property
    def plans(self) -> bool:
        """True if the policy plans its plays in advance, the first points included."""
        return self.policy.plans

    def _view(self, among: Domain | Among) -> View:
        return View(
            self.domain,
            among,
            self.surrogate.window(),
            self.rng,
            self.surrogate,
            self.history.pending_points(),
            self.history.failures,
            asked=self.history.asked,
        )

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
