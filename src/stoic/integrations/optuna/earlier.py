"""Earlier studies as sources of a new one, and their record in its storage.

A source is recorded as what its own model had learned when the new study began: so all workers, and
a resumed study, use the same ones, even if the earlier study goes on or is deleted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
    distribution_to_json,
    json_to_distribution,
)
from optuna.study import Study

from stoic import linalg
from stoic.data import DISTRUSTED, Array
from stoic.integrations.optuna.coordinates import Category, Coordinate
from stoic.integrations.optuna.encoding import Encoding
from stoic.integrations.optuna.internals import possible
from stoic.integrations.optuna.pieces import read_text, study_attributes, write_text
from stoic.kernels import Matern52, Scaled
from stoic.posteriors.base import Posterior
from stoic.posteriors.exact import Exact
from stoic.posteriors.mixture import MixturePosterior
from stoic.sources import Informed, Source

WARM_START = "stoic:warm-start"  # system attribute of a study: its sources, in pieces

ABSENT: Any = object()  # in the place of a value of a parameter that a setting does not have
_KNOTS = 33  # of the map from a new range to a source's
_FARTHEST = 3.0  # widths outside of a source's range, where its model knows nothing any more
_DESIGN = 512  # points over which a source is standardised
_NUMERIC = FloatDistribution | IntDistribution


@dataclass(frozen=True, eq=False)
class EarlierStudy:
    """Earlier study, as a source of new ones with some of its parameters.

    Attributes
    ----------
    name, begun:
        Of the study: its name, and when its first trial began; empty if that is not known.
    trials:
        Number of its results.
    space:
        The parameters that were searched.
    best:
        Its recommended setting.
    lengthscales, variance:
        Kernel of its model, on the encoded space with p coordinates.
    z:
        Inputs of the results that its model uses, shape (n, p).
    residuals, noise:
        These results, larger is better, less the prior mean, and their noise variances, both (n,).
    """

    name: str
    trials: int
    space: dict[str, BaseDistribution]
    best: dict[str, Any]
    lengthscales: Array
    variance: float
    z: Array
    residuals: Array
    noise: Array
    begun: str = ""

    def on(self, encoding: Encoding) -> Source | None:
        """Return the source as a function on another space; None if it says nothing there.

        A parameter is the same if its name is, and both are numbers or both choices. Outside of
        its range there, the source's own model is extrapolated, which knows less and less; but
        below a logarithmic range a value counts at its low end. A choice that the source does not
        have counts as none of its choices, and a parameter that only the source has as in its best
        setting.
        """
        columns, tables, shared = [], [], False
        for name, part in Encoding(self.space).parts.items():
            other = encoding.parts.get(name)
            if isinstance(part, Coordinate) and isinstance(other, Coordinate):
                columns.append(other.column)
                tables.append(_table(other, part))
                shared = True
            elif isinstance(part, Category) and isinstance(other, Category):
                for choice in part.distribution.choices:
                    known = possible(other.distribution, choice) and other.has(choice)
                    at = other.encode(choice).index(1.0) if known else 0
                    columns.append(other.columns[at])
                    tables.append(np.linspace(0.0, float(known), _KNOTS))
                    shared = shared or known
            else:
                # A constant, whatever the coordinate that it follows
                for value in _encoded(part, self.best.get(name, ABSENT)):
                    columns.append(0)
                    tables.append(np.full(_KNOTS, value))
        if not shared:
            return None
        kernel = Scaled(Matern52(self.lengthscales), self.variance)
        K = kernel(self.z, self.z)
        K.flat[:: len(K) + 1] += self.noise
        try:
            L = linalg.cholesky(K)
        except linalg.NotPositiveDefiniteError:  # a record may hold any numbers
            return None
        weights = linalg.cholesky_solve(L, self.residuals)
        best = encoding.encode(self.setting(encoding.space))
        raw = Source(
            self.name, best, kernel, self.z, L, weights, np.array(columns), np.array(tables)
        )
        design = encoding.box.spread(_DESIGN, np.random.default_rng(0))
        means = raw.moments(design)[1]
        # Shape (m,): posterior variance, and squared distance of the mean from its average
        spread = raw.variance(design) + (means - means.mean()) ** 2
        unit = float(spread.mean()) ** 0.5
        if not 0.0 < unit < math.inf:  # the same value everywhere, or one beyond all floats
            return None
        # replace() alone would share the caches, which are in units of the raw one
        return replace(raw, centre=float(means.mean()), unit=unit, _known={}, _square={})

    def choices(self) -> Iterator[dict[str, Any]]:
        """Yield each choice of each category, as settings of it alone."""
        for name, distribution in self.space.items():
            if isinstance(distribution, CategoricalDistribution):
                yield from ({name: choice} for choice in distribution.choices)

    def value(self, name: str, distribution: BaseDistribution) -> Any:
        """Return the best value of a parameter as near as another range has it; else ``ABSENT``."""
        value = self.best.get(name, ABSENT)
        if value is ABSENT or possible(distribution, value):
            return value
        if not isinstance(distribution, _NUMERIC) or not _is_number(value):
            return ABSENT
        part = Coordinate(distribution, 0)
        low, high = distribution.low, distribution.high
        return part.decode(np.array(part.encode(min(max(value, low), high))))

    def setting(self, space: Mapping[str, BaseDistribution]) -> dict[str, Any]:
        """Return the best setting in a space; the middle of a range that the source has not."""
        found = {}
        for name, distribution in space.items():
            value = self.value(name, distribution)
            if value is ABSENT:
                if isinstance(distribution, _NUMERIC):
                    value = Coordinate(distribution, 0).decode(np.array([0.5]))
                elif isinstance(distribution, CategoricalDistribution):
                    value = distribution.choices[0]
            found[name] = value
        return found

    def shared(self, space: Mapping[str, BaseDistribution]) -> list[str]:
        """List its parameters that another space has, too: as numbers, or with a common choice."""

        def alike(one: BaseDistribution, other: BaseDistribution) -> bool:
            if isinstance(one, CategoricalDistribution):
                return isinstance(other, CategoricalDistribution) and any(
                    possible(other, choice) for choice in one.choices
                )
            return not isinstance(other, CategoricalDistribution)

        return [name for name, d in self.space.items() if name in space and alike(d, space[name])]

    def unshared(self, space: Mapping[str, BaseDistribution]) -> str:
        """Write for people what of it does not inform another space; empty if all does."""
        shared = self.shared(space)
        if not shared:
            return "it has no parameter of this study"
        other = sorted(self.space.keys() - set(shared))
        return f"with {', '.join(other)} as in its best setting" * bool(other)

    def sentence(self, space: Mapping[str, BaseDistribution]) -> str:
        """Write for people which parameters of another space it informs."""
        shared, note = self.shared(space), self.unshared(space)
        if not shared:
            return f"The study {self.name!r} does not inform this one: {note}."
        return f"The study {self.name!r} informs {', '.join(shared)}{', ' * bool(note)}{note}."

    def record(self) -> str:
        """Return it as JSON."""
        return json.dumps({
            "name": self.name,
            "begun": self.begun,
            "trials": self.trials,
            "space": {name: json.loads(distribution_to_json(d)) for name, d in self.space.items()},
            "best": self.best,
            "lengthscales": self.lengthscales.tolist(),
            "variance": self.variance,
            "rows": np.column_stack([self.z, self.residuals, self.noise]).tolist(),
        })  # fmt: skip

    @classmethod
    def read(cls, text: str) -> EarlierStudy:
        """Read a record.

        Raises
        ------
        ValueError
            If it is none.
        """
        try:
            found = json.loads(text)
            space = {str(n): json_to_distribution(json.dumps(d)) for n, d in found["space"].items()}
            lengthscales, rows = (np.array(found[k], dtype=float) for k in ("lengthscales", "rows"))
            best, p = found["best"], Encoding(space).box.dim
            name, trials, variance = found["name"], found["trials"], float(found["variance"])
            begun = str(found.get("begun", ""))
        except (LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from error
        shapes = lengthscales.shape == (p,) and rows.ndim == 2 and rows.shape[1] == p + 2
        texts = isinstance(best, dict) and isinstance(name, str) and isinstance(trials, int)
        numbers = np.concatenate([rows.ravel(), lengthscales.ravel(), [variance]])
        if not (shapes and texts and len(rows) and space and np.isfinite(numbers).all()) or (
            min(lengthscales.min(), variance, rows[:, -1].min()) <= 0.0
        ):
            raise ValueError("the numbers of a source do not fit its space")
        return cls(
            name, trials, space, best, lengthscales, variance,
            rows[:, :p].copy(), rows[:, p].copy(), rows[:, p + 1].copy(), begun,
        )  # fmt: skip


@dataclass(frozen=True)
class SourceTrust:
    """How much a study trusts an earlier one.

    Attributes
    ----------
    name, trials:
        Of the earlier study: its name, and the number of its results.
    trust:
        Share of the variance of f over the space that a linear model in its mean explains, from 0
        to 1.
    opposite:
        True if what was better there is worse here.
    unshared:
        What of it does not inform this study, in words; empty if all does.
    """

    name: str
    trials: int
    trust: float
    opposite: bool
    unshared: str = ""

    def sentence(self) -> str:
        """Write it for people."""
        notes = ["upside down"] * (self.opposite and self.trust >= DISTRUSTED)
        notes += [self.unshared] * bool(self.unshared)
        trust = f"trust {self.trust:.2f}"
        return f"by {self.name} ({self.trials} results): {', '.join([trust, *notes])}"


def trust_in_sources(
    sources: Sequence[EarlierStudy], encoding: Encoding, posterior: Posterior
) -> tuple[SourceTrust, ...]:
    """Trust in each source given the posterior of a new study; 0 where it says nothing."""
    parts: tuple[Posterior, ...] = (posterior,)
    odds = np.ones(1)
    if isinstance(posterior, MixturePosterior):
        parts, odds = posterior.parts, posterior.weights
    found: dict[str, tuple[float, float]] = {}
    for part, weight in zip(parts, odds, strict=True):
        kernel = part.prior.kernel
        if not (isinstance(part, Exact) and isinstance(kernel, Informed)):
            continue
        slopes = kernel.slopes(part.x, part.alpha) if len(part.x) else np.zeros(len(kernel.sources))
        rest = float(kernel.kernel.diagonal(encoding.box.lower[None])[0])
        shares = slopes**2 / (np.sum(slopes**2) + rest)
        for source, share, slope in zip(kernel.sources, shares, slopes, strict=True):
            trust, pull = found.get(source.name, (0.0, 0.0))
            found[source.name] = trust + weight * share, pull + weight * slope
    trusts = [(s, *found.get(s.name, (0.0, 0.0))) for s in sources]
    return tuple(
        SourceTrust(
            s.name, s.trials, float(trust), bool(pull < 0.0), s.unshared(encoding.known_space)
        )
        for s, trust, pull in trusts
    )


def record_sources(study: Study, sources: Sequence[EarlierStudy]) -> None:
    """Record the sources of a study, in the place of earlier ones."""
    text = json.dumps([source.record() for source in sources])
    write_text(study, WARM_START, text, {"names": [source.name for source in sources]})


def stored_names(study: Study) -> list[str]:
    """Return the names of the sources that are recorded with a study."""
    head = study_attributes(study).get(WARM_START)
    names = head.get("names") if isinstance(head, dict) else None
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def stored_sources(study: Study) -> tuple[EarlierStudy, ...]:
    """Return the sources that are recorded with a study; none if there is no valid record.

    What a storage contains is data: text that is no source is left out.
    """
    text = read_text(study_attributes(study), WARM_START)
    try:
        texts = json.loads(text)
        return tuple(map(EarlierStudy.read, texts if isinstance(texts, list) else []))
    except (ValueError, TypeError, RecursionError):  # the last: nested too deep
        return ()


def _is_number(value: object) -> bool:
    # The last: not nan
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


def _encoded(part: Coordinate | Category, value: Any) -> list[float]:
    """Encode a value; as absent if the parameter does not have it."""
    if value is ABSENT or not possible(part.distribution, value):
        return [part.absent] * len(part.columns)
    return part.encode(value)


def _table(new: Coordinate, old: Coordinate) -> Array:
    """Coordinate in the ``old`` range of evenly spaced values of the ``new`` one, shape (K,)."""
    u = np.linspace(0.0, 1.0, _KNOTS)
    if new.distribution == old.distribution:
        return u
    a, b = (np.array([float(c.distribution.low), float(c.distribution.high)]) for c in (new, old))
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        if new.distribution.log:
            values = np.exp((1.0 - u) * np.log(a[0]) + u * np.log(a[1]))
        else:
            values = (1.0 - u) * a[0] + u * a[1]
        if old.distribution.log:
            above = np.log(np.maximum(values, b[0])) - np.log(b[0])  # 0 has no logarithm
            at = above / (np.log(b[1]) - np.log(b[0]))
        else:
            # Halves, since the width of a range may overflow
            at = (values / 2.0 - b[0] / 2.0) / (b[1] / 2.0 - b[0] / 2.0)
    return np.asarray(np.clip(np.nan_to_num(at, nan=0.5), -_FARTHEST, 1.0 + _FARTHEST))
