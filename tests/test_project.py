"""The files around the code agree with each other, and run only commands that there are."""

from __future__ import annotations

import os
import re
import tomllib

import pytest
import yaml

import stoic
from pages import ROOT
from scripts import load

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT, HATCH = PYPROJECT["project"], PYPROJECT["tool"]["hatch"]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))
INDEX = re.compile(
    r"\b(?:extra-)?index[-_]url\b|find[-_]links|https?://[^\s\"')]*"
    r"(?:pypi|pythonhosted|anaconda|conda-forge|npmjs|jsdelivr|artifactory|/whl\b|/simple\b)",
    re.IGNORECASE,
)
TREES = [
    ".ci",
    ".github",
    "benchmarks",
    "docs",
    "examples",
    "optunahub",
    "recipe",
    "src",
    "tests",
    "tools",
]


def parsed(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def recipe(target):
    """The commands of a target of the Makefile, None if there is no such target."""
    found = re.search(rf"^{re.escape(target)}:.*\n((?:\t.*\n?)*)", MAKEFILE, re.MULTILINE)
    return found and [line.strip() for line in found[1].splitlines()]


def runnable(command):
    """Whether it is a call of make, with a target and variables that the Makefile has."""
    word, *arguments = command.split()
    names = [each.partition("=")[0] for each in arguments if "=" in each]
    targets = [each for each in arguments if "=" not in each]
    return (
        word == "make"
        and len(targets) > 0
        and all(recipe(target) for target in targets)
        and all(f"$({name})" in MAKEFILE for name in names)
    )


def test_the_citation_is_of_this_version():
    citation = parsed(ROOT / "CITATION.cff")
    # Required by version 1.2.0 of the format; nothing else may stand there but optional fields.
    required = {"cff-version", "message", "title", "authors"}
    optional = {"abstract", "date-released", "doi", "identifiers", "keywords", "license"}
    optional |= {"preferred-citation", "references", "repository-code", "type", "url", "version"}
    assert required <= citation.keys() <= required | optional
    assert citation["cff-version"] == "1.2.0"
    assert citation["title"] == PROJECT["name"]
    assert citation["version"] == stoic.__version__
    assert citation["license"] == PROJECT["license"]


def test_the_version_has_one_home():
    assert "version" not in PROJECT
    assert PROJECT["dynamic"] == ["version"]
    assert HATCH["version"]["path"] == "src/stoic/__init__.py"


def test_the_recipe_for_conda_is_of_this_project():
    """Not built here; but what it says twice is the same."""
    recipe = parsed(ROOT / "recipe/recipe.yaml")
    assert recipe["context"]["version"] == stoic.__version__
    assert recipe["about"]["license"] == PROJECT["license"]
    assert recipe["about"]["summary"] == PROJECT["description"]
    assert f">={recipe['context']['python_min']}" == PROJECT["requires-python"]
    named = {"matplotlib": "matplotlib-base"}  # where conda calls it otherwise
    asked = [re.match(r"([\w-]+)(.*)", each).groups() for each in PROJECT["dependencies"]]
    _, *run = recipe["requirements"]["run"]  # after Python
    assert run == [f"{named.get(name, name)} {limits}" for name, limits in asked]
    scripts = [f"{name} = {home}" for name, home in PROJECT["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == scripts


def test_the_authors_have_one_name():
    authors = [author["name"] for author in PROJECT["authors"]]
    assert [author["name"] for author in parsed(ROOT / "CITATION.cff")["authors"]] == authors
    holder = re.search(r"Copyright \(c\) \d+ (.+)", (ROOT / "LICENSE").read_text())
    assert [holder[1].lower()] == [name.lower() for name in authors]


def test_a_command_that_is_not_in_the_makefile_is_found():
    assert runnable("make setup EXTRAS=docs")
    assert not runnable("make everything")
    assert not runnable("make setup FLAVOUR=docs")
    assert not runnable("make")
    assert not runnable("pip install .")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_uses_commands_of_the_makefile(path):
    workflow = parsed(path)
    assert workflow[True]  # "on", to YAML 1.1
    assert workflow["permissions"] == {"contents": "read"}  # a job that needs more says so
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    for step in steps:
        assert ("run" in step) != ("uses" in step)
        if "run" in step:
            assert all(runnable(line) for line in step["run"].splitlines()), step["run"]
        else:
            assert re.fullmatch(r"[\w.-]+(?:/[\w.-]+)+@[\w./-]+", step["uses"]), step["uses"]
    for job in workflow["jobs"].values():
        assert {*([job["needs"]] if "needs" in job else [])} <= workflow["jobs"].keys()


def test_the_workflows_test_every_python_that_is_announced():
    matrix = parsed(ROOT / ".github/workflows/tests.yml")["jobs"]["test"]["strategy"]["matrix"]
    announced = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert {*announced} <= {*matrix["python"]}
    lowest = min(matrix["python"], key=lambda each: int(each[2:]))
    assert f">={lowest}" == PROJECT["requires-python"]


def test_the_hooks_before_a_commit_are_make_check():
    (repository,) = parsed(ROOT / ".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"  # nothing is fetched
    hooks = repository["hooks"]
    assert [hook["entry"] for hook in hooks] == recipe("check")
    assert {hook["language"] for hook in hooks} == {"system"}
    assert not any(hook["pass_filenames"] for hook in hooks)


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_a_form_for_issues_is_complete(path):
    form = parsed(path)
    assert form.keys() == {"name", "description", "body"}
    asked = [field for field in form["body"] if field["type"] != "markdown"]
    assert {field["type"] for field in asked} <= {"input", "textarea"}
    assert all(field["attributes"]["label"] for field in asked)
    identifiers = [field["id"] for field in asked]
    assert len({*identifiers}) == len(identifiers)


def texts():
    """Path and text of what the repository holds; pictures and what was built are left out."""
    files = [path for path in ROOT.iterdir() if path.is_file()]
    for tree in TREES:
        for folder, _, names in os.walk(ROOT / tree):
            files += [ROOT / folder / name for name in names]
    for path in files:
        if path.suffix not in (".png", ".pyc", ".csv", ".db"):
            yield path, path.read_text(encoding="utf-8", errors="replace")


def test_no_file_has_the_address_of_a_package_index():
    """Which index serves an installation is for the machine to say."""
    found = {str(path.relative_to(ROOT)): INDEX.search(text) for path, text in texts()}
    assert found["pyproject.toml"] is None
    assert {path: match[0] for path, match in found.items() if match} == {}


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_an_address_of_an_index_is_found(scheme):
    host = "py" + "pi.example/sim" + "ple"
    assert INDEX.search(f"{scheme}://{host}")
    assert INDEX.search("--extra-index" + "-url x")
    assert not INDEX.search(f"{scheme}://optuna.org")


def test_the_release_check_finds_links_that_lead_nowhere(tmp_path):
    check = load(ROOT / "tools/release_check.py")
    page, deep = tmp_path / "index.html", tmp_path / "deep/index.html"
    deep.parent.mkdir()
    deep.write_text('<h1 id="here">x</h1><a href="../#top">up</a>')
    page.write_text('<h1 id="top">x</h1><a href="deep/#here">1</a><a href="https://a.org">2</a>')
    assert check.bad_links(tmp_path) == []
    page.write_text('<a href="deep/#there">1</a><a href="gone/">2</a><img src="https://a.org/a">')
    found = check.bad_links(tmp_path)
    assert [line.split()[-1] for line in found] == [
        "../#top",
        "https://a.org/a",
        "deep/#there",
        "gone/",
    ]


@pytest.mark.parametrize("file", ["Makefile", ".ci/run"])
def test_the_tests_that_are_named_exist(file):
    named = re.findall(r"tests/[\w/.]*\w", (ROOT / file).read_text(encoding="utf-8"))
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []
