"""The clean truth everywhere: an exhaustive grid, and the best score on it."""

from __future__ import annotations

import joblib
import numpy as np
from train import accuracy

Cs = np.logspace(0, 4, 13)
gammas = np.logspace(-5, -2, 13)


def main() -> None:
    points = [(C, gamma) for C in Cs for gamma in gammas]
    scores = joblib.Parallel(n_jobs=-1)(
        joblib.delayed(accuracy)(float(C), float(gamma)) for C, gamma in points
    )
    for row, C in zip(np.reshape(scores, (len(Cs), len(gammas))), Cs, strict=True):
        print(f"C {C:9.3g}  " + " ".join(f"{score:.3f}" for score in row))
    best = int(np.argmax(scores))
    print(f"best C {points[best][0]:.4g}, gamma {points[best][1]:.4g}: {scores[best]}")


if __name__ == "__main__":
    main()
