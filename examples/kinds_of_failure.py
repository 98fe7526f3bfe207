"""Failures with a kind: parts that collide, a machine that goes down, a run that diverges."""

import stoic


def build(params):
    if params["x"] > 0.7:
        raise stoic.Failed("infeasible", "the parts collide")
    if params["y"] > 0.9:
        raise stoic.Failed("bad", "diverged")
    return (params["x"] - 0.8) ** 2 + (params["y"] - 0.5) ** 2


def main():
    space = {"x": "float(0, 1)", "y": "float(0, 1)"}
    found = stoic.tune(build, space, n_trials=25, seed=0)
    print("failed:", dict(found.failures))
    print("recommended:", found.explanation.recommended.params)
    return found.explanation.recommended.params


if __name__ == "__main__":
    main()
