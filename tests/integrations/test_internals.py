"""Names of Optuna that are not public: each does what it is used for, and is used in one place."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from pathlib import Path

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import PartialFixedSampler, RandomSampler, TPESampler
from optuna.trial import Trial, TrialState, create_trial

from stoic.integrations.optuna import internals

SOURCE = Path(internals.__file__).parents[2]


@pytest.fixture
def study() -> optuna.Study:
    """The second one of its storage, so that its numbers are not those of its trials."""
    storage = optuna.storages.InMemoryStorage()
    optuna.create_study(storage=storage).ask()
    return optuna.create_study(storage=storage, sampler=RandomSampler(0))


def test_storage_study_and_trial_are_the_ones_that_are_meant(study):
    trial = study.ask()
    storage = internals.storage_of(study)
    assert storage.get_study_name_from_id(internals.study_id(study)) == study.study_name
    for known in (trial, study.trials[0]):
        assert storage.get_trial(internals.trial_id(known)).datetime_start == trial.datetime_start
        assert internals.trial_id(known) != trial.number == 0


def test_a_trial_begins_with_its_attributes_and_samplers_hear_of_it(study):
    study.ask()
    cached = {"deepcopy": False, "use_cache": True}  # as in optuna.samplers
    assert len(study._get_trials(**cached)) == 1
    trial = internals.begin_trial(study, {"who": "me"})
    assert len(study._get_trials(**cached)) == 2
    assert trial.number == 1
    stored = study.trials[1]
    assert (stored.state, stored.system_attrs) == (TrialState.RUNNING, {"who": "me"})
    study.tell(trial, 0.5)
    assert study.trials[1].value == 0.5


def test_fixed_parameters_are_those_of_a_queued_trial(study):
    study.enqueue_trial({"x": 0.25})
    assert study.ask().suggest_float("x", 0.0, 1.0) == 0.25
    assert internals.fixed_params(study.trials[0]) == {"x": 0.25}
    given = internals.begin_trial(study, internals.fixed_attrs({"x": 0.75}))
    assert internals.fixed_params(study.trials[1]) == {"x": 0.75}
    assert given.suggest_float("x", 0.0, 1.0) == 0.75
    assert internals.fixed_attrs({}) == {} == internals.fixed_params(create_trial(value=1.0))


def test_fixed_parameters_can_be_taken_back(study):
    trial = internals.begin_trial(study, internals.fixed_attrs({"x": 0.75}))
    internals.unfix(study, trial)
    assert internals.fixed_params(study.trials[0]) == {}
    again = Trial(study, internals.trial_id(trial))  # whoever takes it from the queue
    assert again.suggest_float("x", 0.0, 1.0) != 0.75


@pytest.mark.filterwarnings("ignore::UserWarning")  # both fix y
def test_fixed_by_samplers_around_one_another(study):
    study.sampler = PartialFixedSampler(
        {"y": 0.5}, PartialFixedSampler({"x": 0.25, "y": 0.75}, RandomSampler(0))
    )
    trial = study.ask({name: FloatDistribution(0.0, 1.0) for name in "xyz"})
    fixed = internals.fixed_by(study.sampler)
    assert fixed == {"x": 0.25, "y": 0.5} == {name: trial.params[name] for name in "xy"}
    assert internals.fixed_by(RandomSampler()) == {}


@pytest.mark.parametrize(
    ("distribution", "inside", "outside"),
    [
        (FloatDistribution(0.0, 1.0), [0.0, 0.3, 1], [-0.1, 1.1, math.nan, "a", None, []]),
        (FloatDistribution(0.0, 1.0, step=0.25), [0.5], [0.6]),
        (IntDistribution(1, 9, step=2), [3, 9.0], [4, 11, "b", "3"]),
        (CategoricalDistribution(["a", 2]), ["a", 2], ["b", 3, None]),
    ],
)
def test_values_that_a_parameter_can_have(distribution, inside, outside):
    assert all(internals.possible(distribution, value) for value in inside)
    assert not any(internals.possible(distribution, value) for value in outside)


def test_a_study_can_be_stopped_within_only(study):
    with pytest.raises(RuntimeError):
        study.stop()
    with internals.stoppable(study):
        assert not internals.is_stopped(study)
        study.stop()
    assert internals.is_stopped(study)
    with pytest.raises(RuntimeError):
        study.stop()


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_constraints_are_stored_as_by_optunas_samplers(study):
    def constraints_func(trial):
        return (trial.params["x"] - 0.5, -1.0)

    def objective(trial):
        return trial.suggest_float("x", 0.0, 1.0)

    study.sampler = TPESampler(seed=0, constraints_func=constraints_func)
    study.optimize(objective, n_trials=1)
    theirs = study.trials[0]
    internals.record_constraints(study, study.ask(), TrialState.FAIL, constraints_func)
    trial = study.ask({"x": FloatDistribution(0.0, 1.0)})
    running = study.trials[-1]
    internals.record_constraints(study, running, TrialState.COMPLETE, constraints_func)
    study.tell(trial, 1.0)
    ours = study.trials[-1]
    assert internals.constraints(theirs) == dict(zip("01", constraints_func(theirs), strict=True))
    assert internals.constraints(ours) == dict(zip("01", constraints_func(ours), strict=True))
    assert ours.system_attrs.keys() == theirs.system_attrs.keys()
    assert internals.constraints(study.trials[1]) == {}  # it failed


def test_constraints_that_cannot_be_computed_are_not_a_number(study):
    study.ask()
    internals.record_constraints(
        study, study.trials[0], TrialState.COMPLETE, lambda trial: [1.0, math.nan]
    )
    assert str(internals.constraints(study.trials[0])) == "{'0': 1.0, '1': nan}"

    def raises(trial):
        raise RuntimeError("no such file")

    with pytest.raises(RuntimeError, match="no such file"):
        internals.record_constraints(study, study.trials[0], TrialState.COMPLETE, raises)
    assert str(internals.constraints(study.trials[0])) == "{'0': nan}"


def test_named_constraints_are_read_whatever_the_version(study):
    stored = {"constraints": [1.0], "constraints:c": -2.0, "constraintsx": 3.0, "other": 4.0}
    found = internals.constraints(create_trial(value=1.0, system_attrs=stored))
    assert found == {"0": 1.0, "c": -2.0}
    if not hasattr(Trial, "set_constraint"):  # before Optuna 5
        return
    study.ask().set_constraint("c", 0.5)
    assert internals.constraints(study.trials[0]) == {"c": 0.5}


def test_stored_constraints_are_read_by_optuna(study):
    trial = study.ask()
    internals.store_constraints(study, trial, {"latency": 0.5, "size": math.nan})
    (stored,) = study.trials
    assert next(iter(internals.constraints(stored).values())) == 0.5
    if hasattr(Trial, "set_constraint"):
        assert list(stored.constraints) == ["latency", "size"]


def _optunas() -> set[str]:
    """Private names of what stoic handles of Optuna, and keys of its own attributes."""
    study = optuna.create_study()
    trial = study.ask()
    handled = [
        study, trial, study.trials[0], internals.storage_of(study), FloatDistribution(0.0, 1.0),
        PartialFixedSampler({}, RandomSampler()), optuna.search_space.IntersectionSearchSpace(),
        study._thread_local, optuna.samplers._base,
    ]  # fmt: skip
    names = {name for thing in handled for name in (*dir(thing), *getattr(thing, "__dict__", ()))}
    private = {name for name in names if name.startswith("_") and not name.startswith("__")}
    return private | {"fixed_params"}  # constraints are a word of ours, too


def _used(tree: ast.AST, names: set[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in names and node.attr.startswith("_"):
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if not own or hasattr(optuna.samplers.BaseSampler, node.attr):
                yield ast.unparse(node)
        elif isinstance(node, ast.Constant) and node.value in names:  # a key, or of getattr
            yield repr(node.value)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", None) or ""
            for alias in node.names:
                path = f"{module}.{alias.name}".strip(".").split(".")
                if path[0] == "optuna" and any(part.startswith("_") for part in path):
                    yield ast.unparse(node)


def test_no_other_module_uses_a_private_name_of_optuna():
    names = _optunas()
    assert {"_storage", "_study_id", "_trial_id", "_stop_flag", "_fixed_params"} <= names
    edge = {"integrations", "tuning", "cli"}  # elsewhere nothing is Optuna's
    found = {
        str(path.relative_to(SOURCE)): list(_used(ast.parse(text), names))
        for path in sorted(SOURCE.rglob("*.py"))
        if "optuna" in (text := path.read_text()) or edge & set(path.parts)
    }
    assert len(found.pop("integrations/optuna/internals.py")) > 10
    assert {path: used for path, used in found.items() if used} == {}
