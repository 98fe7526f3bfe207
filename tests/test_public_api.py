"""What users may rely on is listed, documented, and says what it guarantees."""

import ast
import importlib
import inspect
import pkgutil

import pytest

import stoic
from stoic.adversaries import ATTACKS, NOISES, PERTURBATIONS
from stoic.confidence import CONFIDENCES
from stoic.defences import DEFENCES
from stoic.kernels import KERNELS
from stoic.policies import POLICIES
from stoic.recipes import RECIPES, SEQUENTIAL

PUBLIC = [
    "Box",
    "Choice",
    "Failed",
    "Finite",
    "FrontResult",
    "GaussianProcess",
    "Learner",
    "Measured",
    "Observations",
    "Outcome",
    "Parts",
    "Prior",
    "Recommendation",
    "Targets",
    "TuningResult",
    "WaitingError",
    "recipes",
    "tune",
    "tune_front",
]
MODULES = [
    module.name
    for module in pkgutil.walk_packages(stoic.__path__, "stoic.")
    if not module.name.endswith("__main__")
]


def test_the_list_is_frozen():
    # Changing it is a decision: name it in the changelog, and here.
    assert stoic.__all__ == PUBLIC
    assert all(hasattr(stoic, name) for name in PUBLIC)


@pytest.mark.parametrize("home", [stoic, importlib.import_module("stoic.integrations.optuna")])
def test_a_typo_is_no_name(home):
    with pytest.raises(AttributeError, match="has no attribute 'Lerner'"):
        _ = home.Lerner
    # Of a function in sight a type checker would take every name for one that is there
    (guard,) = (
        node for node in ast.parse(inspect.getsource(home)).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "not TYPE_CHECKING"
    )  # fmt: skip
    assert [inner.name for inner in guard.body] == ["__getattr__"]


def test_the_version_is_the_installed_one():
    metadata = importlib.import_module("importlib.metadata")
    assert metadata.version("stoic") == stoic.__version__


def test_recommendations_of_the_tuples_are_in_their_folders_lists():
    for package, parts in (
        ("stoic.defences", DEFENCES),
        ("stoic.confidence", CONFIDENCES),
        ("stoic.policies", POLICIES),
        ("stoic.adversaries", (*ATTACKS, *NOISES, *PERTURBATIONS)),
    ):
        listed = importlib.import_module(package).__all__
        assert {part.__name__ for part in parts} <= set(listed)


# They need an outside library, which is an extra.
ADAPTERS = {
    f"stoic.integrations.{name}"
    for name in ("botorch", "mlflow", "sklearn", "torch_kernels", "wandb")
}


@pytest.mark.parametrize("name", MODULES)
def test_every_public_thing_has_a_docstring(name):
    if name in ADAPTERS:
        module = pytest.importorskip(name, exc_type=ImportError)
    else:
        module = importlib.import_module(name)
    assert module.__doc__, name
    for label, thing in vars(module).items():
        own = inspect.isclass(thing) or inspect.isfunction(thing)
        if label.startswith("_") or not own or thing.__module__ != name:
            continue
        # A dataclass without a docstring is given its signature as one.
        assert not (thing.__doc__ or f"{label}(").startswith(f"{label}("), f"{name}.{label}"


@pytest.mark.parametrize("part", [*RECIPES, *DEFENCES, *CONFIDENCES, *POLICIES])
def test_every_method_says_what_it_guarantees(part):
    text = inspect.getdoc(part)
    assert "\nGuarantee\n---------\n" in text
    section = text.split("\nGuarantee\n---------\n")[1].split("\n\n")[0]
    assert len(section) > 20


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_takes_a_prior_and_names_its_arguments(recipe):
    parameters = inspect.signature(recipe).parameters
    assert next(iter(parameters)) == "prior"
    if recipe in SEQUENTIAL:
        assert {"confidence", "policy"} <= set(parameters)
    assert all(p.kind is p.KEYWORD_ONLY for p in parameters.values())


@pytest.mark.parametrize(
    "part", [*DEFENCES, *KERNELS, *CONFIDENCES, *POLICIES, *ATTACKS, *NOISES, *PERTURBATIONS]
)
def test_parts_are_frozen(part):
    # State lives in the learner and in the environment, nowhere else.
    assert part.__dataclass_params__.frozen
