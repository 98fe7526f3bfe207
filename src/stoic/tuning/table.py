"""Finished trials from a CSV file: data that was there before the study."""

from __future__ import annotations

import ast
import csv
import math
import re
import shlex
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial
from rich.console import Console
from rich.progress import track

from stoic.integrations.optuna import CENSORED, EXECUTED, FAILED, NOISE, VALUES
from stoic.integrations.optuna.encoding import as_written, check_fixed
from stoic.integrations.optuna.executed import check_inside, run_with, unknown
from stoic.integrations.optuna.explanation import setting
from stoic.integrations.optuna.internals import constraint_attrs, constraints, possible
from stoic.integrations.optuna.unmodelled import FAILURE
from stoic.integrations.reported import finite, noise_of
from stoic.printable import printable
from stoic.refusal import RefusalError, nearest
from stoic.tuning.constraint import Constraint
from stoic.tuning.failure import parse_kind
from stoic.tuning.space import Space, check_name, parse_as

_PARAMETER = "params_"  # before names, in the table that stoic trials -f csv writes
_VALUE, _ERROR = "values_", "standard_error_"  # before names of objectives, if there are several
_CONSTRAINT, _OUTPUT = "constraints_", "outputs_"
_EXECUTED = "executed_"  # before names of parameters that were run with another value
_BESIDE = ("failed", "standard_error", "censored")
_NOTES = ("user_attrs_", "system_attrs_")  # before names of attributes, there
_ATTRIBUTES = {
    f"{_NOTES[0]}{key}": key for key in (FAILED, FAILURE, NOISE, CENSORED, EXECUTED, VALUES)
}
_BESIDE_ATTRIBUTES = {
    NOISE: "a standard error",
    EXECUTED: "an executed parameter",
    FAILED: "a kind of failure",
}
# Columns of that table which a new study cannot take over, or that the others imply.
_DERIVED = ("number", "datetime_start", "datetime_complete", "duration", "state")
_MANY = 200  # rows; adding as many to a database takes 1 to 5 s
_DECIMAL = r"[+-]?\d+[.]\d+(?:[eE][+-]?\d+)?"  # with a decimal mark
_DIGITS = 7  # of numbers that are compared
_SUGGESTED = 12  # distinct texts of a column that are suggested as choices


