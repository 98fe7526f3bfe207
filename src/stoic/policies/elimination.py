"""Phased elimination: whole epochs planned ahead, then what cannot be the best is dropped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from stoic.data import Booleans, Choice, Integers
from stoic.domains import Among, Domain, Finite
from stoic.policies.base import Policy, View
from stoic.policies.designs import Design, Plan, RareSwitching


@dataclass(frozen=True, eq=False)
class Epoch:
    """What an epoch plays, and among what.

    Attributes
    ----------
    number:
        h, from 0; -1 before the first question.
    first:
        Row of the first observation after the epoch before it.
    active:
        Arms that may still be the best, shape (N,).
    plan:
        What is played.
    owed:
        The same as counts of all arms, shape (N,).
    notes:
        What is said about each of its choices.
    """

    number: int
    first: int
    active: Booleans
    plan: Plan
    owed: Integers = field(init=False)
    notes: Mapping[str, object] = field(init=False)

    def __post_init__(self) -> None:
        owed = np.zeros(len(self.active), dtype=np.intp)
        owed[self.plan.arms] = self.plan.plays
        object.__setattr__(self, "owed", owed)
        notes = {"epoch": self.number, "active": int(self.active.sum())}
        object.__setattr__(self, "notes", notes)


class Progress(NamedTuple):
    """The state: an epoch, and the arms that are still to be handed out, in order, shape (k,)."""

    epoch: Epoch
    queue: Integers


@dataclass(frozen=True)
class Elimination(Policy):
    """Plan an epoch, play it, drop the arms that cannot be the best, plan the next.

    Algorithm 1 of [Bogunovic2022]_ with :class:`~stoic.policies.designs.RareSwitching`. Only the
    results of an epoch count when it ends: an arm stays if its upper bound reaches the best lower
    bound in the band given those alone. The width is told h + 1 as the round.

    The whole plan is known when the epoch starts, so it is handed out in batches of any size and
    may run in parallel. Results may arrive in any order. Once all of it is handed out there is
    nothing more to ask until the last result is told.

    What is counted depends on the observations alone: the first results of each arm, in the order
    in which they were told, as many as the plan has plays of it. A result that nobody asked for
    therefore counts where it is one of the plan's plays, so that a play less is needed, and not
    otherwise: the confidence needs a design that does not depend on results, and the truncation
    needs every arm of the epoch played often. A learner that is told a stored history finds itself
    in the middle of the same epoch.

    Parameters
    ----------
    design:
        How an epoch is planned.

    Guarantee
    ---------
    As long as f lies in the band at the end of every epoch, a maximiser is never dropped, and all
    arms that are left after epoch h are within 4 width_h max std_h of the maximum. The regret is
    that of the design and the width, see :func:`stoic.recipes.rgp_pe`.

    Raises
    ------
    ValueError
        When only a part of the domain may be chosen and the epoch has nothing left to play there.
    """

    design: Design = field(default_factory=RareSwitching)
    needs_finite = True

    def start(self, domain: Domain) -> Progress:
        assert isinstance(domain, Finite)
        nothing = np.empty(0, dtype=np.intp)
        everything = np.ones(len(domain), dtype=np.bool_)
        return Progress(Epoch(-1, 0, everything, Plan(nothing, nothing)), nothing)

    def choose(self, view: View, state: Progress, n: int) -> tuple[list[Choice], Progress]:
        epoch, queue = state if len(state.queue) else self._caught_up(view, state.epoch)
        if isinstance(view.among, Among):
            arms, queue = _allowed(epoch, queue, view.among, n)
        else:
            arms, queue = queue[:n], queue[n:]
        points, notes = _domain(view).points, epoch.notes
        choices = [Choice(points[arm], arm, notes) for arm in arms.tolist()]
        return choices, Progress(epoch, queue)

    def active(self, view: View, state: Progress) -> Booleans:
        """What the last complete epoch left."""
        epoch, _ = state if len(state.queue) else self._caught_up(view, state.epoch)
        return epoch.active

    def _caught_up(self, view: View, epoch: Epoch) -> Progress:
        """The first epoch that is not complete, with all of it that is not on its way."""
        rows = _counted(view, epoch)
        while len(rows) == epoch.plan.plays.sum():
            epoch = self._next(view, epoch, rows)
            rows = _counted(view, epoch)
        assert view.observations.arms is not None
        domain, N = _domain(view), len(epoch.active)
        missing = epoch.owed - np.bincount(view.observations.arms[rows], minlength=N)
        pending = view.pending
        if len(pending):
            missing = np.maximum(missing - np.bincount(domain.locate(pending), minlength=N), 0)
        arms = epoch.plan.arms
        return Progress(epoch, np.repeat(arms, missing[arms]))

    def _next(self, view: View, epoch: Epoch, rows: Integers) -> Epoch:
        """The epoch after one that is complete with these rows."""
        domain, number, active, first = _domain(view), epoch.number + 1, epoch.active, 0
        if number:
            lower, upper = view.given(view.observations.only(rows), number).on(domain)
            active = active & (upper >= lower[active].max())
            first = int(rows[-1]) + 1
        prior = view.given(view.observations.only(slice(0))).posterior.prior
        return Epoch(number, first, active, self.design(prior, domain, active, number))


def _counted(view: View, epoch: Epoch) -> Integers:
    """Rows that count in an epoch: of each arm the first ones, as many as it owes; in order."""
    assert view.observations.arms is not None
    arms = view.observations.arms[epoch.first :]
    order = np.argsort(arms, kind="stable")
    grouped = arms[order]
    # The how-manieth of its arm each result is: its position less the first one of the arm.
    rank = np.arange(len(arms)) - np.searchsorted(grouped, grouped)
    rows: Integers = np.sort(order[rank < epoch.owed[grouped]]) + epoch.first
    return rows


def _allowed(epoch: Epoch, queue: Integers, among: Among, n: int) -> tuple[Integers, Integers]:
    """The first ``n`` of the queue that may be chosen this time, and what is left then."""
    where = np.flatnonzero(np.isin(queue, among.arms))[:n]
    if len(queue) and not len(where):
        raise ValueError(
            f"Epoch {epoch.number} has nothing left to play among these {len(among.arms)} points: "
            "a phased policy plans over the whole domain, so ask without `among`."
        )
    return queue[where], np.delete(queue, where)


def _domain(view: View) -> Finite:
    assert isinstance(view.domain, Finite)
    return view.domain
