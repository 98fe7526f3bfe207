import numpy as np
import pytest

from stoic.experiments.outliers.weights import Settings, cells, claims, run, weights

SETTINGS = Settings()


def test_weights_by_hand():
    y = np.array([0.0, 2.0, -3.0, 5.0])
    # (1 + r^2)^(-1/2) and (1 + (r - 2)^2)^(-1/2) beyond 2
    imq = [1.0, 5**-0.5, 10**-0.5, 26**-0.5]
    plateau = [1.0, 1.0, 2**-0.5, 10**-0.5]
    np.testing.assert_allclose(weights(SETTINGS, 0.0, y), imq, rtol=1e-13)
    np.testing.assert_allclose(weights(SETTINGS, 2.0, y), plateau, rtol=1e-13)


@pytest.mark.parametrize(
    "settings", [SETTINGS, Settings(weight=0.3, shape=2.5, centre=-7.0, half_width=0.5)]
)
def test_claims_hold_for_these_and_other_numbers(settings):
    found = claims(settings, run(settings, cells(settings)[0]))
    assert [claim.claim for claim in found if not claim.holds] == []


def test_claims_can_fail(monkeypatch):
    rows = run(SETTINGS, cells(SETTINGS)[0])
    spoiled = [row._replace(plateau_imq=0.9 * row.plateau_imq) for row in rows]
    verdicts = [claim.holds for claim in claims(SETTINGS, spoiled)]
    assert verdicts == [False, True, False, True, True, True]


def test_rows_are_symmetric_about_the_centre():
    settings = Settings(centre=3.0)
    rows = np.array(run(settings, cells(settings)[0]))
    np.testing.assert_allclose(rows[:, 0] + rows[::-1, 0], 6.0, atol=1e-12)
    np.testing.assert_allclose(rows[:, 1:], rows[::-1, 1:], rtol=1e-9)
