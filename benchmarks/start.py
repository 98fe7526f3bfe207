"""Start-up: importing the library, and the help of the command line (whole processes)."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import numpy, scipy.linalg": ["-c", "import numpy, scipy.linalg"],
    "import stoic": ["-c", "import stoic"],
    "import optuna": ["-c", "import optuna"],
    "what stoic tune imports": ["-c", "import stoic.tuning.campaign"],
    "stoic --help": ["-m", "stoic", "--help"],
}


def main() -> None:
    for name, arguments in COMMANDS.items():
        times = []
        for _ in range(6):
            start = time.perf_counter()
            subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
            times.append(time.perf_counter() - start)
        print(f"  {name:28s} {statistics.median(times[1:]):6.3f} s")