@dataclass(frozen=True)
class Table:
    """Finished trials that were read from a file, none of them stored yet.

    Attributes
    ----------
    trials:
        In the order of the rows.
    unused:
        Names of columns that are neither a parameter nor anything that a trial has.
    running:
        Number of rows of trials that have not ended.
    empty:
        Numbers, in a column of this name, of rows that have neither all values nor a failure.
    unlimited:
        Names of constraints without a column.
    exported:
        True if it is a table of all trials of a study, perhaps of another one.
    """

    trials: tuple[FrozenTrial, ...]
    unused: tuple[str, ...]
    running: int
    empty: frozenset[int] = frozenset()
    unlimited: tuple[str, ...] = ()
    exported: bool = False

    def numbered(self, study: optuna.Study) -> dict[int, tuple[FrozenTrial, FrozenTrial]]:
        """Return each trial whose number and parameters a row has, and the row, by number.

        Of what was exported only those that run: others are known by their results.

        Raises
        ------
        RefusalError
            If parameters are not those of a running trial, or of one that has ended with the same
            value; a result, or what stands beside it, is not that of one that has ended; or two
            rows have one number.
        """
        there = {trial.number: trial for trial in study.get_trials(deepcopy=False)}
        found: dict[int, tuple[FrozenTrial, FrozenTrial]] = {}
        for row in self.trials:
            trial = there.get(row.number)
            if trial is None or trial.state == TrialState.WAITING:
                continue
            names = sorted(trial.params.keys() | row.params.keys())
            other = [n for n in names if not _alike(trial.params.get(n), row.params.get(n))]
            ended = trial.state.is_finished()
            known = _alike(row.values, _known_values(trial))
            corrected = ended and known and row.values is not None and len(other) < len(names)
            if other and (ended or self.exported) and not corrected:
                continue  # of another study
            if other:
                name = other[0]
                correct = (
                    "correct it in the table of `stoic trials -f csv`, and make a new study of that"
                    if ended
                    else f"unless the table rounds it, what was run instead has a column "
                    f"{_EXECUTED}{name}"
                )
                raise RefusalError(
                    f"Trial {row.number} {'ended' if ended else 'runs'} with "
                    f"{name}={trial.params.get(name)!r}, and its row has {row.params.get(name)!r}: "
                    f"{correct}; if the rows are other trials, leave out the column number."
                )
            if row.number in found:
                raise RefusalError(f"Two rows have the number {row.number}.")
            compared = ended and row.number not in self.empty
            if compared and not known:
                values = _written(_known_values(trial))
                raise RefusalError(
                    f"Trial {row.number} has ended with {values}, and its row has "
                    f"{_written(row.values)}: a result cannot be changed where it is. Correct it "
                    "in the table of `stoic trials -f csv`, and make a new study of that; if the "
                    "rows are other trials, leave out the column number."
                )
            if compared and (more := _added(row, trial)) is not None:
                raise RefusalError(
                    f"Trial {row.number} has ended, and its row has {more} that it has not: it "
                    "cannot be changed any more. Fill in the value once all else is known; or "
                    "write the study to a file with `stoic trials -f csv`, complete it there, and "
                    "make a new study of that."
                )
            if not (ended and self.exported):
                found[row.number] = trial, row
        return found

    def is_cut_off(self, study: optuna.Study) -> bool:
        """Return True if a study has some of the rows, and nothing else."""
        there = study.get_trials(deepcopy=False)
        missing = Counter(map(_result, self.trials))
        missing.subtract(map(_result, there))
        return len(there) < len(self.trials) and min(missing.values(), default=0) >= 0

    def without(self, study: optuna.Study) -> Table:
        """Return the table without the rows whose parameters and result a trial there has.

        As many of each as there are such trials: a file may have been read before, or half of it.
        """
        ended = [t for t in study.get_trials(deepcopy=False) if t.state.is_finished()]
        there, left = Counter(map(_result, ended)), []
        for trial in self.trials:
            there[_result(trial)] -= 1
            if there[_result(trial)] < 0:
                left.append(trial)
        return replace(self, trials=tuple(left))

    def check(self, space: Space) -> None:
        """Refuse rows with a value that is in an earlier range alone: no trial has them yet."""
        for trial in self.trials:
            try:
                check_fixed(trial.params, {n: space[n] for n in trial.params}, "the study has")
            except RefusalError as refusal:
                raise RefusalError(f"The row with {setting(trial.params)}: {refusal}") from refusal

    def add_to(self, study: optuna.Study) -> None:
        """Add the trials to a study."""
        console = Console(stderr=True)
        added: Iterable[FrozenTrial] = self.trials
        if console.is_terminal and len(self.trials) >= _MANY:
            added = track(self.trials, "adding trials", console=console, transient=True)
        study.add_trials(added)

    def summary(self) -> str:
        """State how many trials there are, and what was not used."""
        states = Counter(trial.state.name.lower() for trial in self.trials)
        said = ", ".join(f"{count} {state}" for state, count in states.items()) or "none"
        names = [f"{name}{_meant(name)}" for name in self.unused]
        unused = f"; columns not used: {', '.join(names)}" if names else ""
        count, left = len(self.trials), self.running
        rows = f"{left} row{'s' * (left > 1)}"
        running = f"; {rows} left out, since the trial has not ended" if left else ""
        unlimited = f"; {self.lacking()}" * bool(self.unlimited)
        return f"added {count} trial{'s' * (count != 1)}: {said}{unused}{running}{unlimited}"

    def lacking(self) -> str:
        """State which constraints have no column."""
        return f"no column for {', '.join(self.unlimited)}, of which nothing is known"


