"""Model selection among learners: regret bound balancing with elimination [Pacchiano2020]_.

It plays the base learner whose putative regret bound is least so far, and eliminates one whose
rewards contradict its bound. It need not know which base learner is well-specified (its bound
holds), only that one of them is.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, cast

import numpy as np

from stoic.confidence.base import Band
from stoic.data import Array, Booleans, Choice, FailureKind, Integers, Recommendation
from stoic.domains import Domain
from stoic.history import Evaluations, History
from stoic.learner import Learner
from stoic.models.rescaling import Rescaling
from stoic.optimizer import Optimizer, ShownRecommendation
from stoic.pending import check_count
from stoic.posteriors.base import Posterior
from stoic.posteriors.scales import Scale
from stoic.promises import Bound, deviation
from stoic.recipes import Balancing, Parts
from stoic.recipes.base import on_their_own_scale
from stoic.rewards import Rewards, check_span


class Balanced(ShownRecommendation, Optimizer):
    """Regret bound balancing with elimination, Algorithm 3 of [Bogunovic2021b]_.

    ask / tell / recommend, as a :class:`~stoic.learner.Learner`. The notes of a choice name the
    ``learner`` that suggested it, and that learner's own choice as ``question``.

    Parameters
    ----------
    learners:
        The base learners, all on one domain and without observations yet.
    bounds:
        For each, its :class:`~stoic.promises.Promise` or another putative bound R(N) >= 0, not
        falling, on the regret after N of its own plays. In units of the results, or of their scale
        where the span is estimated from them.
    span:
        The range of rewards, (low, high). A :class:`~stoic.posteriors.scales.Scale` estimates one
        from the results instead, three scales on either side of their location; whenever there are
        a quarter more results it is estimated anew, and all of them are scored anew.
    outside:
        Treatment of a reward outside of the span: ``"clip"`` moves it to the nearer end, and nan
        and failures to the lower one; ``"refuse"`` raises ``ValueError``. The learners observe the
        result as it was reported, whatever the score.
    corrupted, budget:
        Number of results that may be corrupted arbitrarily, and total absolute corruption of all
        others, in units of the results. Each learner may have observed all of them.
    c:
        ``None`` compares by :func:`~stoic.promises.deviation`. A number compares by
        c sqrt(ln(M ln N / delta) / N) as printed, ln N taken as 1 for N < e.
    unit:
        Unit of the comparison: the width of the ``"span"``, which the theorem needs, or twice the
        standard deviation of all clipped rewards, their ``"spread"``, which is never more, and much
        less where rewards vary little.
    delta, proxy:
        As in ``deviation``; ``proxy=0.25`` is enough where all points may always be chosen.
    everything:
        True if a learner observes all results, not only those of its own plays. The theorem needs
        False. See below.

    Attributes
    ----------
    kept:
        Numbers of the learners that were not eliminated, rising.
    plays:
        N_i, the number of results of each learner's own suggestions, shape (M,).

    Guarantee
    ---------
    Suppose action sets are drawn independently, all with the same law; rewards are in the span;
    ``everything=False``. Then, with probability 1 - delta, no well-specified learner is ever
    eliminated. Let i be such a learner, and let choices be made one at a time. If another, j,
    is played n + 1 times, and i has N plays before the last of these, n, N >= 1, these n + 1 plays
    have a regret of at most

        R_j(n) + (n / N) R_i(N) + 2 n (s(N) + s(n)) + w,   R_j(n) <= R_i(N),

    s being the ``deviation`` times w, the width of the span: before its last play j was kept, and
    its putative bound was least; that play may eliminate it, and costs at most w. With the bounds
    of EC-GP-UCB this is [Bogunovic2021b]_, Proposition 1, up to the choice of c.

    Well-specified learners are also kept, and all have at most this regret measured in clipped
    rewards,

    - with ``outside="clip"`` for rewards of *any* tails that are f plus noise Z, or f >= 0 times
      noise W >= 0 of mean 1, the same law everywhere: the mean of a clipped reward does not fall
      with f, and rises by no more than f does, so a regret bound in f holds for it. In f the
      regret is at most 1 / p times as much if, at *every* level f between the least and the
      largest value of f, not only at those that it takes, P(f + Z in the span) >= p, or
      E[W; f W in the span] >= p: this is the slope of the clipped mean;
    - with arbitrary corruption of at most ``corrupted`` results and others moved by at most
      ``budget`` in all, if s is enlarged by (corrupted times the width of the span + budget) / N. A
      single corruption, of any size, nan included, moves a clipped mean by no more than width / N.

    Heuristic: an estimated span, ``unit="spread"``, and a ``c`` that is not large enough.
    With ``everything=True`` a putative bound still holds if it follows from the learner's own
    bands, at its own choices (GP-UCB, self-normalised): other results narrow them. It may fail if
    the band grows with the number of results, as for an error of the model, eps sqrt(t), or with
    corruption of results that others suggested.

    The last learner is never eliminated, since the one with the best lower bound is always kept.

    Raises
    ------
    ValueError
        If there is no learner, numbers do not match, domains differ or a number is out of range.
    """

    plans = False  # which learner suggests next depends on results

    def __init__(
        self,
        learners: Sequence[Learner | Balanced],
        bounds: Sequence[Bound],
        *,
        span: tuple[float, float] | Scale = (0.0, 1.0),
        outside: Literal["clip", "refuse"] = "clip",
        corrupted: int = 0,
        budget: float = 0.0,
        c: float | None = None,
        unit: Literal["span", "spread"] = "span",
        delta: float = 0.1,
        proxy: float = 0.5,
        everything: bool = False,
    ) -> None:
        self.learners, self.bounds = list(learners), list(bounds)
        _check_learners(self.learners, self.bounds)
        _check_numbers(span, outside, corrupted, budget, c, delta, proxy)
        if unit not in ("span", "spread"):
            raise ValueError(f"unit is 'span' or 'spread', got {unit!r}.")
        self.history = History(self.learners[0].domain)
        self.span, self.outside, self.everything = span, outside, everything
        self.corrupted, self.budget = corrupted, budget
        self.c, self.unit, self.delta, self.proxy = c, unit, delta, proxy
        self.kept = list(range(len(self.learners)))
        self._rewards = Rewards(len(self.learners), None if callable(span) else span)
        self._seen: list[list[int]] = [[] for _ in self.learners]  # rows of these, in order

    @property
    def plays(self) -> Integers:
        """N_i, the number of results of each learner's own suggestions, shape (M,)."""
        return self._rewards.plays

    def ask_batch(
        self,
        n: int,
        *,
        among: object = None,
        context: Mapping[int, float] | None = None,
        pending: object | None = None,
    ) -> list[Choice]:
        """Suggest ``n`` points to evaluate in parallel, see :meth:`Optimizer.ask_batch`.

        Each choice comes from the kept learner whose putative bound is least, eq. (23), once its
        pending choices count as played; from the next one if that waits for results. A learner
        takes pending choices of the others into account, too, unless it plans, or balances others.
        """
        check_count(n)
        owned = pending is None  # or the caller counts them; the choices of this call are added
        waiting = [each.x for each in self.history.pending] if owned else [*self._points(pending)]
        given: dict[str, Any] = {"among": among, "context": context}
        queried = self.plays.tolist()
        for question in self.history.pending:
            queried[_owner(question)] += 1
        choices: list[Choice] = []
        for _ in range(n):
            try:
                choice = self._next(queried, given, waiting, owned)
            except Exception:  # these are not returned, so they must not stay pending
                for other in choices if owned else ():
                    self._learner_of(other).forget_pending(_question(other))
                raise
            if choice is None:
                break
            choices.append(choice)
            waiting.append(choice.x)
            queried[_owner(choice)] += 1
        if owned:
            self.history.pending.add(choices)
        return choices

    def _next(
        self, queried: list[int], given: dict[str, Any], waiting: list[Array], owned: bool
    ) -> Choice | None:
        """Choice of the learner with the least putative bound that does not wait for results."""
        # Ties go to the first: the sort is stable
        for i in sorted(self.kept, key=lambda i: self.bounds[i](queried[i])):
            one = self.learners[i]
            alone = owned and (one.plans or isinstance(one, Balanced))
            if answer := one.ask_batch(1, **given, pending=None if alone else np.array(waiting)):
                if owned and not alone:
                    one.history.pending.add(answer)
                notes = {**answer[0].notes, "learner": i, "question": answer[0]}
                return replace(answer[0], notes=notes)
        return None

    def _learner_of(self, choice: Choice) -> Learner | Balanced:
        return self.learners[_owner(choice)]

    def tell(
        self,
        x: object,
        y: object = None,
        noise: object = None,
        *,
        failed: FailureKind | None = None,
        choice: Choice | Sequence[Choice | None] | None = None,
    ) -> None:
        """Add executed points and their results, as :meth:`stoic.learner.Learner.tell`.

        A result is the reward of the learner that suggested the point, and a play of it. One that
        answers no suggestion goes to all learners and is no reward. A failure is a reward of the
        lower end of the span, unless it is ``"transient"``: then it is no play.

        Raises
        ------
        ValueError
            As there, and for a reward outside of the span if such are refused. Nothing is stored
            then.
        """
        evaluations = self.history.check(x, y, noise, failed, choice)
        if self.outside == "refuse" and evaluations.observed is not None:
            self._refuse(evaluations.observed)
        for row, answered in enumerate(self.history.answer(evaluations)):
            one = evaluations.row(row)
            self.history.add(one)
            owner = self._pass_on(one, answered or (one.choices[0] if one.choices else None))
            if owner is not None and failed != "transient":
                self._score(owner, math.nan if one.observed is None else one.observed.item())

    def recommend(
        self,
        width: float | None = 2.0,
        *,
        settings: object = None,
        among: object = None,
        context: Mapping[int, float] | None = None,
    ) -> Recommendation:
        """Recommendation of the leader, see ``leader``; arguments as for a learner."""
        self._check_recommendable()
        leader = self.learners[self.leader]
        return leader.recommend(width, settings=settings, among=among, context=context)

    @property
    def leader(self) -> int:
        """Number of the kept learner whose mean reward has the best lower bound; it recommends.

        One without observations cannot recommend, so it is passed over while another has some.
        Where all observe ``everything`` they differ in their models only: then it is the first,
        in the order they were given in, whose upper bound reaches that lower one.
        """
        everybody = range(len(self.learners))
        able = [i for i in self.kept if self._seen[i]] or [i for i in everybody if self._seen[i]]
        earned = {i: self._earned(i) for i in able or self.kept}
        best = max(earned, key=lambda i: earned[i][0])
        if not self.everything:
            return best
        return next(i for i, (_, upper) in earned.items() if upper >= earned[best][0])

    @property
    def posterior(self) -> Posterior:
        """Posterior of the leader."""
        return self.learners[self.leader].posterior

    @property
    def estimate(self) -> Posterior:
        """Reported posterior of the leader, see :attr:`stoic.learner.Learner.estimate`."""
        return self.learners[self.leader].estimate

    @property
    def scale(self) -> Rescaling:
        """Scale that the leader models results on: their own, if a recipe built it."""
        return self.learners[self.leader].scale

    def predict(self, x: object) -> tuple[Array, Array]:
        """Mean and standard deviation of f by the leader, see :meth:`stoic.Learner.predict`."""
        return self.learners[self.leader].predict(x)

    def band(self) -> Band:
        """Confidence band of the leader."""
        return self.learners[self.leader].band()

    def active(self) -> Booleans:
        """Mask of the rows of a finite domain that some kept learner keeps active, shape (N,)."""
        rows: Booleans = np.any([self.learners[i].active() for i in self.kept], axis=0)
        return rows

    @property
    def rng(self) -> np.random.Generator:
        """Generator of the first learner; setting it sets that of all. Balancing draws nothing."""
        return self.learners[0].rng

    @rng.setter
    def rng(self, rng: np.random.Generator) -> None:
        for learner in self.learners:
            learner.rng = rng

    @property
    def trust(self) -> Array:
        """Trust weight of each observation, shape (n,): the leader's where it observed it.

        Elsewhere that of the last learner that did.
        """
        trust = np.ones(len(self))
        for i in (*range(len(self.learners)), self.leader):  # the leader overrides all others
            if seen := self._seen[i]:
                trust[seen] = self.learners[i].trust
        return trust

    @property
    def scores(self) -> Array:
        """Mean reward of each learner in its span, shape (M,); nan for one without plays."""
        return self._rewards.means

    def forget_pending(self, choices: Choice | Iterable[Choice] | None = None) -> None:
        """Forget pending choices, as :meth:`~stoic.optimizer.Optimizer.forget_pending`."""
        for forgotten in self.history.pending.forget(choices):
            self._learner_of(forgotten).forget_pending(_question(forgotten))
        if choices is None:
            for learner in self.learners:
                learner.forget_pending()

    def _refuse(self, results: Array) -> None:
        low, high = self._rewards.low, self._rewards.high
        for result in results.tolist():
            if not low <= result <= high:
                raise ValueError(
                    f"Balancing compares rewards in [{low:g}, {high:g}], got {result}: "
                    "give the range of the rewards as span=, or outside='clip'."
                )

    def _pass_on(self, one: Evaluations, answered: Choice | None) -> int | None:
        """Pass an evaluation to the learners that shall observe it; return whose play it was."""
        # With a choice that is not its own, a learner keeps its own choices pending.
        answered = answered or Choice(one.x[0])
        # One names its owner also where the caller keeps the account of pending points.
        owner = _owner(answered) if "question" in answered.notes else None
        noise = None if np.isnan(one.noise).all() else one.noise
        for i, learner in enumerate(self.learners):
            if owner is not None and i != owner and not (self.everything and i in self.kept):
                continue
            choice = _question(answered) if i == owner else answered
            learner.tell(one.x, one.observed, noise, failed=one.failed, choice=choice)
            if one.failed is None:
                self._seen[i].append(len(self) - 1)
        return owner

    def _score(self, owner: int, reward: float) -> None:
        """Count a play, then eliminate learners whose rewards contradict their bound."""
        self._rewards.add(owner, reward)
        if callable(self.span):
            if self._rewards.outgrown(len(self)):
                self._rewards.move(*self.span(self.domain, self.observations), len(self))
        elif self._rewards.missed:
            warnings.warn(
                f"All of the first rewards are outside of the span ({self._rewards.low:g}, "
                f"{self._rewards.high:g}), so that balancing compares nothing: give the range of "
                "the rewards as span=(low, high), or scale them.",
                UserWarning,
                stacklevel=3,
            )
        if len(self.kept) > 1:
            self._drop()

    def _drop(self) -> None:
        """Eliminate by eq. (24), normalised by the plays: as printed it drops who played less."""
        intervals = {i: self._interval(i) for i in self.kept}
        floor = max(lower for lower, _ in intervals.values())
        self.kept = [i for i, (_, upper) in intervals.items() if upper >= floor]

    def _interval(self, i: int) -> tuple[float, float]:
        """Bounds on the mean of the best reward that i's plays imply, if i is well-specified."""
        lower, upper = self._earned(i)
        plays = int(self.plays[i])
        # The scale is 1 unless the span is estimated: bounds are in units of it then
        return lower, upper + self._rewards.scale * self.bounds[i](
            plays
        ) / plays if plays else upper

    def _earned(self, i: int) -> tuple[float, float]:
        """Bounds on i's mean reward."""
        plays = int(self.plays[i])
        if not plays:
            return -math.inf, math.inf
        width = self._rewards.width
        if self.c is None:
            slack = deviation(plays, len(self.learners), self.delta, self.proxy)
        else:
            doubt = math.log(len(self.learners) * max(math.log(plays), 1.0) / self.delta)
            slack = self.c * math.sqrt(doubt / plays)
        slack *= width if self.unit == "span" else self._rewards.spread
        slack += (self.corrupted * width + self.budget) / plays
        mean = self._rewards.mean(i)
        return mean - slack, mean + slack


