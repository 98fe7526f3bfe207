"""Surrogate: what the models say given a history, computed on demand and kept until it grows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np

from stoic.confidence.base import Band, Confidence
from stoic.data import Array, Observations
from stoic.history import History
from stoic.models.censored import Sites, given_censored
from stoic.models.checkpoint import Checkpoints, Resumable, resumed
from stoic.models.constraints import ConstraintHistory, Constraints
from stoic.models.feasibility import Feasibility
from stoic.models.rescaling import UNCHANGED, Rescaling, Scaling, first_of
from stoic.posteriors.absorbed import WindowPosterior
from stoic.posteriors.base import Integrating, Model, Posterior, Windowed
from stoic.posteriors.fitting import Fitting
from stoic.posteriors.refined import Refined
from stoic.threads import enough_threads


class Surrogate:
    """Models of the objective, of feasibility and of constraints, conditioned on a history.

    Parameters
    ----------
    history:
        The observations and failures.
    model, confidence:
        Those of the objective.
    constraint:
        Model of each constraint.

    Attributes
    ----------
    outputs:
        Observed values of constraints.
    numbers:
        Number of each observation in the order that the scale is chosen by, for workers that have
        them in other orders; None if they are in order.
    """

    def __init__(
        self, history: History, model: Model, confidence: Confidence, constraint: Model
    ) -> None:
        self.history, self.model, self.confidence = history, model, confidence
        self.outputs = ConstraintHistory(history.domain, constraint)
        self._windowed = model if isinstance(model, Windowed) else None
        self._posterior: Posterior | None = None  # caches, each with the history it is for
        # Where hyperparameters are fitted the posterior before is a hint for the next fit. That of
        # the last choice: else a report between two choices would change the second one.
        self._hint: Posterior | None = None
        self._hinted = isinstance(getattr(model, "fitting", None), Fitting)
        self.numbers: Sequence[int] | None = None
        self._scaling = model if isinstance(model, Scaling) else None
        self._first: tuple[tuple[bytes, ...], Rescaling] | None = None
        self._scaled: tuple[tuple[int, int], Rescaling, Observations] | None = None
        self._sites: Sites | None = None  # of censored results
        self._revisions = 0
        self._integrated: Posterior | None = None
        self._feasibility: tuple[tuple[int, int, int], Feasibility] | None = None

    def posterior(self) -> Posterior:
        """Posterior given all observations; updated, where other windows are computed afresh."""
        posterior, history = self._posterior, self.history
        # A revised result replaces another: the number of rows does not tell
        revised = history.revisions != self._revisions
        if posterior is None or posterior.n != len(history) or revised:
            with self.threads():
                posterior = self._conditioned(posterior, revised)
            # After a revision an integrated posterior would have the right number of rows, too
            self._posterior, self._integrated = posterior, None
            self._revisions = history.revisions
        return posterior

    def _conditioned(self, posterior: Posterior | None, revised: bool) -> Posterior:
        """Condition on all observations, going on from the posterior before if that can be."""
        domain, observations = self.history.domain, self._on_scale()[1]
        posterior = self._hint or posterior
        if self._sites is not None or revised or observations.censored is not None:
            # Rows that came before have changed: only a model that revises can go on from here.
            posterior = posterior if self._windowed is not None else None
        if observations.censored is None:
            posterior, self._sites = self.model(domain, observations, posterior), None
        else:
            posterior, self._sites = given_censored(
                self.model, domain, observations, posterior, self._sites
            )
        return posterior

    def threads(self) -> AbstractContextManager[None]:
        """Let the linear algebra have as many threads as the models are worth, for a block."""
        if self.history.domain.finite and not self._hinted:
            return nullcontext()  # a round takes less time than setting them
        n = len(self.history)
        return enough_threads(n if self._windowed is None else min(n, self._windowed.exact))

    def chosen(self) -> None:
        """Take note that a choice was made by this posterior: it is the hint for the next fit."""
        if self._hinted:
            self._hint = self._posterior

    @property
    def scale(self) -> Rescaling:
        """Scale that the results are modelled on."""
        return self._on_scale()[0]

    def _on_scale(self) -> tuple[Rescaling, Observations]:
        """Return the scale, and the observations on it."""
        history = self.history
        if self._scaling is None:
            return UNCHANGED, history.observations
        key = len(history), history.revisions
        if self._scaled is None or self._scaled[0] != key:
            scale = self._scale_of(history.observations)
            self._scaled = key, scale, scale.of(history.observations)
        return self._scaled[1:]

    def _scale_of(self, observations: Observations) -> Rescaling:
        """Return the scale for observations, which few first ones decide."""
        if self._scaling is None:
            return UNCHANGED
        order = None
        if self.numbers is not None:
            order = np.argsort(self.numbers[: len(observations)], kind="stable")
        first = first_of(observations, order)
        key = first.x.tobytes(), first.observed.tobytes(), first.noise.tobytes()
        if self._first is None or self._first[0] != key:
            self._first = key, self._scaling.rescaling(self.history.domain, first)
        return self._first[1]

    def modelled(self) -> Observations:
        """Observations as the model has them.

        Poor ones are compressed, if the model wants that, and pseudo-observations stand for
        censored ones.
        """
        if self.history.observations.censored is None:
            return self._on_scale()[1]
        self.posterior()  # which updates the sites
        assert self._sites is not None
        return self._sites.observations

    def integrated(self) -> Posterior:
        """Posterior for reports: hyperparameters integrated out, and refined beyond a window."""
        posterior, history = self.posterior(), self.history
        if not isinstance(self.model, Integrating):
            return posterior
        if self._integrated is None or self._integrated.n != len(history):
            with self.threads():
                observations = self.modelled()
                found = self.model.integrated(history.domain, observations, posterior)
                if self._windowed is not None and self.exact is not None:
                    constraints = self.constraints()
                    permitted = None if constraints is None else constraints.hold(observations.x)
                    found = self._windowed.refined(
                        history.domain, observations, posterior, found, permitted
                    )
            self._integrated = found
        return self._integrated

    def trust(self) -> Array:
        """Trust of each observation, (n,), for reports: beyond a window refined near the best."""
        found = None if self.exact is None else self.integrated()
        if isinstance(found, Refined):
            return found.trusted.copy()
        return self.posterior().trust(self.modelled())

    @property
    def chosen_at(self) -> int:
        """Number of observations when the window of the objective was chosen; 0 without one."""
        window = self._posterior if isinstance(self._posterior, WindowPosterior) else None
        return 0 if window is None else window.chosen_at

    def checkpoints(self) -> Checkpoints | None:
        """Return what the models have settled on lately; None if that cannot be stored."""
        if self._posterior is None or not isinstance(self.model, Resumable):
            return None
        objective = self.model.checkpoint(self._posterior)
        if objective is None:
            return None
        sites = {} if self._sites is None else self._sites.record()
        return Checkpoints(objective, sites, self.outputs.checkpoints())

    def resume(self, checkpoints: Checkpoints) -> None:
        """Begin with what the models had settled on given the first rows of the history.

        Where that cannot be, nothing changes: the next fit is one from a cold start.
        """
        self.outputs.resume(checkpoints.constraints)
        n = checkpoints.objective.n
        observations = self.history.observations
        observations = self._scale_of(observations.until(n)).of(observations)
        first, sites = observations.until(n), None
        if not first.measured.all():
            sites = Sites.known(first, checkpoints.sites)
        given = None if sites is None else sites.observations
        posterior = resumed(self.model, observations, checkpoints.objective, given)
        if posterior is None:
            return
        self._sites, self._hint = sites, posterior if self._hinted else None
        if n == len(self.history):
            self._posterior, self._integrated = posterior, None
            self._revisions = self.history.revisions

    @property
    def exact(self) -> int | None:
        """Number of first rows that no window was needed for; None as long as there is none."""
        if self._windowed is None or len(self.history) <= self._windowed.exact:
            return None
        return int(self._windowed.exact)

    def window(self) -> Observations:
        """Observations that choices are made by: all, or the window of a bounded model."""
        observations = self.modelled()
        if self._windowed is None or len(observations) <= self._windowed.exact:
            return observations
        return self._windowed.window(observations, self.posterior())[0]

    def band(self, observations: Observations | None = None, t: int | None = None) -> Band:
        """Band given these observations alone; by default given all, of :meth:`window`.

        ``t`` is the round of the width; by default one more than the number of observations.
        """
        if observations is None:
            posterior, observations = self.posterior(), self.modelled()
            if self._windowed is not None and len(observations) > self._windowed.exact:
                _, posterior = self._windowed.window(observations, posterior)
        else:
            # A previous posterior would have to be of the first of these, and would be consumed
            posterior = self.model(self.history.domain, observations, None)
        width = self.confidence(posterior, t or len(observations) + 1)
        if not 0.0 <= width < math.inf:
            raise ValueError(
                f"The width of a band is a number >= 0, and {self.confidence!r} returned {width!r}."
            )
        return Band(posterior, width)

    def feasibility(self) -> Feasibility | None:
        """Classifier of inputs that give results; None while no input caused a failure.

        A nan result says nothing about that.
        """
        failures = self.history.failures
        if not len(failures) or not len(failed := failures.of_settings):
            return None
        state = (len(self.history), len(failures), self.history.revisions)
        if self._feasibility is None or self._feasibility[0] != state:
            observations = self.history.observations
            feasible = observations.x[np.isfinite(observations.observed)]
            learned = Feasibility.learned(self.history.domain, feasible, failed)
            self._feasibility = (state, learned)
        return self._feasibility[1]

    def constraints(self, integrated: bool = False) -> Constraints | None:
        """Probability that all constraints hold; None without any.

        ``integrated`` marginalises over hyperparameters, for reports.
        """
        with self.threads():
            return self.outputs(integrated)