def _added(row: FrozenTrial, trial: FrozenTrial) -> str | None:
    """Describe what a row has beside the value, and the trial of its number has not or differs."""
    there = constraints(trial)
    for name, excess in constraints(row).items():
        known = there.get(name, math.inf)
        # The output has seven digits, and its distance from the limit has fewer
        same = math.isclose(excess, known, rel_tol=1e-4, abs_tol=1e-9)
        if not same and not (math.isnan(excess) and math.isnan(known)):
            return f"a value of the constraint {printable(name)}"
    for key, what in _BESIDE_ATTRIBUTES.items():
        if key == EXECUTED:
            ran = run_with(trial)
            given = row.user_attrs.get(key, {})
            if any(not _alike(ran.get(name), value) for name, value in given.items()):
                return what
        elif key in row.user_attrs and not _alike(trial.user_attrs.get(key), row.user_attrs[key]):
            return what
    return None


def _meant(name: str) -> str:
    if name.lower().startswith(_ERROR):
        return f" (did you mean standard_error, or {_ERROR}NAME of several objectives?)"
    near = nearest(name.lower(), _BESIDE, 0.75)
    return f" (did you mean {near}?)" if near and name not in _BESIDE else ""


def _known_values(trial: FrozenTrial) -> list[float] | None:
    """Values of a trial, or its bound, as a row has them."""
    if (bound := finite(trial.user_attrs.get(CENSORED))) is not None:
        return [bound]
    return None if trial.values is None else list(trial.values)


def _written(values: Sequence[float] | None) -> str:
    return "no value" if values is None else " and ".join(map(str, values))


