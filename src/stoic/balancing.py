"""A learner of learners: regret bound balancing with elimination [Pacchiano2020]_.

It plays whichever learner has promised the least regret so far, and drops one whose rewards show
that it cannot have kept its promise. It need not know which of its learners is right about the
world, only that one of them is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, Protocol, overload

import numpy as np

from stoic.data import (
    FAILURES,
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
from stoic.domains import Domain
from stoic.pending import Pending, Waiting, check_count
from stoic.policies.base import Band
from stoic.posteriors.base import Posterior
from stoic.posteriors.scales import Scale
from stoic.promises import Bound, deviation
from stoic.rewards import Rewards, check_span


class Base(Protocol):
    """What is balanced: a :class:`~stoic.learner.Learner`, or another ``Balanced``."""

    @property
    def domain(self) -> Domain: ...

    def ask(
        self, n: int, *, among: object = None, pending: object | None = None
    ) -> list[Choice]: ...

    def tell(
        self,
        x: object,
        y: object = None,
        noise: object = None,
        *,
        failed: FailureKind | None = None,
        choice: Choice | None = None,
    ) -> None: ...

    def recommend(
        self,
        width: float | None = 2.0,
        *,
        settings: object = None,
        among: object = None,
        context: Mapping[int, float] | None = None,
    ) -> Recommendation: ...

    def active(self) -> Booleans: ...

    def band(self) -> Band: ...

    def forget_pending(self, *choices: Choice) -> None: ...

    @property
    def rng(self) -> np.random.Generator: ...

    @rng.setter
    def rng(self, rng: np.random.Generator) -> None: ...

    @property
    def observations(self) -> Observations: ...

    @property
    def failures(self) -> Failures: ...

    @property
    def pending(self) -> list[Choice]: ...

    @property
    def posterior(self) -> Posterior: ...

    @property
    def estimate(self) -> Posterior: ...

    @property
    def trust(self) -> Array: ...


class _Result(NamedTuple):
    """One result, the question it answers and who asked; nobody for a result that was offered."""

    x: Array
    y: float | None
    noise: float | None
    question: Choice | None
    asker: int | None


class Balanced:
    """Regret bound balancing with elimination, Algorithm 3 of [Bogunovic2021b]_.

    ask / tell / recommend, as a :class:`~stoic.learner.Learner`. The notes of a choice say which
    ``learner`` asked it, and its own ``question``.

    Parameters
    ----------
    learners:
        The base learners, all on one domain and none of them told anything yet.
    bounds:
        For each, its :class:`~stoic.promises.Promise` or another bound R(N) >= 0, not falling, on
        the regret after N of its own plays. In units of the results, or of their scale where the
        span is found in them.
    span:
        The range of rewards, (low, high). A :class:`~stoic.posteriors.scales.Scale` finds one in
        the results instead, three scales on either side of their location; whenever there are a
        quarter more results it is found anew, and all of them are scored anew.
    outside:
        What becomes of a reward outside of the span: ``"clip"`` moves it to the nearer end, and nan
        and failures to the lower one; ``"refuse"`` raises ``ValueError``. The learners are told
        what was told, whatever the score.
    lies, budget:
        How many results may be anything, and how far all others may be moved altogether, in units
        of the results. Each learner may have met all of them.
    c:
        ``None`` compares by :func:`~stoic.promises.deviation`. A number compares by
        c sqrt(ln(M ln N / delta) / N) as printed, ln N taken as 1 for N < e.
    unit:
        What the comparison is a multiple of: the width of the ``"span"``, which the theorem needs,
        or twice the standard deviation of all clipped rewards, their ``"spread"``, which is never
        more, and much less where rewards vary little.
    delta, proxy:
        As in ``deviation``; ``proxy=0.25`` is enough where all points may always be chosen.
    everything:
        Whether a learner is told all results, or only those of its own plays. The theorem needs the
        latter. See below.

    Attributes
    ----------
    kept:
        The learners that were not dropped, rising.
    plays:
        N_i, how many results of its own questions each learner has, shape (M,).

    Guarantee
    ---------
    Suppose action sets are drawn independently, all with the same law; rewards lie in the span;
    ``everything=False``. Then, with probability 1 - delta, no learner that keeps its promise is
    ever dropped. Let i be such a learner, and let one question be asked at a time. If another, j,
    is played n + 1 times, and i has N plays before the last of these, n, N >= 1, these n + 1 plays
    have a regret of at most

        R_j(n) + (n / N) R_i(N) + 2 n (s(N) + s(n)) + w,   R_j(n) <= R_i(N),

    s being the ``deviation`` times w, the width of the span: before its last play j was kept, and
    promised the least; that play may drop it, and costs at most w. With the promises of EC-GP-UCB
    this is [Bogunovic2021b]_, Proposition 1, up to the choice of c.

    Learners that keep their promise are also kept, and all have at most this regret measured in
    clipped rewards,

    - with ``outside="clip"`` for rewards of *any* tails that are f plus noise Z, or f >= 0 times
      noise W >= 0 of mean 1, the same law everywhere: the mean of a clipped reward does not fall
      with f, and rises by no more than f does, so what is promised of f is kept for it. In f the
      regret is at most 1 / p times as much if, at *every* level f between the least and the
      largest value of f, not only at those that it takes, P(f + Z in the span) >= p, or
      E[W; f W in the span] >= p: this is the slope of the clipped mean;
    - with lies on at most ``lies`` results and others moved by at most ``budget`` in all, if s is
      enlarged by (lies times the width of the span + budget) / N. A single lie, of any size, nan
      included, moves a clipped mean by no more than width / N.

    Heuristic: a span found in the results, ``unit="spread"``, and a ``c`` that is not large enough.
    With ``everything=True`` a learner keeps a promise that follows from its own bands, at its own
    choices (GP-UCB, self-normalised): other results narrow them. It need not keep one in which the
    band grows with the number of results, as for an error of the model, eps sqrt(t), or with
    corruption that it would not have met.

    The last learner is never dropped, since the one with the best lower bound is always kept.

    Raises
    ------
    ValueError
        If there is no learner, numbers do not match, domains differ or a number is out of range.
    """

    plans = False  # whoever is asked next depends on results

    def __init__(
        self,
        learners: Sequence[Base],
        bounds: Sequence[Bound],
        *,
        span: tuple[float, float] | Scale = (0.0, 1.0),
        outside: Literal["clip", "refuse"] = "clip",
        lies: int = 0,
        budget: float = 0.0,
        c: float | None = None,
        unit: Literal["span", "spread"] = "span",
        delta: float = 0.1,
        proxy: float = 0.5,
        everything: bool = False,
    ) -> None:
        self.learners, self.bounds = list(learners), list(bounds)
        _check_learners(self.learners, self.bounds)
        _check_numbers(span, outside, lies, budget, c, delta, proxy)
        if unit not in ("span", "spread"):
            raise ValueError(f"unit is 'span' or 'spread', got {unit!r}.")
        self.domain = self.learners[0].domain
        self.span, self.outside, self.everything = span, outside, everything
        self.lies, self.budget = lies, budget
        self.c, self.unit, self.delta, self.proxy = c, unit, delta, proxy
        self.kept = list(range(len(self.learners)))
        self._rewards = Rewards(len(self.learners), None if callable(span) else span)
        self._pending = Pending()
        self._told: list[tuple[Array, float, float]] = []  # x, y, noise or nan
        self._failures: list[tuple[Array, FailureKind]] = []
        self._heard: list[list[int]] = [[] for _ in self.learners]  # which of these, in order

    def __len__(self) -> int:
        return len(self._told)

    @property
    def plays(self) -> Integers:
        """N_i, how many results of its own questions each learner has, shape (M,)."""
        return self._rewards.plays

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
        """Where to evaluate next, as :meth:`stoic.learner.Learner.ask`.

        Each choice comes from the kept learner whose promise is least, eq. (23), once what it has
        on its way counts as played; from the next one if that waits for results.
        """
        count = check_count(n)
        if pending is not None:  # theirs to count, and those of this call to add
            theirs = np.array(pending, dtype=float).reshape(-1, self.domain.dim)
        given: dict[str, Any] = {"among": among}
        if context is not None:
            given["context"] = context
        asked = self.plays.tolist()
        for question in self._pending:
            asked[_asker(question)] += 1
        choices: list[Choice] = []
        for _ in range(count):
            if pending is not None:
                given["pending"] = np.array([*theirs, *(choice.x for choice in choices)])
            try:
                choice = self._next(asked, given)
            except Exception:  # nobody gets these, so nobody is to wait for them
                for other in choices if pending is None else ():
                    self._own(other).forget_pending(_question(other))
                raise
            if choice is None:
                break
            choices.append(choice)
            asked[_asker(choice)] += 1
        if pending is None:
            self._pending.add(choices)
        if n is not None:
            return choices
        if not choices:
            raise Waiting(
                f"All learners wait for results, {len(self._pending)} of them: tell them, or call "
                "forget_pending() if they will never come."
            )
        return choices[0]

    def _next(self, asked: list[int], given: dict[str, Any]) -> Choice | None:
        """The question of who promises least and does not wait for results."""
        for i in sorted(self.kept, key=lambda i: self.bounds[i](asked[i])):
            if answer := self.learners[i].ask(1, **given):
                notes = {**answer[0].notes, "learner": i, "question": answer[0]}
                return replace(answer[0], notes=notes)
        return None

    def _own(self, choice: Choice) -> Base:
        return self.learners[_asker(choice)]

    def tell(
        self,
        x: object,
        y: object = None,
        noise: object = None,
        *,
        failed: FailureKind | None = None,
        choice: Choice | Sequence[Choice] | None = None,
    ) -> None:
        """What was executed and what came of it, as :meth:`stoic.learner.Learner.tell`.

        A result is the reward of the learner that asked for it, and a play of it. One that answers
        no question is told to all learners and is nobody's reward. A failure is a reward of the
        lower end of the span, unless it is ``"transient"``: then it is no play.

        Raises
        ------
        ValueError
            As there, and for a reward outside of the span if such are refused. Nothing is stored
            then.
        """
        for result in self._results(x, y, noise, failed, choice):
            self._pass_on(result, failed)
            if result.asker is not None and failed != "transient":
                self._score(result.asker, math.nan if result.y is None else result.y)

    def recommend(
        self,
        width: float | None = 2.0,
        *,
        settings: object = None,
        among: object = None,
        context: Mapping[int, float] | None = None,
    ) -> Recommendation:
        """What the leader recommends, see ``leader``; arguments as for a learner."""
        if not self._told:
            raise ValueError("Nothing was told yet, so there is nothing to recommend: ask, tell.")
        leader = self.learners[self.leader]
        return leader.recommend(width, settings=settings, among=among, context=context)

    @property
    def leader(self) -> int:
        """Who recommends: the kept learner whose mean reward has the best lower bound.

        One that was told no result cannot recommend, so it is passed over while another was.
        Where all are told ``everything`` they know the same, and differ in what they believe: then
        it is the first, in the order they were given in, whose upper bound reaches that lower one.
        """
        everybody = range(len(self.learners))
        able = [i for i in self.kept if self._heard[i]] or [i for i in everybody if self._heard[i]]
        earned = {i: self._earned(i) for i in able or self.kept}
        best = max(earned, key=lambda i: earned[i][0])
        if not self.everything:
            return best
        return next(i for i, (_, upper) in earned.items() if upper >= earned[best][0])

    @property
    def posterior(self) -> Posterior:
        """The leader's."""
        return self.learners[self.leader].posterior

    @property
    def estimate(self) -> Posterior:
        """The leader's."""
        return self.learners[self.leader].estimate

    def band(self) -> Band:
        """Where the leader believes f to be."""
        return self.learners[self.leader].band()

    def active(self) -> Booleans:
        """Which rows of a finite domain some kept learner has not ruled out, shape (N,)."""
        rows: Booleans = np.any([self.learners[i].active() for i in self.kept], axis=0)
        return rows

    @property
    def observations(self) -> Observations:
        """All that was told so far, whoever asked for it."""
        x = np.array([x for x, _, _ in self._told]).reshape(-1, self.domain.dim)
        y, noise = (np.array([row[k] for row in self._told], dtype=float) for k in (1, 2))
        return Observations(x, as_results(y), noise, self.domain.locate(x) if len(x) else None)

    @property
    def failures(self) -> Failures:
        """What was told to have failed, in order, whoever asked for it."""
        points = np.array([x for x, _ in self._failures]).reshape(-1, self.domain.dim)
        return Failures(points, tuple(kind for _, kind in self._failures))

    @property
    def rng(self) -> np.random.Generator:
        """Of the first learner; setting it sets that of all. Balancing draws nothing at random."""
        return self.learners[0].rng

    @rng.setter
    def rng(self, rng: np.random.Generator) -> None:
        for learner in self.learners:
            learner.rng = rng

    @property
    def trust(self) -> Array:
        """How far each observation is believed, shape (n,): by who was told it, the leader last."""
        trust = np.ones(len(self._told))
        for i in (*range(len(self.learners)), self.leader):
            if heard := self._heard[i]:
                trust[heard] = self.learners[i].trust
        return trust

    @property
    def scores(self) -> Array:
        """Mean reward of each learner in its span, shape (M,); nan for one without plays."""
        return self._rewards.means

    @property
    def pending(self) -> list[Choice]:
        """Choices that were handed out and not told yet, oldest first."""
        return list(self._pending)

    def forget_pending(self, *choices: Choice) -> None:
        """Treat these choices, or all that were not told yet, as never to be told."""
        for choice in choices:
            if self._pending.answer(choice.x, choice) is not None:
                self._own(choice).forget_pending(_question(choice))
        if not choices:
            self._pending.clear()
            for learner in self.learners:
                learner.forget_pending()

    def _results(
        self,
        x: object,
        y: object,
        noise: object,
        failed: str | None,
        choice: Choice | Sequence[Choice] | None,
    ) -> list[_Result]:
        """What was told, row by row with its question, or an error and nothing changed."""
        points = np.array(x, dtype=float)
        if points.ndim < 2:
            points = points.reshape(1, -1)
        self.domain.locate(points)
        k = len(points)
        answered = [choice] if isinstance(choice, Choice) else choice
        if (y is None) == (failed is None) or not (failed is None or failed in FAILURES):
            raise ValueError(
                "Tell a result y, or why there is none: failed='transient', 'infeasible' or 'bad'; "
                f"got y={y!r} and failed={failed!r}."
            )
        results: list[float | None] = [None] * k
        if y is not None:
            results = np.asarray(y, dtype=float).ravel().tolist()
        for name, many in (("choices", answered), ("results", results)):
            if many is not None and len(many) != k:
                raise ValueError(f"Got {k} inputs but {len(many)} {name}: tell one for each.")
        noises: list[float | None] = [None] * k
        if noise is not None:
            variance = np.asarray(noise, dtype=float)
            if variance.size not in (1, k) or not np.all((variance > 0) & np.isfinite(variance)):
                raise ValueError(
                    f"A noise variance is a positive number, one for each result or one for all; "
                    f"got {noise!r} for {k} results."
                )
            noises = np.broadcast_to(variance.ravel(), (k,)).tolist()
        if self.outside == "refuse":
            self._refuse(results)
        rows = []
        for row in range(k):
            meant = None if answered is None else answered[row]
            question = self._pending.answer(points[row], meant)
            if question is None and meant is not None and "question" in meant.notes:
                question = meant  # somebody else keeps account of what is on its way
            asker = None if question is None else _asker(question)
            rows.append(_Result(points[row], results[row], noises[row], question or meant, asker))
        return rows

    def _refuse(self, results: list[float | None]) -> None:
        low, high = self._rewards.low, self._rewards.high
        for result in results:
            if result is not None and not low <= result <= high:
                raise ValueError(
                    f"Balancing compares rewards in [{low:g}, {high:g}], got {result}: "
                    "give the range of the rewards as span=, or outside='clip'."
                )

    def _pass_on(self, result: _Result, failed: FailureKind | None) -> None:
        """Tell the learners that are to hear of it."""
        if failed is None:
            assert result.y is not None
            told_noise = math.nan if result.noise is None else result.noise
            self._told.append((result.x, result.y, told_noise))
        else:
            self._failures.append((result.x, failed))
        for i, learner in enumerate(self.learners):
            choice = result.question
            if i == result.asker:
                assert choice is not None
                choice = _question(choice)
            elif result.asker is not None and not (self.everything and i in self.kept):
                continue
            # Told with a question that is not its own, a learner keeps its own open.
            other = choice or Choice(result.x)
            learner.tell(result.x, result.y, result.noise, failed=failed, choice=other)
            if failed is None:
                self._heard[i].append(len(self._told) - 1)

    def _score(self, asker: int, reward: float) -> None:
        """Count a play, then drop who cannot have kept its promise."""
        self._rewards.add(asker, reward)
        if callable(self.span) and self._rewards.outgrown(len(self)):
            self._rewards.move(*self.span(self.domain, self.observations), len(self))
        if len(self.kept) > 1:
            self._drop()

    def _drop(self) -> None:
        """Eq. (24), normalised by the plays: as printed it drops who has played less."""
        intervals = {i: self._interval(i) for i in self.kept}
        floor = max(lower for lower, _ in intervals.values())
        self.kept = [i for i, (_, upper) in intervals.items() if upper >= floor]

    def _interval(self, i: int) -> tuple[float, float]:
        """Bounds on the mean of the best reward that i's plays imply, if i keeps its promise."""
        lower, upper = self._earned(i)
        plays = int(self.plays[i])
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
        slack += (self.lies * width + self.budget) / plays
        mean = self._rewards.mean(i)
        return mean - slack, mean + slack


