"""Model of a study as it is stored with the study, so that nobody begins with a cold fit.

Stored is what a fit had settled on, as numbers, and which trials it had observed, in their order:
the posterior follows from these and the trials. What a storage contains is data. A record that is
malformed, of other trials, of another method or of another space is as none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from optuna.distributions import distribution_to_json
from optuna.study import Study
from optuna.trial import FrozenTrial

from stoic.integrations.optuna.earlier import EarlierStudy
from stoic.integrations.optuna.encoding import Encoding
from stoic.integrations.optuna.internals import constraints
from stoic.integrations.optuna.pieces import read_head, read_text, study_attributes, write_text
from stoic.integrations.optuna.possible import PossibleValues
from stoic.integrations.recipe import InFile, Recipe, text_of
from stoic.models.checkpoint import Checkpoints
from stoic.models.checkpoint_record import read, record

MODEL = "stoic:model"  # system attribute of a study: the model of its search, in pieces

_FORMAT = 1  # counted up when a number means something else
_MOST = 1_000_000  # trials of a record


@dataclass(frozen=True, eq=False)
class StoredModel:
    """What the model of a study had settled on.

    Attributes
    ----------
    method:
        Digest of the recipe, the search space and its encoding.
    order:
        Numbers of the trials that it had observed, in their order.
    digest:
        Of these trials, see :func:`trials_digest`.
    outputs:
        Checkpoints of the models of each objective.
    """

    method: str
    order: tuple[int, ...]
    digest: str
    outputs: tuple[Checkpoints, ...]

    @property
    def windows(self) -> tuple[int, ...]:
        """Number of results when the window of each objective was chosen, 0 without one."""
        of = (each.objective.window for each in self.outputs)
        return tuple(0 if window is None else window.chosen_at for window in of)

    def split(
        self, trials: Sequence[FrozenTrial]
    ) -> tuple[list[FrozenTrial], list[FrozenTrial]] | None:
        """Split trials in those it had observed, in that order, and others; None if some lack."""
        left = {trial.number: trial for trial in trials}
        if not left.keys() >= set(self.order):
            return None
        return [left.pop(number) for number in self.order], list(left.values())

    def text(self) -> str:
        """Return it as JSON."""
        return json.dumps({
            "format": _FORMAT,
            "method": self.method,
            "order": _runs(self.order),
            "digest": self.digest,
            "outputs": list(map(record, self.outputs)),
        })  # fmt: skip

    @classmethod
    def read(cls, text: str) -> StoredModel | None:
        """Read JSON; None if it is no such record."""
        try:
            found = json.loads(text)
            if found["format"] != _FORMAT:
                return None
            order = _numbers(found["order"])
            return cls(
                str(found["method"]),
                order,
                str(found["digest"]),
                tuple(read(output, len(order)) for output in found["outputs"]),
            )
        except (LookupError, TypeError, ValueError, ArithmeticError, RecursionError):
            return None


def trials_digest(trials: Iterable[FrozenTrial]) -> str:
    """Digest of all that a model observes of finished trials, in this order.

    These do not change, but another study may have the same numbers.
    """
    found = hashlib.sha256()
    for trial in trials:
        said = {k: v for k, v in trial.user_attrs.items() if k.startswith("stoic:")}
        parts = (
            trial.number, trial.state.name, trial.values, sorted(trial.params.items()),
            sorted(said.items()), sorted(constraints(trial).items()),
            sorted(trial.intermediate_values.items()),
        )  # fmt: skip
        found.update(repr(parts).encode(errors="replace"))
    return found.hexdigest()


def method_digest(
    recipe: Recipe,
    encoding: Encoding,
    possible: PossibleValues | None,
    sources: Iterable[EarlierStudy],
    signs: Sequence[float],
) -> str | None:
    """Digest of all that a model depends on beside the trials.

    None where that is not known: for a function, and for a recipe in a file, which may change.
    """
    if isinstance(recipe, InFile) or (text := text_of(recipe)) is None:
        return None
    tree = encoding.tree
    try:
        parts: list[Any] = [
            text,
            list(map(float, signs)),
            None if possible is None else possible.record(),
            [source.record() for source in sources],
            {name: distribution_to_json(d) for name, d in encoding.space.items()},
            {name: encoding.choices[name] for name in encoding.met},
            [] if tree is None else [[of.tolist(), repr(node)] for of, node in tree.rules],
        ]
        if tree is not None and (tree.absent < 0.0).any():
            parts.append(tree.absent.tolist())
        for name, branches in encoding.branches.items():
            ranges = {n: distribution_to_json(d) for n, d in sorted(branches.ranges.items())}
            parts.append([name, branches.by, ranges])
    except (TypeError, ValueError):  # a choice that is no data
        return None
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def stored_model(study: Study) -> StoredModel | None:
    """Return the model that is stored with a study; None if there is none."""
    text = read_text(study_attributes(study), MODEL)
    return StoredModel.read(text) if text else None


def stored_trials(study: Study) -> int:
    """Return the number of trials that the stored model had observed, 0 without."""
    count = read_head(study_attributes(study), MODEL).get("trials")
    return count if type(count) is int else 0


def store_model(study: Study, model: StoredModel) -> None:
    """Store a model with a study, in the place of an earlier one, which stays until it is there."""
    slot = "b" if read_head(study_attributes(study), MODEL).get("of") == "a" else "a"
    write_text(study, MODEL, model.text(), {"trials": len(model.order)}, slot)


def _runs(numbers: Sequence[int]) -> list[list[int]]:
    """Return the first of each run of consecutive numbers, and how many they are."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == sum(runs[-1]):
            runs[-1][1] += 1
        else:
            runs.append([number, 1])
    return runs


def _numbers(runs: Any) -> tuple[int, ...]:
    """Return the different numbers of runs.

    Raises
    ------
    ValueError
        If they are not that, or too many.
    """
    pairs = [(first, count) for first, count in runs]
    if not all(type(n) is int and 0 <= n <= _MOST for pair in pairs for n in pair):
        raise ValueError("no runs of numbers of trials")
    if sum(count for _, count in pairs) > _MOST:
        raise ValueError("too many trials")
    found = tuple(n for first, count in pairs for n in range(first, first + count))
    if len(set(found)) < len(found):
        raise ValueError("a trial was observed twice")
    return found
