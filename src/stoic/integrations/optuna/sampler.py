"""Optuna sampler that is robust to outliers, corruptions and failures."""

from __future__ import annotations

import logging
import re
import threading
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack

import numpy as np
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from stoic.data import Choice
from stoic.integrations.optuna.confirming import check_confirming, make_confirming
from stoic.integrations.optuna.coordinates import Coordinate
from stoic.integrations.optuna.earlier import ABSENT, EarlierStudy
from stoic.integrations.optuna.encoding import searched
from stoic.integrations.optuna.executed import refused
from stoic.integrations.optuna.internals import (
    fixed_by,
    fixed_params,
    record_constraints,
    storage_of,
    trial_id,
    whole_study,
)
from stoic.integrations.optuna.objective import (
    RobustArguments,
    RobustObjective,
    check_arguments,
    record_aim,
    stored_aim,
)
from stoic.integrations.optuna.objectives import check_objectives, needs_one
from stoic.integrations.optuna.possible import PossibleValues, record_possible
from stoic.integrations.optuna.synced_learner import (
    Identity,
    SyncedLearner,
    identity,
    moved,
)
from stoic.integrations.optuna.turns import Turns, announce
from stoic.integrations.optuna.unmodelled import (
    Parameters,
    unmodelled,
    unusable,
    unusable_records,
)
from stoic.integrations.optuna.warm_start import WarmStart
from stoic.integrations.recipe import (
    DEFAULT,
    Recipe,
    load,
    recipe_to_look_with,
    record_recipe,
    stored_recipe,
)
from stoic.policies.satisficing import PATIENCE
from stoic.printable import printable
from stoic.refusal import RefusalError, check_at_least, nearest

log = logging.getLogger(__name__)

_CHOOSING = threading.Lock()  # of this process; a lock in a sampler could not be pickled
_READING = threading.Lock()