def build(
    domain: Domain,
    recipe: Callable[[Domain], Parts | Balancing] | Parts | Balancing | None = None,
    seed: int | np.random.Generator | None = None,
) -> Learner | Balanced:
    """Build any recipe on a domain: a learner, or several that are balanced.

    Arguments are those of :class:`~stoic.learner.Learner`; each of several learners has the seed.
    """
    made = recipe(domain) if callable(recipe) else recipe
    if isinstance(made, Balancing):
        learners = [Learner(domain, on_their_own_scale(base), seed) for base in made.bases]
        return Balanced(learners, made.bounds, **made.options)
    return Learner(domain, made, seed)


def _owner(question: Choice) -> int:
    return cast(int, question.notes["learner"])


def _question(choice: Choice) -> Choice:
    """Choice as the learner that suggested it made it."""
    return cast(Choice, choice.notes["question"])


def _check_learners(learners: list[Learner | Balanced], bounds: list[Bound]) -> None:
    if not learners or len(learners) != len(bounds):
        raise ValueError(
            f"Balancing needs at least one learner and one bound for each, got {len(learners)} "
            f"learners and {len(bounds)} bounds."
        )
    for i, (learner, bound) in enumerate(zip(learners, bounds, strict=True)):
        if learner.domain is not learners[0].domain:
            raise ValueError(
                f"All learners must have one and the same domain: that of learner {i} is another."
            )
        if any(learner is other for other in learners[:i]):
            raise ValueError(
                f"Learner {i} was given before: each has a memory of its own, so make another one."
            )
        if len(learner.observations) or len(learner.failures) or learner.pending:
            raise ValueError(
                f"Learner {i} was queried or has results: balance new learners, and tell what is "
                "known to the one that balances them."
            )
        claimed = [bound(n) for n in (0, 1, 2, 1000)]
        if not all(a <= b for a, b in zip([0.0, *claimed], claimed, strict=False)):
            raise ValueError(
                f"A promise of regret is not negative and does not fall, but learner {i} promises "
                f"{claimed} after 0, 1, 2 and 1000 plays."
            )


def _check_numbers(
    span: object,
    outside: str,
    corrupted: int,
    budget: float,
    c: float | None,
    delta: float,
    proxy: float,
) -> None:
    if not callable(span):
        check_span(span)
    elif outside == "refuse":
        raise ValueError("A span that is found in the results has no outside: use outside='clip'.")
    if outside not in ("clip", "refuse"):
        raise ValueError(f"outside is 'clip' or 'refuse', got {outside!r}.")
    if not (0 <= corrupted < math.inf and 0.0 <= budget < math.inf):
        raise ValueError(
            f"Corrupted results and a budget are numbers >= 0, got {corrupted!r} and {budget!r}."
        )
    if c is not None and (isinstance(c, str | list | tuple | dict) or not 0.0 <= c < math.inf):
        raise ValueError(f"The scale c of the comparison is a number >= 0 or None, got {c!r}.")
    if not (0.0 < delta < 1.0 and 0.0 < proxy < math.inf):
        raise ValueError(f"delta is between 0 and 1 and proxy positive, got {delta!r}, {proxy!r}.")
