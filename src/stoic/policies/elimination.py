"""Phased elimination: whole epochs planned ahead, then what cannot be the best is dropped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from stoic.data import Booleans, Choice, Integers
from stoic.domains import Among, Domain, Finite
from stoic.pending import NothingLeft
from stoic.policies.base import Band, Policy, View
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
    band:
        What was believed when the epoch before it was complete; ``None`` if there was none.
    notes:
        What is said about each of its choices.
    """

    number: int
    first: int
    active: Booleans
    plan: Plan
    band: Band | None = None
    owed: Integers = field(init=False)
    notes: Mapping[str, object] = field(init=False)

    def __post_init__(self) -> None:
        owed = np.zeros(len(self.active), dtype=np.intp)
        owed[self.plan.arms] = self.plan.plays
        object.__setattr__(self, "owed", owed)
        notes = {"epoch": self.number, "active": int(self.active.sum())}
        object.__setattr__(self, "notes", notes)


class Progress(NamedTuple):
    """The state: an epoch, and how far it has come.

    Attributes
    ----------
    epoch:
        What is played.
    out:
        How many plays of each arm are on their way, as far as this learner handed them out, (N,).
    told:
        How often each arm was told in this epoch, shape (N,).
    seen:
        How many observations ``told`` accounts for.
    """

    epoch: Epoch
    out: Integers
    told: Integers
    seen: int


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

    A result that is not a number counts as a play and says nothing, so an arm that never gives one
    is never dropped. Tell it as ``failed="infeasible"`` or ``"bad"``: then it is dropped at once.

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
    NothingLeft
        When only a part of the domain may be chosen and the epoch has nothing left to play there.
    """

    design: Design = field(default_factory=RareSwitching)
    needs_finite = True
    plans = True

    def start(self, domain: Domain) -> Progress:
        assert isinstance(domain, Finite)
        nothing = np.empty(0, dtype=np.intp)
        everything = np.ones(len(domain), dtype=np.bool_)
        return self._begun(Epoch(-1, 0, everything, Plan(nothing, nothing)))

    def choose(self, view: View, state: Progress, n: int) -> tuple[list[Choice], Progress]:
        state = self._caught_up(view, state)
        epoch, arms = state.epoch, state.epoch.plan.arms
        missing = _missing(view, epoch, state.told)
        out = state.out
        if not view.counted:
            out = np.bincount(_domain(view).locate(view.pending), minlength=len(out))
        left = np.maximum(missing - out, 0)[arms]
        if view.counted and not left.any() and not len(view.pending):
            out, left = np.zeros_like(out), missing[arms]  # those on their way will never come
        if isinstance(view.among, Among):
            left = _allowed(epoch, left, view.among)
        before = np.cumsum(left) - left
        chosen = np.repeat(arms, np.clip(n - before, 0, left))
        points, notes = _domain(view).points, epoch.notes
        choices = [Choice(points[arm], arm, notes) for arm in chosen.tolist()]
        return choices, state._replace(out=out + np.bincount(chosen, minlength=len(out)))

    def active(self, view: View, state: Progress) -> Booleans:
        """What the last complete epoch left, without what is known to give no result."""
        epoch = self._caught_up(view, state).epoch
        return epoch.active & ~_hopeless(view, epoch)

    def band(self, view: View, state: Progress) -> Band:
        """What was believed at the end of the last complete epoch; before it, what the prior says.

        Its width is that of the epoch, and holds as that does; a band of all results together would
        rest on points that were chosen after seeing results.
        """
        band = self._caught_up(view, state).epoch.band
        return view.given(view.observations.only(slice(0)), 1) if band is None else band

    @staticmethod
    def _begun(epoch: Epoch) -> Progress:
        nothing = np.zeros(len(epoch.active), dtype=np.intp)
        return Progress(epoch, nothing, nothing, epoch.first)

    def _caught_up(self, view: View, state: Progress) -> Progress:
        """The state with all that was told accounted for: the first epoch that is not complete."""
        assert view.observations.arms is not None
        while True:
            epoch, arms = state.epoch, view.observations.arms[state.seen :]
            if len(arms):
                new = np.bincount(arms, minlength=len(state.told))
                out, told = np.maximum(state.out - new, 0), state.told + new
                state = Progress(epoch, out, told, len(view.observations))
            if _missing(view, epoch, state.told).any():
                return state
            state = self._begun(self._next(view, epoch))

    def _next(self, view: View, epoch: Epoch) -> Epoch:
        """The epoch after one that is complete."""
        domain, number, active, first, band = _domain(view), epoch.number + 1, epoch.active, 0, None
        if number:
            rows = _counted(view, epoch)
            band = view.given(view.observations.only(rows), number)
            lower, upper = band.on(domain)
            active = active & ~_hopeless(view, epoch)
            # Written so that a bound that is not a number drops nothing.
            active = active & ~(upper < np.max(lower[active & ~np.isnan(lower)], initial=-np.inf))
            first = int(rows.max(initial=epoch.first - 1)) + 1
        prior = view.given(view.observations.only(slice(0))).posterior.prior
        return Epoch(number, first, active, self.design(prior, domain, active, number), band)


def _hopeless(view: View, epoch: Epoch) -> Booleans:
    """Active arms that were told to give no result, unless there is no other, shape (N,)."""
    hopeless = np.zeros(len(epoch.active), dtype=np.bool_)
    if len(view.failures):
        for kind in ("infeasible", "bad"):
            hopeless[_domain(view).locate(view.failures.of(kind))] = True
        if not (epoch.active & ~hopeless).any():
            hopeless[:] = False
    return hopeless


def _missing(view: View, epoch: Epoch, told: Integers) -> Integers:
    """How many results of each arm the epoch still needs, shape (N,)."""
    missing: Integers = np.maximum(epoch.owed - told, 0)
    if len(view.failures):
        missing[_hopeless(view, epoch)] = 0
    return missing


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


def _allowed(epoch: Epoch, left: Integers, among: Among) -> Integers:
    """What is left of the plan (U,), where it may be chosen this time."""
    allowed: Integers = np.where(np.isin(epoch.plan.arms, among.arms), left, 0)
    if left.any() and not allowed.any():
        raise NothingLeft(
            f"Epoch {epoch.number} has nothing left to play among these {len(among.arms)} points: "
            "a phased policy plans over the whole domain, so ask without `among`."
        )
    return allowed


def _domain(view: View) -> Finite:
    assert isinstance(view.domain, Finite)
    return view.domain