def _alike(one: object, other: object) -> bool:
    """Return True for equal values; of numbers a spreadsheet saves what it shows, 9 digits."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=10.0**-_DIGITS)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_alike, one, other))
    return one == other


def _rounded(value: object) -> str:
    # Choices may be lists, which have no hash
    if isinstance(value, list):
        return repr(list(map(_rounded, value)))
    return f"{value:.{_DIGITS}g}" if isinstance(value, float) else repr(value)


def _result(trial: FrozenTrial) -> tuple[object, ...]:
    """Parameters of a trial and all that its result is, as a key."""
    params = frozenset((name, _rounded(value)) for name, value in trial.params.items())
    notes, values = trial.user_attrs, tuple(map(_rounded, trial.values or ()))
    bound = notes.get(CENSORED)
    if bound is not None:  # stored as the value, or beside it
        bound, values = values[0] if bound is True and values else _rounded(bound), ()
    limits = frozenset((name, _rounded(value)) for name, value in constraints(trial).items())
    return params, values, bound, notes.get(FAILED), _rounded(notes.get(NOISE)), limits


def read_table(
    path: Path,
    space: Space,
    limited: Sequence[Constraint] = (),
    objectives: Sequence[str] = (),
    earlier: Iterable[FrozenTrial] = (),
) -> Table:
    """Read finished trials from a CSV file with a header.

    Its columns are each parameter of the ``space``, as its name or ``params_`` and its name;
    ``value``, empty or nan for a failed trial; perhaps ``failed``, the kind of a failure,
    ``standard_error`` of the value, ``censored``, true if the value is a bound, at least as bad as
    which it would be, ``executed_`` and the name of a parameter that was run with another value,
    and ``constraints_`` and a name for an output that satisfies it up to 0. With several
    ``objectives`` each has a column of its name, or ``values_`` and its name, and perhaps
    ``standard_error_`` and its name. Outputs that are ``limited`` have columns of their names, or
    ``outputs_`` and these. Or it is what ``stoic trials -f csv`` writes: of that, trials that have
    not ended are left out, and a trial need not have each parameter. Where a spreadsheet separates
    columns by semicolons or tabs, numbers may have a comma for a point. A value may also be in a
    range that one of the ``earlier`` trials had.

    A refusal has the line. Without a search space it suggests one.
    """
    try:
        # Spreadsheets begin a file with a byte order mark
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = file.readline()
            file.seek(0)
            mark = next((each for each in ";\t" if each in header and "," not in header), ",")
            reader = csv.DictReader(file, delimiter=mark)
            columns = [name.strip() for name in reader.fieldnames or ()]
            reader.fieldnames = columns
            rows = [(reader.line_num, row) for row in reader if any(row.values())]
    except UnicodeDecodeError as error:
        instead = "it is not in UTF-8. Save it as CSV UTF-8."
        raise RefusalError(f"Cannot read {str(path)!r}: {instead}") from error
    except (OSError, csv.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise RefusalError(f"Cannot read {str(path)!r}: {reason}.") from error
    for name, count in Counter(columns).items():
        if count > 1 and name:  # empty ones are left of cells that were cleared
            raise RefusalError(f"{path} has {count} columns {name!r}.")
    value_of = {"": "value"}  # name of an objective -> its column
    if objectives:
        value_of = {
            name: next((c for c in (_VALUE + name, name) if c in columns and c not in space), name)
            for name in objectives
        }
    error_of = {name: (_ERROR + name).rstrip("_") for name in value_of}
    for needed in value_of.values():
        if needed not in columns or needed in space:
            there = ", ".join(columns) or "none"
            raise RefusalError(
                f"{path} needs a column {needed!r} for the results: there are {there}."
            )
    if not space:
        if mark != ",":
            _write_points(path, rows, columns, {})
        no_parameter = {name for each in limited for name in (each.name, _OUTPUT + each.name)}
        no_parameter.update(value_of.values(), error_of.values())
        first, options = _suggestion([name for name in columns if name not in no_parameter], rows)
        raise RefusalError(
            f"The ranges of the parameters are missing. {first}As wide as the data in {path} they "
            f"are, and should be wider where better settings may be: {options}"
        )
    of = {
        name: found
        for name in space
        if (found := next((c for c in (_PARAMETER + name, name) if c in columns), None))
    }
    if lacking := [name for name in space if name not in of]:
        raise RefusalError(
            f"{path} has no column for {', '.join(lacking)}: name it as the parameter."
        )
    run = {
        column: name
        for name in space
        for column in (_EXECUTED + name, _EXECUTED + _PARAMETER + name)
        if column not in of.values()
    }
    known = {*value_of.values(), *error_of.values(), "failed", *(() if objectives else _BESIDE)}
    taken = {*known, *of.values(), *run, *_ATTRIBUTES, *_DERIVED}
    free = [name for name in columns if name not in taken]
    limits: dict[str, tuple[str, Callable[[float], float]]] = {
        name.removeprefix(_CONSTRAINT): (name, float)
        for name in free
        if name.startswith(_CONSTRAINT)
    }
    outputs = [*free, *(value_of.values() if objectives else ())]  # an objective may have a limit
    for each in limited:
        own = _OUTPUT + each.name, each.name, value_of.get(each.name)
        column = next((name for name in own if name in outputs), None)
        if column is None and each.name in limits:
            raise RefusalError(
                f"{path} has {_CONSTRAINT}{each.name}, the distance from a limit that it does not "
                f"say, and {each.written!r} needs a column {each.name!r} with the output itself."
            )
        if column is not None:
            limits[each.name] = column, each.excess
        elif (like := next((c for c in free if c.lower() == each.name.lower()), None)) is not None:
            raise RefusalError(
                f"{path} has a column {like!r}, and {each.written!r} needs {each.name!r}: write "
                "both alike."
            )
    for column in free:
        name = column.removeprefix(_EXECUTED).removeprefix(_PARAMETER)
        if column.startswith(_EXECUTED) and column not in (c for c, _ in limits.values()):
            raise RefusalError(f"{path} has a column {column!r}. {unknown(name, space)}")
    used = taken | {column for column, _ in limits.values()}
    used |= {_CONSTRAINT + name for name in limits}
    if mark != ",":
        listed = {
            of[k]: d.choices for k, d in space.items() if isinstance(d, CategoricalDistribution)
        }
        _write_points(path, rows, used.difference(_DERIVED), listed)
    _check_distances(path, rows, limits)
    ranges: dict[str, list[BaseDistribution]] = {name: [now] for name, now in space.items()}
    for trial in earlier:
        for name, before in trial.distributions.items():
            if before not in ranges.setdefault(name, []):
                ranges[name].append(before)
    trials, running, empty = [], 0, set()
    exported = "state" in columns
    numbered = "number" not in of.values()
    for line, row in rows:
        if row.get("state") in ("RUNNING", "WAITING"):
            running += 1
            continue
        try:
            trials.append(_trial(row, of, limits, run, ranges, value_of, error_of))
        except RefusalError as refusal:
            raise RefusalError(f"{path}, line {line}: {refusal}") from refusal
        number = (row.get("number") or "").strip()
        if numbered and number.isdecimal():
            trials[-1].number = int(number)
            filled = all((row.get(column) or "").strip() for column in value_of.values())
            if not (filled or (row.get("failed") or "").strip() or exported):
                empty.add(int(number))
    unused = tuple(name for name in columns if name and name not in used)
    unlimited = tuple(each.name for each in limited if each.name not in limits)
    return Table(tuple(trials), unused, running, frozenset(empty), unlimited, exported)


def _check_distances(
    path: Path,
    rows: Iterable[tuple[int, Mapping[str, str | None]]],
    limits: Mapping[str, tuple[str, Callable[[float], float]]],
) -> None:
    """Refuse an output whose distance from the limit, which may be another one, is not the same."""
    for name, (column, excess) in limits.items():
        both = [
            (line, output, distance, distance - excess(output))
            for line, row in rows
            if (output := _known(row.get(column), column)) is not None
            and (distance := _known(row.get(_CONSTRAINT + name), _CONSTRAINT + name)) is not None
        ]
        usual = statistics.median(moved for *_, moved in both) if both else 0.0
        scale = max((max(abs(o), abs(d), abs(usual)) for _, o, d, _ in both), default=0.0)
        turned = [distance + excess(output) for _, output, distance, _ in both]
        if both and max(turned) - min(turned) <= 10.0**-_DIGITS * scale:
            continue  # the limit was one from the other side
        for line, output, distance, moved in both:
            if abs(moved - usual) > 10.0**-_DIGITS * max(abs(output), abs(distance), abs(usual)):
                raise RefusalError(
                    f"{path}, line {line}: {column} is {output:g} and {_CONSTRAINT}{name}, its "
                    f"distance from the limit, is {distance:g}: they contradict each other, as "
                    "those of other rows do not. Clear one of them."
                )


def _write_points(
    path: Path,
    rows: Sequence[tuple[int, dict[str, Any]]],
    columns: Iterable[str],
    listed: Mapping[str, Sequence[object]],
) -> None:
    """Write 1.5 for 1,5 in all cells of these columns that have none of the ``listed`` choices."""
    cells = []
    for name in columns:
        choices = set(map(str, listed.get(name, ())))
        texts = ((row, name, (row.get(name) or "").strip()) for _, row in rows)
        cells += [cell for cell in texts if cell[2] not in choices]
    commas = [cell for cell in cells if re.fullmatch(_DECIMAL.replace(".", ","), cell[2])]
    point = next((text for _, _, text in cells if re.fullmatch(_DECIMAL, text)), None)
    if commas and point is not None:
        raise RefusalError(
            f"{path} has {commas[0][2]!r} and {point!r}: write numbers with the same decimal mark."
        )
    for row, name, text in commas:
        row[name] = text.replace(",", ".")


def _trial(
    row: Mapping[str, str | None],
    of: Mapping[str, str],
    limits: Mapping[str, tuple[str, Callable[[float], float]]],
    run: Mapping[str, str],
    ranges: Mapping[str, Sequence[BaseDistribution]],
    value_of: Mapping[str, str],
    error_of: Mapping[str, str],
) -> FrozenTrial:
    if (more := row.get(None)) is not None:  # type: ignore[call-overload]  # of csv.DictReader
        raise RefusalError(
            f"there are more cells than columns ({', '.join(map(str, more))} is beyond the last). "
            "Between commas the decimal mark is a point, and a text with a comma stands in quotes."
        )
    if any(row[column] is None for column in (*of.values(), *value_of.values())):
        raise RefusalError("there are fewer cells than columns: is the end of the line missing?")
    params: dict[str, Any] = {}
    own: dict[str, BaseDistribution] = {}
    own_table = not {"state", "number"}.isdisjoint(row)
    for name, column in of.items():
        text = (row[column] or "").strip()
        if text:
            params[name], own[name] = _parsed(ranges[name], text)
        # In what was exported a trial may lack it, unless the text may be a choice
        elif not (column.startswith(_PARAMETER) and own_table) or possible(ranges[name][0], ""):
            raise RefusalError(
                f"the cell of {name} is empty. If that setting has no {name}, name the columns as "
                f"`stoic trials -f csv` does: {_PARAMETER}{name}, {_PARAMETER}... for each other "
                "parameter, and state with COMPLETE in each row."
            )
    check_fixed(params, own, "the study has")
    values = [_known(row[column], column) for column in value_of.values()]
    present = [value for value in values if value is not None]
    attributes: dict[str, Any] = {}
    if kind := (row.get("failed") or "").strip():
        if present:
            raise RefusalError(f"a failure does not go with the value {present[0]:g}.")
        attributes[FAILED] = parse_kind(kind, "failed")
    several = len(values) > 1
    if several and present and len(present) < len(values):
        attributes[VALUES] = values
    noises = [_noise(row.get(column), column) for column in error_of.values()]
    if any(noise is not None for noise in noises):
        attributes[NOISE] = noises if several else noises[0]
    for key, there in _exported(row).items():
        if not _alike(attributes.get(key, there), there):
            exported, square = f"{_NOTES[0]}{key}", ", a variance" * (key == NOISE)
            columns = error_of.values() if key == NOISE else [key.rpartition(":")[2]]
            cells = " and ".join(row.get(column) or "" for column in columns)
            raise RefusalError(
                f"{' and '.join(columns)} is {cells} and {exported} is {row[exported]}{square}: "
                "they contradict each other, so clear one of them."
            )
        attributes[key] = there
    for column, name in run.items():
        if text := (row.get(column) or "").strip():
            executed = {name: check_inside(name, parse_as(ranges[name][0], text), own)}
            attributes[EXECUTED] = attributes.get(EXECUTED, {}) | executed
    if not several and _is_true((row.get("censored") or "").strip()):
        if not present:
            raise RefusalError("a bound needs a value.")
        attributes[CENSORED] = True
    # A constraint that is nan was measured, and is not known to be satisfied
    observed = {
        name: excess(output)
        for name, (column, excess) in limits.items()
        if (output := _number(row[column], column)) is not None
    }
    pruned = row.get("state") == TrialState.PRUNED.name
    whole = len(present) == len(values)
    state = TrialState.COMPLETE if whole else TrialState.FAIL
    return create_trial(
        state=TrialState.PRUNED if pruned else state,
        values=present if whole else None,
        params=params,
        distributions=own,
        user_attrs=attributes,
        system_attrs=constraint_attrs(observed) if observed else None,
    )


def _parsed(ranges: Sequence[BaseDistribution], text: str) -> tuple[Any, BaseDistribution]:
    """Parse a value, by the first of the ranges that can have it, or else the first."""
    parsed = [(parse_as(each, text), each) for each in ranges]
    return next((pair for pair in parsed if possible(pair[1], pair[0])), parsed[0])


def _noise(text: str | None, column: str) -> float | None:
    """Return the noise variance by a cell with a standard error; None if it is empty."""
    if (error := _known(text, column)) is None:
        return None
    if (noise := noise_of(error)) is None:
        raise RefusalError(
            f"{column} must be a number above 0, got {error:g}: leave the cell empty where it is "
            "not known, as that of no success among n."
        )
    return noise


def _exported(row: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the attributes that ``stoic trials -f csv`` wrote, as they were stored."""
    found: dict[str, Any] = {}
    for column, key in _ATTRIBUTES.items():
        if text := (row.get(column) or "").strip():
            if key == VALUES:
                continue  # the values have columns, too
            if key == EXECUTED:
                found[key] = _dictionary(text, column)
            elif key == NOISE and text.startswith("["):
                found[key] = [_known(each.strip(" '"), column) for each in _items(text)]
            elif key in (FAILED, FAILURE):
                found[key] = text
            else:
                found[key] = True if text == "True" else _known(text, column)
    return found


