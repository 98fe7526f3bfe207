"""``python -m stoic.experiments``: several figures, or all of them, one after another."""

from __future__ import annotations

import argparse
import sys

from stoic.experiments.reproduction import catalogue, find, reproduce
from stoic.refusal import RefusalError

ONCE = "contest/final"  # run by its name, once, when a method is frozen: else it would choose one


def main(arguments: list[str] | None = None) -> int:
    """Run the named figures; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m stoic.experiments", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="figures, as family/figure")
    parser.add_argument("--all", action="store_true", help=f"every figure but {ONCE}")
    parser.add_argument("--trials", type=int, help="independent runs per method")
    parser.add_argument("--rounds", type=int, help="rounds per run")
    parser.add_argument("--jobs", type=int, help="processes; one per processor if not said")
    parser.add_argument("--seed", type=int, help="the first seed")
    parser.add_argument("--data", metavar="PATH", help="tables of real data: a file or a directory")
    parser.add_argument("--out", default="results", help="directory of the results")
    options = vars(parser.parse_args(arguments))
    names, every = options.pop("names"), options.pop("all")
    try:
        if every:
            names = [figure.name for figure in catalogue() if figure.name != ONCE]
        if not names:
            raise RefusalError("Name a figure, or say --all.")
        # An unknown name is refused before the first figure, which may take hours
        for name in names:
            find(name)
        refused = 0
        for name in names:
            try:
                reproduce(name, **options)
            except RefusalError as refusal:  # one figure may lack data that the others do without
                refused += 1
                print(f"{name}: {refusal}", file=sys.stderr)
        return 2 if refused else 0
    except ValueError as refusal:
        print(refusal, file=sys.stderr)
        return 2
    except KeyboardInterrupt as interrupt:
        print(interrupt, file=sys.stderr)
        return 130  # 128 + SIGINT, as shells report it


if __name__ == "__main__":
    sys.exit(main())
