"""One ask of a long study: the default and others through Optuna, CPU seconds, and memory."""

from __future__ import annotations

import resource
import statistics
import time
import warnings

import optuna

from benchmarks.sampler import _begun, _space, _value
from stoic.integrations.optuna import StoicSampler, explain

SIZES = (200, 500, 1000, 2000, 5000, 10000)
PARAMETERS = 6
ASKS = 7
GP_UP_TO = 500  # GPSampler: its ask of 1,000 takes minutes


def main() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    samplers = {
        "default": lambda: StoicSampler(seed=0),
        "TPE": lambda: optuna.samplers.TPESampler(seed=0),
    }
    try:
        import torch
    except ImportError:
        print("  GPSampler is left out: it needs torch, which is not installed")
    else:
        torch.set_num_threads(1)
        samplers["GPSampler"] = lambda: optuna.samplers.GPSampler(seed=0)
    for n in SIZES:
        for name, make in samplers.items():
            if name == "GPSampler" and n > GP_UP_TO:
                continue
            study = _begun(n, PARAMETERS, make())
            taken = []
            for _ in range(ASKS):
                start = time.process_time()
                trial = study.ask(_space(PARAMETERS))
                taken.append(time.process_time() - start)
                study.tell(trial, _value([trial.params[f"x{i}"] for i in range(PARAMETERS)]))
            line = f"  {n:6d} {name:>10}: first {taken[0]:6.2f}  "
            line += f"then {statistics.median(taken[1:]):6.3f}"
            if name == "default":
                start = time.process_time()
                explain(study)
                line += f"  explain {time.process_time() - start:6.2f}"
            # The largest so far, in kB on Linux.
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(f"{line}  MB {memory:5.0f}", flush=True)
