"""Phased elimination: plan and play whole epochs, then drop the arms that cannot be optimal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from stoic.confidence.base import Band
from stoic.data import Booleans, Choice, Integers
from stoic.domains import Among, Domain, Finite
from stoic.pending import NothingLeftError
from stoic.policies.base import Policy, View
from stoic.policies.designs import Design, Plan, RareSwitching


@dataclass(frozen=True, eq=False)
class Epoch:
    """Plan of one epoch and the arms that it is among.

    Attributes
    ----------
    number:
        h, from 0; -1 before the first query.
    first:
        Row of the first observation after the epoch before it.
    active:
        Arms that may still be optimal, shape (N,).
    plan:
        The arms to play, and how often.
    owed:
        The plan as counts of all arms, shape (N,).
    band:
        Confidence band at the end of the epoch before it; ``None`` if there was none.
    notes:
        Notes that each of its choices carries.
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
    """State of the policy: an epoch, and the plays of it so far.

    Attributes
    ----------
    epoch:
        The epoch that is played.
    out:
        Number of pending plays of each arm that this learner suggested, shape (N,).
    observed:
        Number of observations of each arm in this epoch, shape (N,).
    seen:
        Number of observations that ``observed`` accounts for.
    """

    epoch: Epoch
    out: Integers
    observed: Integers
    seen: int


