"""A machine that executes something near what was suggested, and says what it did."""

import numpy as np

import stoic


def main():
    rng = np.random.default_rng(0)

    def oven(params):
        heat = min(max(params["heat"] + rng.uniform(-5.0, 5.0), 20.0), 60.0)
        return stoic.Measured((heat - 45.0) ** 2, executed={"heat": heat})

    found = stoic.tune(oven, {"heat": "float(20, 60)"}, n_trials=20, seed=0)
    print("the best heat:", found.explanation.model_optimum["heat"])
    return found.explanation.model_optimum["heat"]


if __name__ == "__main__":
    main()
