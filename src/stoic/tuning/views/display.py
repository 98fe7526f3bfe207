"""Progress of a running campaign: a live table on a terminal, plain lines in a pipe."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from optuna.trial import FrozenTrial, Trial, TrialState
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from stoic.data import DISTRUSTED
from stoic.integrations.optuna import Explanation
from stoic.integrations.optuna.explanation import deviation
from stoic.printable import printable
from stoic.tuning.campaign import Explain, Observer
from stoic.tuning.program import Result
from stoic.tuning.views.durations import duration

_COLUMN = 12  # letters of a parameter and the blanks beside it
_BESIDE = 42  # of the other columns: a value to six digits is never cut


@contextmanager
def display(console: Console, total: int) -> Iterator[Observer]:
    """Yield the observer that fits the console."""
    if not console.is_terminal:
        yield Lines(console)
        return
    table = LiveTable(total, console)
    with table.live:
        yield table


class Lines(Observer):
    """Observer that prints one line for each trial."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.decided = True

    def orphaned(self, numbers: list[int]) -> None:
        """Print which trials were lost."""
        self._print(_orphaned(numbers))

    def ended(self, trial: FrozenTrial, result: Result, explain: Explain) -> None:
        """Print number, parameters, value, trust, and the recommendation so far.

        Also why it is undecided, when it begins to be.
        """
        explanation = explain()
        words = [f"trial {trial.number}", *(f"{k}={_short(v)}" for k, v in trial.params.items())]
        if result.value is None:
            words.append(result.reason if result.pruned else f"failed: {result.reason}")
        else:
            words.append(f"value {_written(result)}")
            if result.executed is not None:
                run = (f"{k}={_short(v)}" for k, v in result.executed.items())
                words.append(" ".join(["executed", *run]))
            trust = _trust(explanation, trial.number)
            if explanation is not None:
                if trial.number in explanation.impossible:
                    words.append(f"impossible: outside of {explanation.possible}")
                if trial.number in explanation.penalties:
                    words.append("a penalty: infeasible")
            if trust is not None:
                words.append(f"trust {trust:.2f}{_distrusted(explanation, trial.number)}")
        words += overtaken(trial, result)
        if (recommended := _recommended(explanation)) is not None:
            words.append(f"recommended {recommended}")
        self._print("  ".join(words))
        if explanation is not None:
            doubt = _doubt(explanation)
            for line in doubt if self.decided else ():
                self._print(line)
            self.decided = not doubt

    def _print(self, line: str) -> None:
        # console.print would wrap the line, and read markup in it
        print(printable(line), file=self.console.file, flush=True)