def _dictionary(text: str, column: str) -> dict[str, Any]:
    """Read what was stored, whatever was reported: nan and infinities say nothing, as None."""
    try:
        found = ast.literal_eval(re.sub(r"(?<=: )-?(nan|inf)(?=[,}])", "None", text))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise RefusalError(f"{column} must be as in {{'heat': 61.2}}, got {text!r}.")
    return found


def _items(text: str) -> list[str]:
    """Split a list of numbers, as it is stored; None is an empty text."""
    return text.strip("[]").replace("None", "").split(",")


def _is_true(text: str) -> bool:
    if text.lower() not in ("", "true", "false", "1", "0"):
        raise RefusalError(f"censored must be true or false, got {text!r}.")
    return text.lower() in ("true", "1")


def _known(text: str | None, column: str) -> float | None:
    """Return the number of a cell; None if it is empty or nan."""
    number = _number(text, column)
    return None if number is None or math.isnan(number) else number


def _number(text: str | None, column: str) -> float | None:
    """Return the number of a cell, which may be nan; None if it is empty."""
    text = (text or "").strip()
    try:
        return float(text) if text else None
    except ValueError as error:
        raise RefusalError(f"{column} must be a number, or empty, got {text!r}.") from error


def _suggestion(columns: list[str], rows: list[tuple[int, dict[str, Any]]]) -> tuple[str, str]:
    """Write --param options for the columns that may be parameters, and what others lack."""
    options, refused = [], []
    for column in columns:
        cells = [str(row[column] or "").strip() for _, row in rows]
        texts = sorted({cell for cell in cells if cell})
        if not column or column in ("value", *_BESIDE, *_DERIVED) or len(texts) < 2:
            continue
        if column.startswith((*_NOTES, _CONSTRAINT)):
            continue
        if column.startswith(_EXECUTED) and column.removeprefix(_EXECUTED) in columns:
            continue
        name = column.removeprefix(_PARAMETER)
        try:
            check_name(name)
        except RefusalError as refusal:
            refused.append(f"{refusal} ")
            continue
        try:
            numbers = [float(text) for text in texts]
        except ValueError:
            if len(texts) <= _SUGGESTED and not any("'" in text and '"' in text for text in texts):
                option = f"{name}={as_written(CategoricalDistribution(texts))}"
                options.append(f"--param {shlex.quote(option)}")
            continue
        low, high = min(numbers), max(numbers)
        whole = all(text.lstrip("+-").isdecimal() for text in texts)
        if math.isfinite(high - low):
            ends = f"{low:.0f}, {high:.0f}"
            if not whole:
                ends = f"{_outward(low, ROUND_FLOOR):g}, {_outward(high, ROUND_CEILING):g}"
            options.append(f"--param '{name}={'int' if whole else 'float'}({ends})'")
    none = "there is no column that varies and can name a parameter."
    return "".join(refused), " ".join(options) or none


def _outward(number: float, rounding: str) -> float:
    """Round to the six digits that are written."""
    rounded = float(Context(prec=6, rounding=rounding).create_decimal(repr(number)))
    return rounded if math.isfinite(rounded) else number
