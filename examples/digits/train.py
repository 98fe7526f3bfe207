"""Train a support vector machine on scikit-learn's handwritten digits and print its accuracy.

The score itself is clean: three-fold cross-validated accuracy, the same for the same parameters.
What is reported is not: as on a real cluster, one run in ten breaks down (half of these crash, half
print nan), and one in twenty reports a number that has nothing to do with the truth. Which runs
these are is drawn from a hash of the seed, the trial and the parameters: repeatable, yet nothing
that a model could learn.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys

BROKEN, LYING = 0.10, 0.05
LIES = (1e6, 7.5, 0.0, -3.0)


def accuracy(C: float, gamma: float) -> float:
    """The truth: mean accuracy over three folds of the 1797 digits."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.svm import SVC

    images, digits = load_digits(return_X_y=True)
    folds = StratifiedKFold(n_splits=3, shuffle=True, random_state=0)
    return float(cross_val_score(SVC(C=C, gamma=gamma), images, digits, cv=folds).mean())


def fate(seed: int, trial: str, C: float, gamma: float) -> tuple[float, int]:
    """A number uniform in [0, 1) that decides what happens to the run, and one that picks a lie."""
    digest = hashlib.sha256(f"{seed} {trial} {C!r} {gamma!r}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64, digest[8]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--C", type=float, required=True)
    parser.add_argument("--gamma", type=float, required=True)
    parser.add_argument("--seed", type=int, default=0, help="of the breakdowns and lies")
    parser.add_argument("--clean", action="store_true", help="no breakdowns, no lies")
    given = parser.parse_args()
    trial = os.environ.get("STOIC_TRIAL", "")
    draw, pick = fate(given.seed, trial, given.C, given.gamma)
    if given.clean:
        draw = 1.0
    if draw < BROKEN / 2:
        sys.exit("out of memory (not really)")
    if draw < BROKEN:
        print("nan")
    elif draw < BROKEN + LYING:
        print(LIES[pick % len(LIES)])
    else:
        print(accuracy(given.C, given.gamma))


if __name__ == "__main__":
    main()
