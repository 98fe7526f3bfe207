"""Interface ask / tell / recommend, on one history."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from stoic.data import DISTRUSTED, Array, Choice, Failures, Observations, numbers
from stoic.domains import Domain, as_points
from stoic.history import History
from stoic.models.constraints import Constraints
from stoic.models.rescaling import UNCHANGED, Rescaling
from stoic.pending import WaitingError
from stoic.printable import ShownInNotebooks


class ShownRecommendation(ShownInNotebooks):
    """Optimizer that is printed as its results, those it distrusts, and what it recommends."""

    def __str__(self: Any) -> str:
        lines = [f"{type(self).__name__} on {self.domain!r}", f"results      {len(self)}"]
        if len(doubtful := np.flatnonzero(self.trust < DISTRUSTED)):
            lines.append(f"distrusted   {', '.join(map(str, doubtful.tolist()))} (from 0)")
        if len(self.failures):
            lines.append(f"failures     {len(self.failures)}")
        if np.isfinite(self.observations.observed).any():
            best = self.recommend()
            std = self.predict(best.x)[1].item()
            within = f"{std:.2g}" if math.isfinite(best.upper) else "unknown"
            lines.append(f"recommended  {best.x.tolist()}: {best.mean:.6g} +- {within}")
            if (held := self.constraints()) is not None:
                lines.append(f"feasible     with probability {held(best.x[None]).item():.2f} there")
        return "\n".join(lines)


class Optimizer(ABC):
    """Bayesian optimizer: a :class:`~stoic.learner.Learner`, or several that are balanced.

    Attributes
    ----------
    history:
        All evaluations and pending choices.
    """

    history: History
    _who = "Balanced"  # in messages; a learner is named after its policy

    def __len__(self) -> int:
        return len(self.history)

    @property
    def domain(self) -> Domain:
        """The search space."""
        return self.history.domain

    @property
    def observations(self) -> Observations:
        """All observations so far, as views: not to be written to."""
        return self.history.observations

    @property
    def modelled(self) -> Observations:
        """Observations as the model has them."""
        return self.scale.of(self.observations)

    @property
    def scale(self) -> Rescaling:
        """Scale that results are modelled on."""
        return UNCHANGED

    @property
    def failures(self) -> Failures:
        """Reported failures, in order."""
        return self.history.failures

    def constraints(self) -> Constraints | None:
        """Return the probability that all constraints hold, for reports; None without any."""
        return None

    @property
    def pending(self) -> list[Choice]:
        """Choices without a result yet, oldest first."""
        return list(self.history.pending)

    def ask(
        self,
        *,
        among: object = None,
        context: Mapping[int, float] | None = None,
        pending: object | None = None,
    ) -> Choice:
        """Suggest where to evaluate next; arguments as in :meth:`ask_batch`.

        Raises
        ------
        ValueError
            As there.
        WaitingError
            If it waits for pending results, or chooses nothing.
        """
        choices = self.ask_batch(1, among=among, context=context, pending=pending)
        if not choices:
            waiting = len(self.history.pending) if pending is None else len(self._points(pending))
            if not waiting:
                raise WaitingError(f"{self._who} chose nothing, though no result is pending.")
            raise WaitingError(
                f"{self._who} waits for {waiting} results: tell them, or call forget_pending() if "
                "they will never come."
            )
        return choices[0]

    @abstractmethod
    def ask_batch(
        self,
        n: int,
        *,
        among: object = None,
        context: Mapping[int, float] | None = None,
        pending: object | None = None,
    ) -> list[Choice]:
        """Suggest ``n`` points to evaluate in parallel.

        Pending choices are taken into account, so two calls in a row suggest different points. A
        policy that plans in batches, or an initial design, may return fewer than ``n``, and an
        empty list while it waits for pending results.

        Parameters
        ----------
        n:
            Number of choices.
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
        """

    def forget_pending(self, choices: Choice | Iterable[Choice] | None = None) -> None:
        """Forget pending choices, for which no result will come: one, several, or by default all.

        Nothing changes where one is not pending.

        Raises
        ------
        ValueError
            If one is no choice.
        """
        self.history.pending.forget(choices)

    def _points(self, pending: object) -> Array:
        """Points of the domain that a caller keeps account of, as pending ones, shape (k, d)."""
        points = np.array(numbers(pending, "A pending point"))
        if not points.size:
            return points.reshape(0, self.domain.dim)
        points = as_points(points, self.domain.dim)
        self.domain.locate(points)
        return points

    def _check_recommendable(self) -> None:
        if not len(self.history):
            raise ValueError("There is no result yet, so there is nothing to recommend: ask, tell.")
