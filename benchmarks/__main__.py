"""Run the benchmarks that are named, or all of them."""

from __future__ import annotations

import argparse
import importlib
import os

NAMES = (
    "start",
    "rounds",
    "corruption",
    "heavy_tails",
    "outliers",
    "inputs",
    "ask",
    "sampler",
    "long",
    "acquisition",
    "same",
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*NAMES, []], help="default: all")
    chosen = parser.parse_args().names or NAMES
    # One BLAS thread, set before NumPy loads: more are slower at these sizes, and not comparable.
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    for name in chosen:
        module = importlib.import_module(f"benchmarks.{name}")
        print(f"\n{name}: {(module.__doc__ or '').splitlines()[0]}", flush=True)
        module.main()


if __name__ == "__main__":
    main()
