"""The packages for OptunaHub load as its registry would load them, and their examples run."""

from __future__ import annotations

import re
import runpy
import warnings

import optuna
import pytest
import yaml
from matplotlib.figure import Figure

from pages import FENCE, ROOT
from stoic.integrations.optuna import StoicSampler

REGISTRY = ROOT / "optunahub"
PACKAGES = {
    path.parent.relative_to(REGISTRY).as_posix(): path.parent
    for path in sorted(REGISTRY.glob("*/*/__init__.py"))
}
TAGS = {"samplers": "sampler", "visualization": "visualization"}


@pytest.fixture
def hub(monkeypatch):
    """OptunaHub, whose registry is the folder here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own imports
        # Not `optunahub`, which our folder of that name would be without it.
        pytest.importorskip("optunahub.hub", reason="pip install optunahub")
        import optunahub

    def load(package):
        return optunahub.load_local_module(package=package, registry_root=str(REGISTRY))

    monkeypatch.setattr(optunahub, "load_module", load)
    return optunahub


def front_matter(package):
    text = (PACKAGES[package] / "README.md").read_text(encoding="utf-8")
    _, matter, body = text.split("---\n", 2)
    return yaml.safe_load(matter), body


def test_there_are_two():
    assert list(PACKAGES) == ["samplers/stoic", "visualization/stoic_trust"]


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_has_the_layout_of_the_registry(package):
    matter, body = front_matter(package)
    assert list(matter) == ["author", "title", "description", "tags", "optuna_versions", "license"]
    assert TAGS[package.partition("/")[0]] in matter["tags"]
    assert all(isinstance(each, str) for each in (*matter["tags"], *matter["optuna_versions"]))
    assert matter["license"] == "MIT License"
    headings = re.findall(r"^## (.+)$", body, re.MULTILINE)
    assert headings[:4] == ["Abstract", "APIs", "Installation", "Example"]
    for picture in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", body):
        assert (PACKAGES[package] / picture).is_file()
    assert (PACKAGES[package] / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    assert (PACKAGES[package] / "requirements.txt").read_text() == "stoic>=0.2\n"


@pytest.mark.parametrize("package", PACKAGES)
def test_the_example_of_a_package_runs(package, hub, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    known = runpy.run_path(str(PACKAGES[package] / "example.py"), run_name="__main__")
    if package == "samplers/stoic":
        assert known["explanation"].observed_best.number == 12
        assert known["explanation"].recommended.params["x"] == pytest.approx(0.3, abs=0.1)
        assert "distrusted: [12]" in capsys.readouterr().out
    else:
        assert (tmp_path / "trust.png").stat().st_size > 10_000


@pytest.mark.parametrize("package", PACKAGES)
def test_the_code_of_a_readme_runs(package, hub, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (PACKAGES[package] / "README.md").read_text(encoding="utf-8")
    (code,) = (code for language, code in FENCE.findall(text) if language == "python")
    known = {}
    exec(compile(code, f"{package}/README.md", "exec"), known)
    assert len(known["study"].trials) >= 20


def test_a_loaded_sampler_is_ours_and_a_loaded_plot_a_figure(hub):
    loaded = hub.load_module(package="samplers/stoic")
    assert loaded.StoicSampler is StoicSampler
    study = optuna.create_study(sampler=loaded.StoicSampler(seed=0))
    study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0) ** 2, n_trials=5)
    plot = hub.load_module(package="visualization/stoic_trust").plot_trust(study)
    assert isinstance(plot, Figure)
    assert "trust" in [axes.get_ylabel().split(",")[0] for axes in plot.axes]