def _asker(question: Choice) -> int:
    asker = question.notes["learner"]
    assert isinstance(asker, int)
    return asker


def _question(choice: Choice) -> Choice:
    """What the asker itself knows it as."""
    question = choice.notes["question"]
    assert isinstance(question, Choice)
    return question


def _check_learners(learners: list[Base], bounds: list[Bound]) -> None:
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
                f"Learner {i} was asked or told before: balance new learners, and tell what is "
                "known to the one that balances them."
            )
        promised = [bound(n) for n in (0, 1, 2, 1000)]
        if not all(a <= b for a, b in zip([0.0, *promised], promised, strict=False)):
            raise ValueError(
                f"A promise of regret is not negative and does not fall, but learner {i} promises "
                f"{promised} after 0, 1, 2 and 1000 plays."
            )


def _check_numbers(
    span: object,
    outside: str,
    lies: int,
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
    if not (0 <= lies < math.inf and 0.0 <= budget < math.inf):
        raise ValueError(f"Lies and their budget are numbers >= 0, got {lies!r} and {budget!r}.")
    if c is not None and not 0.0 <= c < math.inf:
        raise ValueError(f"The scale c of the comparison is a number >= 0 or None, got {c!r}.")
    if not (0.0 < delta < 1.0 and 0.0 < proxy < math.inf):
        raise ValueError(
            f"delta lies between 0 and 1 and proxy is positive, got {delta!r}, {proxy!r}."
        )
