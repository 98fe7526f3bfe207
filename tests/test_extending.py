"""The parts that docs/extending.md shows keep the contract, and the seams what it promises."""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

import pages
from stoic import Box, Finite, GaussianProcess, Learner, Prior, testing
from stoic.confidence import Fixed
from stoic.domains import Lattice
from stoic.experiments import reproduce
from stoic.kernels import RBF
from stoic.policies import UCB
from stoic.recipes import Parts
from stuck import GRID, PRIOR, Stuck

PAGE = pages.ROOT / "docs/extending.md"


@pytest.fixture(scope="module")
def page():
    return pages.run(PAGE)


# --- the contract ---------------------------------------------------------------------------------


def test_every_part_on_the_page_keeps_the_contract(page):
    """What the conformance tests ask of the library's own parts, the page's parts pass too."""
    domain = Finite(4.0 + np.linspace(0.0, 1.0, 30))
    prior = Prior(RBF(0.2), 1.0)

    def best_of():
        model = page.BestOf((Prior(RBF(1.0), 0.1), Prior(RBF(3.0), 0.1)))
        return Learner(Box([4.0], [12.0]), Parts(model, Fixed(2.0), UCB()), seed=0)

    absurd = testing.example_observations(domain, 24, 3, True)
    posterior = GaussianProcess(prior, page.Possible(-2.0, 2.0))(domain, absurd)
    testing.check_defence(page.Possible(-2.0, 2.0))
    testing.check_confidence(page.CorruptionBudget(Fixed(1.0), 3.0), [posterior])
    testing.check_policy(page.Explore())
    for make in (best_of, lambda: page.Learner(domain, page.rgp_ucb(prior=prior, budget=2.0))):
        testing.check_learner(make)


def test_the_figure_of_the_page_runs_from_its_file(tmp_path):
    """It needs nothing of the page, nor of the package that is not imported in it."""
    code = next(c for _, _, c in pages.blocks(PAGE) if c.startswith("# slump.py\n"))
    (tmp_path / "slump.py").write_text(code, encoding="utf-8")
    options = {"trials": 2, "rounds": 12, "jobs": 2, "out": tmp_path}
    results = reproduce(f"{tmp_path / 'slump.py'}:FIGURE", **options)
    assert results.claims[0].source == "ours"
    assert results.claims[0].measured["trials"] == 2.0
    assert results.png.exists()
    with results.csv.open(newline="") as file:
        rows = list(csv.DictReader(file))
    lies = [row["observed"] for row in rows if row["corrupted"] == "1"]
    assert lies
    assert set(lies) == {"-5.0"}


def test_the_defence_of_the_page_is_one_file_of_the_package(tmp_path):
    """Followed to the letter, in a copy: the file, and the lines in the folder's list."""
    source = tmp_path / "stoic"
    shutil.copytree(pages.ROOT / "src/stoic", source, ignore=shutil.ignore_patterns("__pycache__"))
    files = [
        (path[1], code)
        for _, _, code in pages.blocks(PAGE)
        if (path := re.match(r"# src/stoic/(\S+)\n", code))
    ]
    assert [name for name, _ in files] == ["defences/possible.py"]
    for name, code in files:
        (source / name).write_text(code, encoding="utf-8")
    listed = (source / "defences/__init__.py").read_text(encoding="utf-8")
    imported = "from stoic.defences.possible import Possible\nDEFENCES = (\n    Possible,"
    lines = listed.replace("DEFENCES = (", imported)
    (source / "defences/__init__.py").write_text(lines, encoding="utf-8")
    tried = (
        "import stoic.confidence, stoic.testing; from stoic.defences import DEFENCES;"
        "stoic.testing.check_defence(DEFENCES[0](-2.0, 2.0)); print(DEFENCES[0].__module__)"
    )
    command = [sys.executable, "-c", tried]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert ran.stdout == "stoic.defences.possible\n", ran.stderr


# --- what the seams themselves promise -----------------------------------------------------------


def test_a_context_on_a_box_is_a_lattice_with_one_value():
    box = Box([0.0, -1.0], [1.0, 1.0])
    learner = Learner(box, Parts(GaussianProcess(PRIOR), Fixed(), UCB()), seed=0)
    learner.tell([[0.2, 0.0], [0.7, 0.3]], [0.1, 0.4])
    given = Lattice(np.array([1]), np.array([[0.25]]))
    for choice in learner.ask_batch(4, among=Box(box.lower, box.upper, (given,))):
        assert choice.x[1] == 0.25


def test_a_thousand_open_questions_are_answered_in_any_order():
    """An epoch may be open as a whole; the choices of one point are told apart."""
    learner = Learner(GRID, Parts(GaussianProcess(PRIOR), Fixed(), Stuck(3)))
    open_ = learner.ask_batch(1000)
    order = np.random.default_rng(0).permutation(1000)
    for i in order[:600]:
        learner.tell(GRID.points[3], 0.0, choice=open_[i])
    assert learner.pending == [open_[i] for i in sorted(order[600:])]
    learner.tell(GRID.points[3], 0.0)
    assert learner.pending == [open_[i] for i in sorted(order[600:])][1:]


def test_a_choice_per_result_or_none_is_stored():
    learner = Learner(GRID, Parts(GaussianProcess(PRIOR), Fixed(), UCB()))
    choices = learner.ask_batch(2)
    with pytest.raises(ValueError, match="Got 1 inputs but 2 choices"):
        learner.tell(choices[0].x, 0.0, choice=choices)
    assert len(learner) == 0
    assert learner.pending == choices
    learner.tell(np.array([c.x for c in choices]), [0.0, 0.1], choice=choices)
    assert learner.pending == []
