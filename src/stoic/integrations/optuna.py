"""stoic as an Optuna sampler, and what it thinks of a study.

The pure core knows arrays; everything about studies, trials and storage is here. Optuna minimises
by default, the core maximises: the one sign flip is in :class:`_Campaign`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.search_space import IntersectionSearchSpace, intersection_search_space
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from stoic import recipes
from stoic.data import FAILURES, Array, FailureKind
from stoic.defences.plateau import Plateau
from stoic.domains import Domain
from stoic.integrations.spaces import Encoding
from stoic.learner import Learner
from stoic.policies.ucb import PLACE
from stoic.posteriors.base import Stance
from stoic.posteriors.cavity import given_the_others
from stoic.posteriors.scales import median_and_spread_in_space

Recipe = Callable[[Domain], Learner]

NOISE = "stoic:noise"  # user attribute: noise variance told with a trial's value
FAILED = "stoic:failed"  # user attribute: why a trial has no value, one of stoic.data.FAILURES

# So often a place may fail for no fault of its own. What takes its worker with it every time
# looks transient each time, and would be asked for ever.
_TRANSIENT = 2


def robust(domain: Domain) -> Learner:
    """What the sampler uses unless told otherwise: A2-RCGP-UCB, tuned for objectives at large.

    People's objectives have cliffs, and regions where every setting does equally badly. So the
    scale is broad, the anchor comes to believe what agrees, and a young study distrusts less: a
    little of the robustness to lies of moderate size for not taking a good setting for a lie. A
    place that crashes or is not believed is asked once more, and believed if it says the same.
    """
    return recipes.a2_rcgp_ucb(
        domain,
        anchor_shape=1.0,
        scale=median_and_spread_in_space,
        small_sample=True,
        place=PLACE,
        retries=1,
    )


class StoicSampler(BaseSampler):
    """An Optuna sampler that survives results that lie.

    Trials are chosen by a :class:`~stoic.Learner` over the parameters that all trials share
    (Optuna's intersection search space); others are sampled independently. Results are
    standardised robustly, so that an outlier of any size, too good or too bad, changes its own
    trust and little else. Running trials of any worker narrow the band where they are, as if they
    had been observed, so that several workers on one storage spread out.

    A failed trial whose user attribute ``stoic:failed`` is ``"transient"``, ``"infeasible"`` or
    ``"bad"`` failed in that way, see :class:`stoic.data.Failures`; a third transient failure at one
    place counts as one without a kind. Failed trials without a kind, and pruned ones, are results
    that are not a number: the point is asked once more, and avoided after that.

    Parameters
    ----------
    seed:
        Seed. In one process with one worker, the same seed and the same results give the same
        trials. A study that is resumed elsewhere fits its hyperparameters from a cold start.
    n_startup_trials:
        That many trials, failed ones included, come from a scrambled Sobol sequence before the
        model decides. Workers that share the seed share the sequence.
    recipe:
        From a domain to a learner, for another method than A2-RCGP-UCB: for example
        ``lambda domain: recipes.gp_ucb(domain)``.
    independent_sampler:
        For parameters outside of the intersection search space; random by default.

    Raises
    ------
    ValueError
        In a study with several objectives.
    """

    def __init__(
        self,
        *,
        seed: int | None = None,
        n_startup_trials: int = 10,
        recipe: Recipe = robust,
        independent_sampler: BaseSampler | None = None,
    ) -> None:
        if n_startup_trials < 0:
            raise ValueError(f"n_startup_trials is a count, got {n_startup_trials}.")
        self._seed = int(np.random.SeedSequence(seed).generate_state(1)[0])
        self._recipe = recipe
        self._n_startup_trials = n_startup_trials
        self._independent = independent_sampler or RandomSampler(seed=self._seed)
        self._intersection = IntersectionSearchSpace(include_pruned=False)
        self._campaign: _Campaign | None = None

    def reseed_rng(self) -> None:
        self._seed = int(np.random.SeedSequence().generate_state(1)[0])
        self._independent.reseed_rng()

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        space = self._intersection.calculate(study)
        return {name: d for name, d in sorted(space.items()) if not d.single()}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        self._raise_error_if_multi_objective(study)
        if not search_space:
            return {}
        trials = study._get_trials(deepcopy=False, use_cache=False)
        finished = sum(t.state.is_finished() for t in trials)
        if self._campaign is None or not self._campaign.serves(study, search_space):
            self._campaign = _Campaign(study, search_space, self._recipe)
        campaign = self._campaign
        if finished < self._n_startup_trials:
            return campaign.encoding.sobol(trial.number, self._seed)
        fixed = {
            name: value
            for name, value in trial.system_attrs.get("fixed_params", {}).items()
            if campaign.encoding.admits(name, value)
        }
        rng = np.random.default_rng([self._seed, trial.number])
        return campaign.ask(trials, trial.number, fixed, rng)

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        self._raise_error_if_multi_objective(study)
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        self._independent.before_trial(study, trial)

    def after_trial(
        self,
        study: Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        self._independent.after_trial(study, trial, state, values)


class _Campaign:
    """A learner that is kept in step with the finished trials of one study."""

    def __init__(
        self, study: Study, search_space: Mapping[str, BaseDistribution], recipe: Recipe
    ) -> None:
        self.study = (id(study._storage), study._study_id)
        self.encoding = Encoding(search_space)
        self.sign = -1.0 if study.direction == StudyDirection.MINIMIZE else 1.0
        self.recipe = recipe
        self.learner = recipe(self.encoding.box)
        self.told: list[int] = []  # number of the trial behind each observation
        self.failed: list[int] = []  # and behind each failure

    def serves(self, study: Study, search_space: Mapping[str, BaseDistribution]) -> bool:
        return self.study == (id(study._storage), study._study_id) and self.encoding.space == dict(
            search_space
        )

    def _point(self, trial: FrozenTrial) -> Array | None:
        """Where a trial is, shape (d,); None if it lacks a parameter or lies outside."""
        if not self.encoding.contains(trial.params):
            return None
        return np.clip(self.encoding.encode(trial.params), 0.0, 1.0)

    def follow(self, trials: Sequence[FrozenTrial]) -> None:
        """Tell the learner what has finished since the last time, in the order of trials."""
        finished = [
            (trial, x)
            for trial in trials
            if trial.state.is_finished() and (x := self._point(trial)) is not None
        ]
        known = {*self.told, *self.failed}
        if not known <= {trial.number for trial, _ in finished}:  # a study under the same number
            self.learner, self.told, self.failed = self.recipe(self.encoding.box), [], []
            known = set()
        for trial, x in finished:
            if trial.number not in known:
                self._tell(trial, x)

    def _tell(self, trial: FrozenTrial, x: Array) -> None:
        kind = failure_kind(trial)
        if kind == "transient":
            before = np.abs(self.learner.failures.of("transient") - x).max(axis=1) <= PLACE
            kind = kind if np.count_nonzero(before) < _TRANSIENT else None
        if kind is not None:
            self.learner.tell(x, failed=kind)
            self.failed.append(trial.number)
            return
        value = trial.value if trial.state == TrialState.COMPLETE else None
        self.learner.tell(x, np.nan if value is None else self.sign * value, _noise(trial))
        self.told.append(trial.number)

    def ask(
        self,
        trials: Sequence[FrozenTrial],
        number: int,
        fixed: Mapping[str, Any],
        rng: np.random.Generator,
    ) -> dict[str, Any]:
        """Parameters for a trial, given all others."""
        self.follow(trials)
        running = [
            x
            for trial in trials
            if trial.state == TrialState.RUNNING
            and trial.number != number
            and (x := self._point(trial)) is not None
        ]
        self.learner.rng = rng
        among = self.encoding.part_with(fixed) if fixed else None
        choice = self.learner.ask(among=among, pending=running)
        return self.encoding.decode(choice.x)


@dataclass(frozen=True)
class Row:
    """What is thought of one complete trial, in the user's units.

    Attributes
    ----------
    number:
        Of the trial.
    value:
        What was told.
    expected, sd:
        Posterior mean and standard deviation of the objective there, given all other trials.
    trust:
        From 0 to 1; below 0.5 the trial is called distrusted.
    noise_sd:
        Standard deviation of the noise of this value: as it was told, else as it is estimated.
    centre, half_width:
        Of the plateau, within which a value is believed entirely: whoever centred it may know more,
        or less, than all other trials. None if the method has no plateau.
    """

    number: int
    value: float
    expected: float
    sd: float
    trust: float
    noise_sd: float = 0.0
    centre: float | None = None
    half_width: float | None = None

    @property
    def residual(self) -> float:
        """How far the value is from what was expected, in standard deviations of such a value."""
        if self.value == self.expected:
            return 0.0
        spread = math.hypot(self.sd, self.noise_sd)
        apart = self.value - self.expected
        return apart / spread if spread else math.copysign(math.inf, apart)


def _unknown(settings: Sequence[Mapping[str, Any]]) -> tuple[Array, Array]:
    """Where nothing is learned from one trial about another."""
    return np.full(len(settings), np.nan), np.full(len(settings), np.inf)


@dataclass(frozen=True)
class Explanation:
    """What a study has come to, in the user's units and direction.

    Attributes
    ----------
    observed_best:
        The trial with the best value told; it may be a fluke.
    recommended:
        The trial whose pessimistic confidence bound is best.
    recommended_mean, recommended_std:
        Posterior mean and standard deviation of the objective there.
    model_optimum:
        The parameters, tried or not, where the posterior mean is best.
    model_optimum_mean:
        The posterior mean there.
    rows:
        One for each complete trial, in the order of trials.
    predict:
        From a list of k settings, each with all parameters of ``model_optimum``, to the posterior
        mean and standard deviation of the objective there, both (k,).
    """

    observed_best: FrozenTrial | None
    recommended: FrozenTrial | None
    recommended_mean: float
    recommended_std: float
    model_optimum: dict[str, Any]
    model_optimum_mean: float
    rows: tuple[Row, ...]
    predict: Callable[[Sequence[Mapping[str, Any]]], tuple[Array, Array]] = _unknown


def explain(study: Study, *, recipe: Recipe = robust) -> Explanation:
    """What is believed about a study: the estimated best, and whom to trust.

    Uses the parameters that all complete trials share. Where there are none (or no complete trial),
    nothing can be learned from one trial about another: then every value is taken at its word.

    Raises
    ------
    ValueError
        For a study with several objectives.
    """
    if len(study.directions) > 1:
        raise ValueError(
            f"A study with one objective is needed, got {len(study.directions)} objectives."
        )
    trials = study.get_trials(deepcopy=False)
    complete = [t for t in trials if t.state == TrialState.COMPLETE and t.value is not None]
    sign = -1.0 if study.direction == StudyDirection.MINIMIZE else 1.0
    finite = [t for t in complete if np.isfinite(_value(t))]
    best = max(finite, key=lambda t: sign * _value(t), default=None)
    space = intersection_search_space(complete)
    space = {name: d for name, d in sorted(space.items()) if not d.single()}
    if not complete or not space:
        rows = tuple(Row(t.number, _value(t), _value(t), 0.0, 1.0) for t in complete)
        value = _value(best) if best is not None else float("nan")
        return Explanation(best, best, value, 0.0, dict(best.params) if best else {}, value, rows)

    campaign = _Campaign(study, space, recipe)
    campaign.follow(trials)
    learner, number = campaign.learner, {n: i for i, n in enumerate(campaign.told)}
    recommendation = learner.recommend()
    posterior = learner.posterior
    trust = learner.trust
    expected, sd = given_the_others(posterior, learner.observations)
    noise_sd = np.sqrt(learner.observations.own_noise(posterior.prior.noise))
    plateau = _plateau(posterior.stance, len(learner))
    rows = tuple(
        Row(
            t.number,
            _value(t),
            sign * float(expected[i]),
            float(sd[i]),
            float(trust[i]),
            float(noise_sd[i]),
            None if plateau is None else sign * float(plateau[0][i]),
            None if plateau is None else float(plateau[1][i]),
        )
        for t in complete
        if (i := number.get(t.number)) is not None
    )
    at = [t for t in complete if t.number in number]
    points = np.array([learner.observations.x[number[t.number]] for t in at])
    here = int(np.argmin(np.abs(points - recommendation.x).max(axis=1)))

    def predict(settings: Sequence[Mapping[str, Any]]) -> tuple[Array, Array]:
        mean, std = posterior.predict(np.array([campaign.encoding.encode(s) for s in settings]))
        return sign * mean, std

    mean, std = posterior.predict(points[[here]])
    # Of several trials at this very point, the most trusted one stands for it.
    same = [i for i in range(len(at)) if np.array_equal(points[i], points[here])]
    chosen = max(same, key=lambda i: (trust[number[at[i].number]], sign * _value(at[i])))
    return Explanation(
        best,
        at[chosen],
        sign * float(mean[0]),
        float(std[0]),
        campaign.encoding.decode(recommendation.model_x),
        sign * recommendation.model_mean,
        rows,
        predict,
    )


def failure_kind(trial: FrozenTrial) -> FailureKind | None:
    """Why a failed trial has no value; None if that is not known, or it did not fail."""
    kind = trial.user_attrs.get(FAILED)
    if trial.state != TrialState.FAIL:
        return None
    return next((known for known in FAILURES if kind == known), None)


def _plateau(stance: Stance, rows: int) -> tuple[Array, Array] | None:
    """Centre and half-width for each observation, both (n,), if the stance has a plateau."""
    plateau = getattr(stance, "plateau", None)
    if not isinstance(plateau, Plateau):
        return None
    return np.broadcast_to(plateau.centre, rows), np.broadcast_to(plateau.half_width, rows)


def _noise(trial: FrozenTrial) -> float | None:
    """The noise variance told with a trial; None if there is none, or none that could be one."""
    noise = trial.user_attrs.get(NOISE)
    if isinstance(noise, int | float) and noise > 0.0 and np.isfinite(noise):
        return float(noise)
    return None


def _value(trial: FrozenTrial) -> float:
    assert trial.value is not None  # only complete trials are asked
    return trial.value
