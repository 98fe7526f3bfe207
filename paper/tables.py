"""The tables of the paper, from the results that are kept with the code.

``python paper/tables.py`` puts them into ``paper.md``, between the marks of each.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stoic.experiments.contest import accuracy
from stoic.experiments.contest.contenders import DEFAULT, EXPLAINED
from stoic.experiments.figure import OURS

PAPER = Path(__file__).with_name("paper.md")
FIGURES = PAPER.parents[1] / "docs/figures"
FAMILIES = {
    "outliers": "a few outliers of any size [@Ezzerg2026]",
    "corruption": "corruption of a bounded total [@Bogunovic2022]",
    "heavy-tails": "heavy-tailed noise [@Chowdhury2019]",
    "inputs": "moved inputs [@Saday2025]",
    "misspecification": "a wrong model [@Bogunovic2021b]",
}


def read(name: str) -> dict[str, Any]:
    """Read the results of a figure."""
    return dict(json.loads((FIGURES / f"{name}.json").read_text(encoding="utf-8")))


def contest() -> str:
    """Compare the default with the best peer in each scene, by the loss of the recommendation."""
    lines = [
        "| scene | best peer | ratio of the losses | the default | `explain` on a peer's trials |",
        "|---|---|--:|--:|--:|",
    ]
    scenes = (
        ("development", "development"),
        ("tables", "development"),
        ("final", "final report"),
        ("held-out", "held out"),
    )
    for name, title in scenes:
        for claim in read(f"contest-{name}")["claims"]:
            scene, _, rest = claim["claim"].partition(": the default")
            peer = re.search(r"best peer's, (.+?) \(ours\)", rest)
            assert peer is not None, claim["claim"]
            has = claim["measured"]
            ratio = f"{short(has['ratio'])} [{short(has['lower'])}, {short(has['upper'])}]"
            least, by = min(
                (value, name.removesuffix(EXPLAINED))
                for name, value in has.items()
                if name.endswith(EXPLAINED)
            )
            ours = f"{short(has[DEFAULT])} | {short(least)}, {by}"
            lines.append(f"| {title}: {scene} | {peer[1]} | {ratio} | {ours} |")
    return "\n".join(lines)


def tuned() -> str:
    """Compare true accuracies of a tuned classifier, with wrong results and without."""
    return accuracy.markdown(read("contest-accuracy")).rstrip()


def claims() -> str:
    """Count the claims of each paper's figures that hold here."""
    lines = ["| what is wrong | figures | the paper's claims | ours |", "|---|--:|--:|--:|"]
    for family, title in FAMILIES.items():
        paths = sorted(FIGURES.glob(f"{family}-*.json"))
        found = [claim for path in paths for claim in read(path.stem)["claims"]]
        ours = [bool(claim["holds"]) for claim in found if claim["source"] == OURS]
        theirs = [bool(claim["holds"]) for claim in found if claim["source"] != OURS]
        counts = (f"{sum(held)} of {len(held)}" for held in (theirs, ours))
        lines.append(f"| {title} | {len(paths)} | {' | '.join(counts)} |")
    return "\n".join(lines)


def short(number: float) -> str:
    """Write two significant digits."""
    return f"{float(f'{number:.2g}'):g}"


TABLES: dict[str, Callable[[], str]] = {"contest": contest, "accuracy": tuned, "claims": claims}


def filled(text: str) -> str:
    """Return the paper with its tables as they are now."""
    for name, table in TABLES.items():
        mark = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)", re.DOTALL)
        if len(mark.findall(text)) != 1:
            raise ValueError(f"The paper must have one place for the table {name!r}.")
        held = f"\n{table()}\n\n"  # Markdown wants an empty line on both sides
        text = mark.sub(lambda match, held=held: match[1] + held + match[2], text)
    return text


if __name__ == "__main__":
    PAPER.write_text(filled(PAPER.read_text(encoding="utf-8")), encoding="utf-8")
