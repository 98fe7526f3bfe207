"""The example in Ax: an experiment in which each eighth result is a lie."""

import runpy
from pathlib import Path

import pytest

pytest.importorskip("botorch")
pytest.importorskip("ax", reason="Ax is not installed: pip install 'stoic[ax]'")

from stoic.integrations.botorch import RobustConjugateGP

EXAMPLE = Path(__file__).parents[2] / "examples" / "ax" / "robust.py"


@pytest.mark.filterwarnings("ignore")  # of Ax, of its dependencies, and of searches that stop early
def test_what_is_recommended_is_good_and_so_estimated(capsys):
    ran = runpy.run_path(str(EXAMPLE))
    x, y = ran["parameters"]["x"], ran["parameters"]["y"]
    truth = -((x - 2.0) ** 2) - 3.0 * (y + 1.0) ** 2
    assert truth > -0.6  # the range is 157
    assert ran["estimate"]["score"][0] == pytest.approx(truth, abs=0.3)  # a deviation of the noise
    assert "recommended: {'x': " in capsys.readouterr().out
    model = ran["strategy"].adapter.generator.surrogate.model
    assert isinstance(model, RobustConjugateGP)
    told = ran["client"].summarize()["score"].to_numpy()[: len(model.trust)]
    lies = [trial for trial in range(len(told)) if trial % 8 == 5]
    assert (told[lies] == 1e6).all()
    assert [trial for trial in range(len(told)) if model.trust[trial] < 0.5] == lies
