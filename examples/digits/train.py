"""Train a support vector machine on scikit-learn's handwritten digits and print its accuracy.

The score itself is clean: three-fold cross-validated accuracy, the same for the same parameters.
What is reported is not: as on a real cluster, one run in ten breaks down (half of these crash, half
print nan), and one in twenty reports a number that has nothing to do with the truth. Which runs
these are is drawn from a hash of the seed and the number of the trial: repeatable, yet nothing that
a model of the parameters could learn.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys

BROKEN, LYING = 0.10, 0.05
LIES = ("1e6", "7.5", "0.0", "-3")


def accuracy(C: float, gamma: float) -> float:
    """The truth: mean accuracy over three folds of the 1797 digits."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.svm import SVC

    images, digits = load_digits(return_X_y=True)
    folds = StratifiedKFold(n_splits=3, shuffle=True, random_state=0)
    return float(cross_val_score(SVC(C=C, gamma=gamma), images, digits, cv=folds).mean())


def fate(seed: int, trial: str) -> str:
    """What happens to a run: "crash", "nan", a number that is a lie, or "" for nothing."""
    digest = hashlib.sha256(f"{seed} {trial}".encode()).digest()
    draw = int.from_bytes(digest[:8], "big") / 2**64  # uniform in [0, 1)
    if draw < BROKEN:
        return "crash" if draw < BROKEN / 2 else "nan"
    return LIES[digest[8] % len(LIES)] if draw < BROKEN + LYING else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--C", type=float, required=True)
    parser.add_argument("--gamma", type=float, required=True)
    parser.add_argument("--seed", type=int, default=0, help="of the breakdowns and lies")
    parser.add_argument("--clean", action="store_true", help="no breakdowns, no lies")
    given = parser.parse_args()
    happens = "" if given.clean else fate(given.seed, os.environ.get("STOIC_TRIAL", ""))
    if happens == "crash":
        sys.exit("out of memory (not really)")
    print(happens or accuracy(given.C, given.gamma))


if __name__ == "__main__":
    main()