@dataclass(frozen=True)
class Elimination(Policy):
    """Plan an epoch, play it, drop the arms that cannot be optimal, plan the next.

    Algorithm 1 of [Bogunovic2022]_ with :class:`~stoic.policies.designs.RareSwitching`. Only the
    results of an epoch count when it ends: an arm stays if its upper bound reaches the best lower
    bound in the band given those alone. The width is computed for round h + 1.

    The whole plan is known when the epoch starts, so the policy suggests it in batches of any size,
    which may run in parallel. Results may arrive in any order. Once all plays are suggested, the
    policy waits until the last result is observed.

    The count depends on the observations alone: the first results of each arm, in the order of
    observation, as many as the plan has plays of it. A result that the policy did not suggest
    therefore counts where it is one of the plan's plays, so that a play less is needed, and not
    otherwise: the confidence needs a design that does not depend on results, and the truncation
    needs every arm of the epoch played often. A learner that is given a stored history resumes
    in the middle of the same epoch.

    A result that is not a number counts as a play without information, so an arm that has no other
    is never dropped. Tell it as ``failed="infeasible"`` or ``"bad"``: then it is dropped at once.

    Parameters
    ----------
    design:
        The design of an epoch.

    Guarantee
    ---------
    As long as f is in the band at the end of every epoch, a maximiser is never dropped, and all
    arms that are left after epoch h are within 4 width_h max std_h of the maximum. The regret is
    that of the design and the width, see :func:`stoic.recipes.rgp_pe`.

    Raises
    ------
    NothingLeftError
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
        missing = _missing(view, epoch, state.observed)
        out = state.out
        if not view.owns_pending:
            # The caller's account replaces ours: it has the plays of other workers, too
            out = np.bincount(_domain(view).locate(view.pending), minlength=len(out))
        left = np.maximum(missing - out, 0)[arms]  # (U,)
        if view.owns_pending and not left.any() and not len(view.pending):
            out, left = np.zeros_like(out), missing[arms]  # the pending ones will never come
        if isinstance(view.among, Among):
            left = _allowed(epoch, left, view.among)
        # The first n of the remaining plays, arm after arm, in the order of the plan
        before = np.cumsum(left) - left
        chosen = np.repeat(arms, np.clip(n - before, 0, left))
        points, notes = _domain(view).points, epoch.notes
        choices = [Choice(points[arm], arm, notes) for arm in chosen.tolist()]
        return choices, state._replace(out=out + np.bincount(chosen, minlength=len(out)))

    def active(self, view: View, state: Progress) -> Booleans:
        """Active arms after the last complete epoch, less those known to be infeasible or bad."""
        epoch = self._caught_up(view, state).epoch
        return epoch.active & ~_hopeless(view, epoch)

    def band(self, view: View, state: Progress) -> Band:
        """Confidence band at the end of the last complete epoch; before it, the prior's.

        Its width is that of the epoch, and so is its guarantee; a band of all results together
        would rest on points that were chosen after seeing results.
        """
        band = self._caught_up(view, state).epoch.band
        return view.given(view.observations.only(slice(0)), 1) if band is None else band

    @staticmethod
    def _begun(epoch: Epoch) -> Progress:
        nothing = np.zeros(len(epoch.active), dtype=np.intp)
        return Progress(epoch, nothing, nothing, epoch.first)

    def _caught_up(self, view: View, state: Progress) -> Progress:
        """Advance the state over all observations: to the first epoch that is not complete."""
        assert view.observations.arms is not None
        while True:
            epoch, arms = state.epoch, view.observations.arms[state.seen :]
            if len(arms):
                new = np.bincount(arms, minlength=len(state.observed))
                # A result answers a pending play of its arm, if there is one
                out, observed = np.maximum(state.out - new, 0), state.observed + new
                state = Progress(epoch, out, observed, len(view.observations))
            if _missing(view, epoch, state.observed).any():
                return state
            # It counts from ``first`` again: results after the last counted row belong to it
            state = self._begun(self._next(view, epoch))

    def _next(self, view: View, epoch: Epoch) -> Epoch:
        """Epoch after one that is complete."""
        domain, number, active, first, band = _domain(view), epoch.number + 1, epoch.active, 0, None
        if number:
            rows = _counted(view, epoch)
            band = view.given(view.observations.only(rows), number)  # line 14; number = h + 1
            lower, upper = band.bounds(domain.points)
            active = active & ~_hopeless(view, epoch)
            # Line 15, with the best lower bound of the active arms alone.
            # A comparison with a bound that is nan is false: in this form it drops nothing.
            active = active & ~(upper < np.max(lower[active & ~np.isnan(lower)], initial=-np.inf))
            # No row counts if all arms of the plan are hopeless
            first = int(rows.max(initial=epoch.first - 1)) + 1
        # From no observations: the plan of an epoch may not depend on results
        prior = view.given(view.observations.only(slice(0))).posterior.prior
        return Epoch(number, first, active, self.design(prior, domain, active, number), band)


def _hopeless(view: View, epoch: Epoch) -> Booleans:
    """Arms known to be infeasible or bad; none if no other active arm is left, shape (N,)."""
    hopeless = np.zeros(len(epoch.active), dtype=np.bool_)
    if len(view.failures):
        hopeless[_domain(view).locate(view.failures.of_settings)] = True
        if not (epoch.active & ~hopeless).any():
            hopeless[:] = False
    return hopeless


def _missing(view: View, epoch: Epoch, observed: Integers) -> Integers:
    """Count the results of each arm that the epoch still needs, shape (N,)."""
    missing: Integers = np.maximum(epoch.owed - observed, 0)
    if len(view.failures):
        missing[_hopeless(view, epoch)] = 0
    return missing


def _counted(view: View, epoch: Epoch) -> Integers:
    """Rows that count in an epoch: of each arm the first ones, up to its plays; increasing."""
    assert view.observations.arms is not None
    arms = view.observations.arms[epoch.first :]
    order = np.argsort(arms, kind="stable")  # within an arm, as observed
    grouped = arms[order]
    # The rank of each result within its arm: its position less the first position of the arm.
    rank = np.arange(len(arms)) - np.searchsorted(grouped, grouped)
    rows: Integers = np.sort(order[rank < epoch.owed[grouped]]) + epoch.first
    return rows


def _allowed(epoch: Epoch, left: Integers, among: Among) -> Integers:
    """Remaining plays of the plan (U,), restricted to the arms that may be chosen."""
    allowed: Integers = np.where(np.isin(epoch.plan.arms, among.arms), left, 0)
    if left.any() and not allowed.any():
        raise NothingLeftError(
            f"Epoch {epoch.number} has nothing left to play among these {len(among.arms)} points: "
            "a phased policy plans over the whole domain, so ask without `among` and `context`, or "
            "take another recipe where they are given."
        )
    return allowed


def _domain(view: View) -> Finite:
    assert isinstance(view.domain, Finite)
    return view.domain
