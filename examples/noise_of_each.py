"""Results that know how noisy they are: an estimate is better than a lucky draw."""

import numpy as np

import stoic


def main():
    rng = np.random.default_rng(0)

    def simulate(params):
        runs = int(rng.integers(1, 50))  # as many as there was time for
        error = 0.3 / runs**0.5
        return stoic.Measured((params["x"] - 0.3) ** 2 + error * rng.normal(), standard_error=error)

    found = stoic.tune(simulate, {"x": "float(0, 1)"}, n_trials=30, seed=0)
    best = found.explanation.recommended
    print("recommended:", best.params, "+-", found.explanation.recommended_std)
    return best.params


if __name__ == "__main__":
    main()
