"""Each module imports only from what stands above it, and nothing heavy is imported unasked."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "stoic"

# From the nouns to the command line. A folder is one layer: its modules may import one another, as
# long as there is no circle.
LAYERS = (
    "refusal",  # the one error that a user's request ends in; knows nothing
    "printable",  # texts of others, as they may be shown; knows nothing
    "user_file",
    "data",
    "linalg",
    "threads",  # of the linear algebra
    "descent",
    "pareto",
    "kernels",
    "sources",  # features of a kernel, from earlier studies
    "distances",
    "curves",
    "satisficing",
    "domains",
    "posteriors",
    "theory",
    "defences",
    "models",
    "confirmation",
    "confidence",
    "pending",
    "history",
    "surrogate",
    "policies",
    "promises",
    "rewards",
    "recipes",
    "optimizer",
    "learner",
    "balancing",
    "objectives",
    "problems",
    "adversaries",
    "environment",
    "simulate",
    "requirements",  # what the checks of testing are made of
    "testing",
    "integrations",
    "experiments",  # the contest plays through Optuna, as other optimizers do
    "tuning",
    "",  # stoic/__init__.py: what users import; here everything is imported from its own home
    "cli",
    "__main__",
)
HEAVY = ("torch", "sklearn", "optuna", "matplotlib", "joblib", "rich", "typer", "gymnasium")


def modules():
    """Dotted name below ``stoic`` ("" for the package itself) of every source file."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imports(name, only_at_import=False):
    """Modules of stoic that a module imports, anywhere in it, read from its text."""
    tree = ast.parse(MODULES[name].read_text())
    nodes = tree.body if only_at_import else ast.walk(tree)
    for node in nodes:
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} imports relatively"
            targets = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for target in targets:
            head, _, rest = target.partition(".")
            if head != "stoic":
                continue
            while rest and rest not in MODULES:  # a name in a module is that module
                rest = rest.rpartition(".")[0]
            yield rest


def layer(name):
    return LAYERS.index(name.partition(".")[0])


def test_every_file_has_a_layer():
    assert {name.partition(".")[0] for name in MODULES} == set(LAYERS)


@pytest.mark.parametrize("name", MODULES)
def test_imports_only_from_above(name):
    for target in imports(name):
        same = target.partition(".")[0] == name.partition(".")[0]
        assert same or layer(target) < layer(name), f"{name} imports {target}"


def test_there_is_no_circle():
    # Of what runs at import; at the user's edge also of what runs in functions, and of types.
    edge = {"integrations", "tuning", "cli"}
    done, active = set(), []

    def visit(name):
        assert name not in active, f"circle: {[*active[active.index(name) :], name]}"
        if name not in done:
            active.append(name)
            for target in imports(name, only_at_import=name.partition(".")[0] not in edge):
                # `from package.module import x` runs the package first, unless it is running.
                if target != name and not name.startswith(target + "."):
                    visit(target)
            active.pop()
            done.add(name)

    for name in MODULES:
        visit(name)
    assert done == set(MODULES)


def test_no_file_is_named_after_nothing():
    nothing = {"utils", "util", "helpers", "helper", "common", "core", "manager", "misc", "tools"}
    assert not nothing & {part for name in MODULES for part in name.split(".")}


def test_files_stay_readable():
    # A median of about 150 lines; think of splitting at 400 (kernels: one formula after another).
    lengths = {name: len(path.read_text().splitlines()) for name, path in MODULES.items()}
    assert sorted(lengths.values())[len(lengths) // 2] < 200
    assert {name for name, length in lengths.items() if length > 650} == set()


def test_importing_stoic_imports_nothing_heavy():
    code = f"import sys, stoic; print(*sorted(set({HEAVY!r}) & set(sys.modules)))"
    command = [sys.executable, "-c", code]
    assert subprocess.check_output(command, text=True).split() == []


def test_the_core_needs_no_outside_library_but_numpy_scipy_and_what_limits_their_threads():
    core = LAYERS[: LAYERS.index("problems")]
    allowed = set(sys.stdlib_module_names) | {"numpy", "scipy", "threadpoolctl", "stoic"}
    for name, path in MODULES.items():
        if name.partition(".")[0] not in core or not name:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                heads = {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                heads = {node.module.partition(".")[0]}
            else:
                continue
            assert heads <= allowed, (name, heads)
