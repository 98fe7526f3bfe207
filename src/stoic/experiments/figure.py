"""Definition of a figure: settings, independent runs, a picture, a table and its claims."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:  # importing it takes longer than most of the library
    import matplotlib.figure

OURS = "ours"  # source of a claim that no paper makes

S = TypeVar("S")
R = TypeVar("R", bound=tuple[Any, ...])


class Cell(NamedTuple):
    """One independent run of a figure, the unit of parallel work.

    Attributes
    ----------
    panel:
        Name of the part of the picture.
    method:
        Name of the method.
    seed:
        Seed of its world and of its learner.
    """

    panel: str
    method: str
    seed: int


def crossed(
    panels: Iterable[str],
    methods: Collection[str],
    seed: int,
    trials: int | Callable[[str, str], int],
) -> list[Cell]:
    """Cross every panel, method and trial; trial k has the seed ``seed + k``.

    ``trials`` may be a function of a panel and a method, 0 where the method is not run.
    """
    return [
        Cell(panel, method, seed + trial)
        for panel in panels
        for method in methods
        for trial in range(trials(panel, method) if callable(trials) else trials)
    ]


def every(panels: Callable[[Any], Iterable[str]]) -> Callable[[Any], list[Cell]]:
    """Cells of a figure with every method of its settings on every trial in every panel."""
    return lambda settings: crossed(
        panels(settings), settings.methods, settings.seed, settings.trials
    )


@dataclass(frozen=True, slots=True)
class Claim:
    """Sentence, its source, and the verdict of these results.

    Attributes
    ----------
    claim:
        The sentence.
    holds:
        True if it is true of these results, read literally.
    measured:
        The numbers it was judged by; nan where there are too few trials for a number.
    source:
        Where it is claimed: a paper's key and place (``"Bogunovic2022, Fig. 2"``) or ``OURS``;
        empty for the source of the figure.
    """

    claim: str
    holds: bool
    measured: Mapping[str, float]
    source: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text under headings; ``caption`` explains the numbers."""

    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def tabulate(
    caption: str,
    keys: Sequence[str],
    columns: Sequence[tuple[str, Callable[[Any], str]]],
    groups: Mapping[Any, Any] | Iterable[tuple[Any, Any]],
) -> Table:
    """Table with a line for each group: the words of its key, and then each column's entry.

    Parameters
    ----------
    caption, keys:
        Caption, and headings of the words of the keys.
    columns:
        Heading of each column, and function from a group to its entry.
    groups:
        Groups by their keys, which are tuples of texts.
    """
    lines = groups.items() if isinstance(groups, Mapping) else groups
    rows = tuple((*key, *(entry(group) for _, entry in columns)) for key, group in lines)
    return Table(caption, (*keys, *(heading for heading, _ in columns)), rows)


@dataclass(frozen=True, slots=True)
class Figure(Generic[S, R]):
    """Figure as data and functions. Code common to all figures is elsewhere.

    Attributes
    ----------
    name:
        ``family/figure``.
    title:
        One-line summary of the figure.
    settings:
        Frozen dataclass of plain values that decide the results. Where it has these fields, they
        mean the same everywhere: ``trials``, independent runs of each method, with the seeds
        ``seed``, ``seed + 1``, ...; ``rounds``, T; ``methods``, names, the reference first;
        ``initial``, clean scrambled Sobol points before the first round, common to all methods;
        ``noise_sd``, the standard deviation of the noise in units of f. Users can change
        ``trials``, ``rounds`` and ``seed``.
    cells:
        The independent runs, in the order of their results.
    run:
        One run; its rows are named tuples whose fields are the columns of the CSV file, the first
        of them mostly the ``panel``, ``method`` and ``seed`` of the cell. It must depend on nothing
        but its arguments. Its annotation, ``list[Row]``, says what the rows of an interrupted
        figure are read as.
    plot, table, claims:
        Functions of the rows of all runs.
    source:
        Source of the claims that do not name another one.
    """

    name: str
    title: str
    settings: S
    cells: Callable[[S], Sequence[Cell]]
    run: Callable[[S, Cell], list[R]]
    plot: Callable[[S, Sequence[R]], matplotlib.figure.Figure]
    table: Callable[[S, Sequence[R]], Table]
    claims: Callable[[S, Sequence[R]], tuple[Claim, ...]]
    source: str = OURS

    def judge(self, settings: S, rows: Sequence[R]) -> tuple[Claim, ...]:
        """Check the claims; each has a source."""
        return tuple(
            replace(claim, source=claim.source or self.source)
            for claim in self.claims(settings, rows)
        )