class LiveTable(Observer):
    """Observer that redraws a table of the last trials after each."""

    def __init__(self, total: int, console: Console) -> None:
        self.total = total
        self.console = console
        self.rows: list[tuple[int, dict[str, Any], str, str]] = []  # number, params, value, style
        self.explanation: Explanation | None = None
        self.notes: list[str] = []
        self.start = time.monotonic()
        self.seconds: dict[int, float] = {}  # of each trial that ended here
        self.live = Live(self._draw(), console=console, refresh_per_second=4)

    def _draw(self) -> Group:
        notes = [*self.notes[-3:], *_doubt(self.explanation)]
        lines = (_text(note, style="yellow") for note in notes)
        return Group(self._table(), _text(self._stand()), *lines)

    def orphaned(self, numbers: list[int]) -> None:
        """Note which trials were lost."""
        self.notes.append(_orphaned(numbers))
        self.live.update(self._draw(), refresh=True)

    def begun(self, trial: Trial) -> None:
        """Add a row without a value."""
        self.rows.append((trial.number, trial.params, "running", "cyan"))
        self.live.update(self._draw(), refresh=True)

    def ended(self, trial: FrozenTrial, result: Result, explain: Explain) -> None:
        """Enter the value, and update the trust of every row."""
        self.rows = [row for row in self.rows if row[0] != trial.number]
        if trial.duration is not None:
            self.seconds[trial.number] = trial.duration.total_seconds()
        if result.value is None:
            style = "yellow" if result.pruned else "red"
            self.rows.append((trial.number, trial.params, result.reason, style))
        else:
            self.rows.append((trial.number, trial.params, _written(result), ""))
        self.notes += [f"trial {trial.number}: {said}" for said in overtaken(trial, result)]
        self.explanation = explain()
        self.live.update(self._draw(), refresh=True)

    def _stand(self) -> str:
        begun = 0 if not self.rows else max(row[0] for row in self.rows) + 1
        said = f"{begun} of {self.total} trials begun"
        if self.seconds:
            each = float(np.median(list(self.seconds.values())))
            said += f" in {duration(time.monotonic() - self.start)}, {duration(each)} each"
        if (recommended := _recommended(self.explanation)) is not None:
            said += f"; recommended so far: {recommended}"
        return said

    def _table(self) -> Table:
        known = self.explanation
        best = {point.trial.number for point in known.front} if known else set()
        best |= {known.recommended.number} if known and known.recommended else set()
        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        names = list(dict.fromkeys(name for row in self.rows for name in row[1]))
        room_for = max((self.console.width - _BESIDE) // _COLUMN, 2)
        if len(names) > room_for:  # those in the middle go first
            names = names[: (room_for + 1) // 2] + names[len(names) - room_for // 2 :]
        table.add_column("trial", justify="right")
        for name in names:
            table.add_column(_text(name), justify="right", max_width=16, no_wrap=True)
        table.add_column("value", justify="right", min_width=11, max_width=40)
        table.add_column("time", justify="right", no_wrap=True)
        table.add_column("trust", justify="right", no_wrap=True)
        table.add_column("")  # an arrow at the recommended trial
        room = max(self.console.height - 8, 3)  # rows beside the head and the notes
        for trial, params, value, style in self.rows[-room:]:
            trust = _trust(known, trial)
            doubted = trust is not None and trust < DISTRUSTED
            table.add_row(
                str(trial),
                *(_text(_short(params[name]) if name in params else "") for name in names),
                _text(value),
                duration(self.seconds[trial]) if trial in self.seconds else "",
                "" if trust is None else f"{trust:.2f}",
                "<--" if trial in best else "",
                style="yellow" if doubted else "bold green" if trial in best else style,
            )
        return table


def overtaken(trial: FrozenTrial, result: Result) -> list[str]:
    """Return the sentence on who ended the trial first, if the storage differs from the result."""
    measured = None if result.value is None else list(result.values) or [result.value]
    stored = trial.values if trial.state == TrialState.COMPLETE else None
    who = f"not stored: somebody else ended it as {trial.state.name.lower()}"
    return [who] if stored != measured else []


def _trust(explanation: Explanation | None, number: int) -> float | None:
    rows = explanation.rows if explanation is not None else ()
    judged = (row.trust for row in rows if row.number == number and not math.isnan(row.trust))
    return min(judged, default=None)


def _distrusted(known: Explanation | None, number: int) -> str:
    """Return a note on a trial, with the objectives whose value is distrusted."""
    rows = [r for r in (known.rows if known else ()) if r.number == number and r.distrusted]
    names = ", ".join(row.objective for row in rows if row.objective)
    return f" (distrusted{': ' * bool(names)}{names})" * bool(rows)


def _recommended(known: Explanation | None) -> str | None:
    if known is None:
        return None
    if known.recommended is not None:
        which = f"trial {known.recommended.number}"
    elif known.untried is not None:
        which = " ".join(["not run:", *(f"{k}={_short(v)}" for k, v in known.untried.items())])
    else:
        return f"a front of {len(known.front)}" if known.front else None
    estimate = f"{known.recommended_mean:.4g} +- {deviation(known.recommended_std, 1)}"
    doubt = ", undecided" * (known.undecided is not None)
    return f"{which} ({estimate}{doubt})"


def _doubt(explanation: Explanation | None) -> list[str]:
    """Return the sentence on why the best is not known, if that is so."""
    doubt = None if explanation is None else explanation.undecided
    return [] if doubt is None else [f"undecided: {doubt}"]


def _orphaned(numbers: list[int]) -> str:
    which = ", ".join(map(str, numbers))
    return f"trial{'s' * (len(numbers) > 1)} {which}  failed: its worker died (transient)"


def _text(said: str, style: str = "") -> Text:
    """Return the text with markup and control characters without effect."""
    return Text(printable(said), style=style)


def _written(result: Result) -> str:
    """Write the value of a result, or those of several objectives."""
    return ", ".join(f"{value:.6g}" for value in result.values or (result.value,))


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
