"""Write down the tests that were skipped, for an environment in which they are not.

``PYTHONPATH=.ci pytest -p skipped --skipped FILE``, and there ``pytest @FILE``. Of modules that one
line of a helper skips, workers report the first alone: each has a line of its own.
"""

from pathlib import Path


def pytest_addoption(parser):
    """Add --skipped."""
    parser.addoption("--skipped", metavar="FILE", help="write the names of skipped tests to FILE")


def pytest_configure(config):
    """Listen, but not in a worker: those report to the process that started them."""
    name = config.getoption("skipped")
    if name and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Skipped(Path(name).absolute()))


class _Skipped:
    def __init__(self, file):
        self.file, self.names = file, {}

    def pytest_collectreport(self, report):
        """Note a whole module or a test; one that is expected to fail is reported alike."""
        if report.skipped and not hasattr(report, "wasxfail"):
            # Of a test without examples there may be some elsewhere
            self.names[report.nodeid.removesuffix("[NOTSET]")] = True

    pytest_runtest_logreport = pytest_collectreport

    def pytest_sessionfinish(self):
        self.file.write_text("".join(f"{name}\n" for name in self.names))