class StoicSampler(BaseSampler):
    """Optuna sampler that is robust to outliers, corruptions and failures.

    Trials are chosen by a :class:`~stoic.Learner` over the parameters that trials had so far; one
    that turns up for the first time is sampled independently. Which parameters a setting has is
    learned from the choices and integers of complete trials, a decision tree; one that it lacks
    adds nothing to the distance from another one that lacks it, too. Where inputs move, the
    parameters are those that all trials share. Results are standardised robustly, so that an
    outlier of any size, too good or too bad, changes its own trust and little else. Pending trials
    of any worker narrow the confidence band where they are, as if they had been observed, and
    workers choose in turn, so that several of them on one storage spread out.

    A failed trial whose user attribute ``stoic:failed`` is ``"transient"``, ``"infeasible"`` or
    ``"bad"`` failed in that way, see :class:`stoic.data.Failures`. Failed trials without a kind are
    results that are not a number: the point is queried once more, and avoided after that.

    A pruned trial counts as the final value that its intermediate values and the finished trials
    predict, or as a bound on it; so does a trial with the user attribute ``stoic:censored``, at
    least as bad as which its value would be (:mod:`stoic.integrations.optuna.partial`). None of
    them is queried again for that. A failed one may not have reached its end with any result: its
    values do not count, and one whose last value is not finite is ``"bad"``.

    Each constraint has a model behind the same defence, so that one outlier in it is no violation.
    Improvement is weighted by the probability that all hold; while none of the settings is
    feasible, that probability is maximised. Only the default method does that: with another recipe
    or an aim, a trial that violates a constraint counts as infeasible, whatever its value is.

    In a study with two or three objectives each is an output with a model behind the same defence,
    so that an outlier in one of them does not take the others with it, and trials are chosen by
    their expected hypervolume improvement over the front of trusted means
    (:class:`~stoic.objectives.MultiLearner`). ``stoic:noise`` is then a list.

    A parameter whose range changes is modelled over all its ranges together, and chosen in that of
    the latest complete trial; one whose range depends on a choice in the range of each branch. One
    whose step or choices change is not modelled, and sampled
    independently. A log message says so once.

    A trial whose user attribute ``stoic:executed`` is a dict of parameters was run with those
    values instead of the suggested ones; its result is an observation there. A value outside of a
    parameter's range counts at the nearest end of it, and an impossible one as suggested: a log
    message says so. The user attribute ``stoic:noise`` is the noise variance of a trial's value.

    Parameters of an enqueued trial, and of a ``PartialFixedSampler`` around this one, are given:
    the sampler chooses the others for them.

    A recipe may make a grid of the search space and search that:
    ``lambda box: Learner(box.grid(20), recipes.rgp_pe(prior=prior, budget=5.0))``. A trial that was
    run at no point of it is no observation of the model. It stays in the study, and a log message
    says once that it is left out: it was enqueued elsewhere, or begun before a trial was complete,
    when Optuna does not know the search space yet (pass ``search_space``). A given parameter with a
    value that is not on the grid is taken for the nearest one that is, and the trial is left out,
    too.

    Phased recipes plan all plays from the first trial on, so there are no startup trials. A new
    sampler, and every worker, continues the same epoch: the first results of each point count, in
    the order in which trials ended, as many as the plan has of it. A worker does not wait while all
    plays of an epoch are pending, since they may never end: it runs the one that has been pending
    for longest once more. Of both results the first counts, and the other one does not, unless the
    next epoch plays that point. If the epoch has nothing left to play for parameters that are
    given, the trial is run where the upper confidence bound is best, and does not count either.

    Parameters
    ----------
    seed:
        Seed. In one process with one worker, the same seed and the same results give the same
        trials. A study that is resumed elsewhere fits its hyperparameters from a cold start up to
        256 results, and begins with the model that is stored with it beyond.
    n_startup_trials:
        Number of trials, failed ones included, from a scrambled Sobol sequence before the model
        decides. Workers that share the seed share the sequence. A point is left out where the
        failures so far, without a kind or infeasible, make another one likelier than a result.
    recipe:
        Method other than :func:`~stoic.recipes.robust`: a value such as
        ``recipes.rgp_ucb(budget=5.0)``, or its text, ``"rgp_ucb(budget=5)"``. Or a function from a
        domain, which is a :class:`~stoic.Box`, to a learner, or its ``"FILE.py:FUNCTION"``. What
        has a text is recorded with the study, where :func:`explain` and ``stoic show`` find it. By
        default the recorded one, and without any the default method.
    search_space:
        Parameters to model, if known beforehand; by default those that trials had. With it the
        first trial is chosen like all others.
    independent_sampler:
        For parameters that are not modelled, or not yet; by default random, by the seed and the
        number of the trial.
    constraints_func:
        From a trial to the values of its constraints, which are satisfied up to 0, as in the
        samplers of Optuna. From Optuna 5 on ``trial.set_constraint`` does the same.
    possible:
        Lowest and highest value that the objective can have, as in ``(0, 1)`` for an accuracy. A
        value outside counts as nan: the trial stays as it is, and a log message says so. Recorded
        with the study.
    confirm:
        Measure the settings that may be the best again, up to so many times in the whole study, as
        :func:`~stoic.integrations.optuna.confirm` does; for a study whose search is over. While it
        has fewer than ``n_startup_trials`` values, and once the answer is settled, it is searched.
    warm_start:
        Earlier studies that inform this one, on other data or with other ranges; parameters are the
        same if their names are. Each is trusted as far as it agrees with the new results
        (:class:`~stoic.sources.Informed`). What its own model had learned is recorded with the
        study, so that other workers and a resumed run use the same.
    **robust_to_moves:
        ``policy``, ``threshold``, ``margin``, ``tolerance``, ``radius``, ``p`` and ``probe``: for
        values that stay good when inputs are moved, see
        :class:`~stoic.integrations.optuna.RobustObjective`. The recipe keeps its model, and these
        choose the next query. They are recorded with the study, where :func:`explain` and
        ``stoic show`` find them, and a sampler without any, until the study's user attribute
        ``stoic:aim`` is None.

    Raises
    ------
    ValueError
        In a study with more than three objectives, or with several and an aim, a recipe or a range
        of possible values; if an aim or a recipe is invalid, or, once the search space is known,
        does not fit it.
    """

    def __init__(
        self,
        *,
        seed: int | None = None,
        n_startup_trials: int = 10,
        recipe: Recipe | str | None = None,
        search_space: Mapping[str, BaseDistribution] | None = None,
        independent_sampler: BaseSampler | None = None,
        constraints_func: Callable[[FrozenTrial], Sequence[float]] | None = None,
        possible: Sequence[float] | None = None,
        confirm: int = 0,
        warm_start: Sequence[Study | EarlierStudy] = (),
        **robust_to_moves: Unpack[RobustArguments],
    ) -> None:
        check_at_least(0, n_startup_trials=n_startup_trials, confirm=confirm)
        if constraints_func is not None and not callable(constraints_func):
            raise RefusalError(
                f"constraints_func is a function of a trial, got {constraints_func!r}."
            )
        if independent_sampler is not None and not isinstance(independent_sampler, BaseSampler):
            raise RefusalError(
                f"independent_sampler is a sampler of Optuna, got {independent_sampler!r}."
            )
        if search_space is not None and not (
            isinstance(search_space, Mapping)
            and all(isinstance(each, BaseDistribution) for each in search_space.values())
        ):
            raise RefusalError(
                "search_space has a distribution of Optuna for each name, as in "
                f'{{"lr": FloatDistribution(0.0, 1.0)}}, got {search_space!r}.'
            )
        if seed is not None and (not isinstance(seed, int | np.integer) or seed < 0):
            raise RefusalError(f"A seed is a whole number from 0 on, or None, got {seed!r}.")
        # A number also for None: each trial of the design makes the same sequence anew
        self._seed = int(np.random.SeedSequence(seed).generate_state(1)[0])
        self._recipe = None if recipe is None else load(recipe)
        self._space = search_space
        self._n_startup_trials = n_startup_trials
        self._independent = independent_sampler
        self._constraints = constraints_func
        self._confirm = confirm
        self._synced: SyncedLearner | None = None
        self._turns = Turns()
        self._aim = RobustObjective.of(check_arguments(robust_to_moves, type(self)))
        if confirm and self._aim is not None:
            raise RefusalError(
                "confirm compares settings as they were run, and these options are for parameters "
                "that move: leave out one or the other."
            )
        self._possible = PossibleValues.of(possible)
        self._warm = WarmStart(warm_start, self._recipe or DEFAULT, self._aim)
        self._methods: dict[Identity, tuple[Recipe, RobustObjective | None]] = {}
        self._recorded: set[Identity] = set()  # studies with the aim and the recipe recorded
        self._said: set[tuple[Identity, int | str]] = set()  # trials left out, sentences
        self._out_of_reach: dict[Identity, int] = {}  # study -> trials in a row
        self._parameters: tuple[Identity, Parameters] | None = None  # of the last study

    def reseed_rng(self) -> None:
        self._seed = int(np.random.SeedSequence().generate_state(1)[0])
        if self._independent is not None:
            self._independent.reseed_rng()

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        return searched(self._modelled(whole_study(study)))

    def _modelled(self, study: Study) -> Mapping[str, BaseDistribution]:
        """Return the parameters that are modelled."""
        if self._space:
            return self._space
        trials = study.get_trials(deepcopy=False)
        moving = self._recipe_and_aim(study, trials)[1] is not None
        return self._parameters_of(study, trials).modelled(shared=moving)

    def _recipe_and_aim(
        self, study: Study, trials: Sequence[FrozenTrial]
    ) -> tuple[Recipe, RobustObjective | None]:
        """Return what this sampler was given, or else what is recorded with the study."""
        key = identity(study, trials)
        with _READING:
            if key not in self._methods:
                self._methods[key] = self._method_of(study)
            return self._methods[key]

    def _method_of(self, study: Study) -> tuple[Recipe, RobustObjective | None]:
        recipe, aim = self._recipe or DEFAULT, self._aim
        if len(study.directions) > 1:  # what is recorded has no meaning for several objectives
            return recipe, aim
        if self._recipe is None:
            recipe, instead = recipe_to_look_with(study)
            if instead is not None:
                log.warning("%s", printable(instead))
            elif recipe is not DEFAULT:
                log.info("Trials are chosen by the study's recipe, %r.", recipe)
        if aim is None and not self._confirm and (aim := stored_aim(study)) is not None:
            log.info("Trials are chosen for the study's tolerances: %s.", aim.record())
        for sentence in unusable_records(study):
            log.warning("%s", printable(sentence))
        return recipe, aim

    def _parameters_of(self, study: Study, trials: Sequence[FrozenTrial]) -> Parameters:
        key = identity(study, trials)
        with _READING:  # else two threads read one trial
            if self._parameters is None or self._parameters[0] != key:
                self._parameters = key, Parameters(len(study.directions))
            parameters = self._parameters[1]
            parameters.follow(trials)
            parameters.note_running(trials)
        return parameters

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        study = whole_study(study)  # a model of all trials, whatever bracket one is in
        check_objectives(study)
        if not search_space:
            self._log_unmodelled(study, study.get_trials(deepcopy=False), None)
            # Nothing is left to choose, so that nobody has to wait for this trial
            announce(study, trial, {}, {})
            return {}
        space, given = self._with_given(study, trial, search_space)
        designed, prepared = self._is_designed(study, space, trial), False
        if not designed:  # a point of the design needs no others
            # Outside of the lock: the trial that is waited for may be of another thread
            prepared = self._turns.wait(study, trial, lambda: self._prepare(study, space, trial))
        with _CHOOSING:  # else two threads report the same results to one learner
            # Read after the wait: by now the trials before have announced their parameters
            trials = study.get_trials(deepcopy=False)
            synced = self._synced_with(study, space, trials)
            self._log_unmodelled(study, trials, synced)
            fixed = {
                name: value
                for name, value in (given | fixed_params(trial)).items()
                if synced.encoding.admits(name, value)
            }
            if designed:
                params = synced.start(trials, trial.number, self._seed, fixed)
            else:
                # By seed and number: the stream does not depend on which worker chooses, or on what
                # that worker has chosen before
                rng = np.random.default_rng([self._seed, trial.number])
                narrowed = self._parameters_of(study, trials).narrowed(space)
                choice = synced.ask(trials, trial.number, fixed, rng, prepared, narrowed)
                self._log_left_out(synced)
                self._log_out_of_reach(synced, choice)
                params = synced.encoding.decode(choice.x) | fixed  # not all are on a grid
            announce(study, trial, params, space)
            synced.keeper.record(study)
            # Optuna raises for a parameter outside of the space it gave: outer samplers fix those
            return {name: params[name] for name in search_space if name in params}

    def _prepare(
        self, study: Study, space: dict[str, BaseDistribution], trial: FrozenTrial
    ) -> None:
        """Fit the model to what has ended, while others choose."""
        with _CHOOSING:
            trials = study.get_trials(deepcopy=False)
            synced = self._synced_with(study, space, trials)
            synced.prepare(trials)

    def _is_designed(
        self, study: Study, space: dict[str, BaseDistribution], trial: FrozenTrial
    ) -> bool:
        """Return True if a trial is one of the initial design; with sources, every other one.

        A trial that is not stays so: trials that have finished only become more.
        """
        trials = study.get_trials(deepcopy=False)
        if sum(t.state.is_finished() for t in trials) >= self._n_startup_trials:
            return False
        with _CHOOSING:
            synced = self._synced_with(study, space, trials)
        return not synced.learner.plans and (not synced.sources or trial.number % 2 == 1)

    def _with_given(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> tuple[dict[str, BaseDistribution], dict[str, Any]]:
        """Return the search space with what outer samplers have fixed, and the fixed values."""
        given = fixed_by(study.sampler)
        if not given:
            return search_space, {}
        # PartialFixedSampler has taken them out; the model has coordinates of them all the same
        whole = self.infer_relative_search_space(study, trial)
        return {
            name: d for name, d in whole.items() if name in search_space or name in given
        }, given

    def _synced_with(
        self, study: Study, space: dict[str, BaseDistribution], trials: Sequence[FrozenTrial]
    ) -> SyncedLearner:
        recipe, aim = self._recipe_and_aim(study, trials)
        probe = False
        if aim is not None:
            probe = not moved(trials) if aim.probe is None else aim.probe
        if self._synced is None or not self._synced.serves(study, trials, space, probe):
            given = trials, self._possible, self._warm(study)
            try:
                self._synced = SyncedLearner(study, space, recipe, aim, probe, *given)
            except RefusalError as refusal:
                own = self._recipe is not None or self._aim is not None
                if own or (recipe is DEFAULT and aim is None):
                    raise
                log.warning("What is recorded with the study is not used: %s", printable(refusal))
                self._methods[identity(study, trials)] = DEFAULT, None
                self._synced = SyncedLearner(study, space, DEFAULT, None, False, *given)
            if self._synced.study not in self._recorded:
                if self._aim is not None:
                    record_aim(study, self._aim)
                another = self._recipe is not DEFAULT or stored_recipe(study) is not None
                if self._recipe is not None and another:
                    record_recipe(study, self._recipe)
                if self._possible is not None:
                    record_possible(study, self._possible)
                self._recorded.add(self._synced.study)  # a later record has priority
        return self._synced

    def _log_left_out(self, synced: SyncedLearner) -> None:
        """Log once for a trial that it is left out."""
        for number, where in synced.left_out.items():
            if (synced.study, number) not in self._said:
                self._said.add((synced.study, number))
                log.warning(
                    "Trial %d is left out of the model: it was run at %s, which is no point of the "
                    "recipe's grid.",
                    number,
                    printable(where),
                )

    def _log_unmodelled(
        self, study: Study, trials: Sequence[FrozenTrial], synced: SyncedLearner | None
    ) -> None:
        """Log each sentence once for a study, whatever the numbers of trials at its end are."""
        space = self._modelled(study)
        left_out = unmodelled(
            trials,
            space,
            synced is None or synced.constrained,
            partial=synced is None or synced.takes_partial,
            known=None if synced is None else synced.inside,
            given=self._parameters_of(study, trials).modelled() if self._space else None,
            objectives=len(study.directions),
        )
        sentences = [(logging.WARNING, sentence) for sentence in left_out]
        for value in sorted(synced.penalties.values) if synced is not None else ():
            repeated = f"Results of {value:g}, repeated and far worse than nearly all others,"
            sentences.append((logging.WARNING, f"{repeated} count as infeasible settings."))
        sources = self._warm(study) if space else ()
        model = searched(space)

        def beginning() -> bool:
            ended = sum(t.state.is_finished() for t in trials)
            return not self._space and ended < self._n_startup_trials

        sentences += [
            (logging.WARNING if source.unshared(model) else logging.INFO, source.sentence(model))
            for source in sources
            # A parameter that only some trials have may not have been seen yet, if none is declared
            if not (source.shared(model) and source.unshared(model) and beginning())
        ]
        recipe, aim = self._recipe_and_aim(study, trials)
        if sources and (aim is not None or recipe != DEFAULT):
            named = ", ".join(source.name for source in sources)
            unused = f"Only the default method uses earlier studies, so this one does not: {named}."
            sentences.append((logging.WARNING, unused))
        if names := self._parameters_of(study, trials).conditional(model):
            sentences.append(
                (logging.INFO, f"Modelled where a trial has them: {', '.join(names)}.")
            )
        for level, sentence in sentences:
            said = re.sub(r"[\d,. ]+(and \d+ more\.)?$", "", sentence)
            if (key := (identity(study, trials), said)) not in self._said:
                self._said.add(key)
                log.log(level, "%s", printable(sentence))

    def _log_out_of_reach(self, synced: SyncedLearner, choice: Choice) -> None:
        """Log once for a study that its threshold has been out of reach for a while.

        In the user's units and direction.
        """
        row = self._out_of_reach.get(synced.study, 0)
        if row >= PATIENCE:
            return  # it was said
        row = 0 if choice.notes.get("reachable", True) else row + 1
        self._out_of_reach[synced.study] = row
        if row < PATIENCE:
            return
        threshold = choice.notes["threshold"]
        assert isinstance(threshold, float)
        log.warning(
            "The threshold %g is out of reach: no setting is expected to have a value %s %g. "
            "Trials look for the best value until one is. Change the threshold, or use 'adaptive' "
            "and a margin.",
            synced.sign * threshold,
            "below" if synced.sign < 0.0 else "above",
            synced.best_possible(choice.x),
        )

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        check_objectives(study)
        known = self._warm.first(study, trial, param_name, param_distribution)
        if known is not ABSENT:
            return known
        sampler = self._independent
        if sampler is None:  # seeded for each trial: workers that share the seed differ
            # crc32, since hash() of a text differs from process to process
            state = [self._seed, trial.number, zlib.crc32(param_name.encode())]
            sampler = RandomSampler(int(np.random.SeedSequence(state).generate_state(1)[0]))
            if isinstance(param_distribution, FloatDistribution) and not param_distribution.log:
                # Its width may be no float, and then Optuna cannot draw from it.
                u = sampler.sample_independent(
                    study, trial, param_name, FloatDistribution(0.0, 1.0)
                )
                return Coordinate(param_distribution, 0).quantile(u)
        return sampler.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        whole = whole_study(study)
        try:  # here and not in the objective, whose exceptions may be caught
            self._check(whole)
        except RefusalError:
            storage_of(whole).set_trial_state_values(trial_id(trial), TrialState.FAIL)
            raise
        self._turns.begin(study, trial)
        if self._confirm:
            make_confirming(whole, trial, self._confirm, self._n_startup_trials)
        if self._independent is not None:
            self._independent.before_trial(study, trial)

    def _check(self, study: Study) -> None:
        """Refuse a study that this sampler cannot search."""
        check_objectives(study)
        another = None if self._recipe is DEFAULT else self._recipe
        needs_one(study, recipe=another, tolerance=self._aim, possible=self._possible)
        self._warm(study)
        if self._confirm:
            check_confirming(study)

    def after_trial(
        self,
        study: Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        self._turns.end(study, trial)
        if self._independent is not None:
            self._independent.after_trial(study, trial, state, values)
        # Optuna calls this before it stores the state: a finished trial takes no attributes
        if self._constraints is not None:
            record_constraints(study, trial, state, self._constraints)
        for reason in (*refused(trial), *unusable(trial, len(study.directions), state)):
            log.warning("Trial %d: %s.", trial.number, printable(reason))
        known, done = self._possible, state == TrialState.COMPLETE
        if done and (unmet := fixed_params(trial).keys() - trial.params.keys()):
            trials = study.get_trials(deepcopy=False)
            there = {name for t in trials for name in t.distributions}
            ended = [t for t in trials[: trial.number] if t.state == TrialState.COMPLETE]
            said = {name for t in ended for name in fixed_params(t)}
            # A branch may not have been met yet: what is hardly like another is no slip
            for name in sorted(unmet - there - said):
                if (near := nearest(name, sorted(there), 0.75)) is not None:
                    log.warning(
                        "Trial %d was enqueued with %s, a parameter that no trial has: did you "
                        "mean %s?", trial.number, printable(name), printable(near),
                    )  # fmt: skip
        if known is not None and done and values and known.excludes(values[0]):
            where = f"Trial {trial.number}: {values[0]:g} is outside of {known}"
            log.warning("%s, the possible values, so it counts as nan.", where)
