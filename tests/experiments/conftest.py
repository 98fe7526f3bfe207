import numpy as np
import pytest
from scipy.io import savemat


@pytest.fixture(scope="session")
def tables(tmp_path_factory):
    """A directory with small tables for the figures of real data, under their usual names."""
    directory, rng = tmp_path_factory.mktemp("tables"), np.random.default_rng(0)
    prices = rng.uniform(1.0, 9.0, (6, 3))
    rows = [f"2017-01-0{day},{','.join(map(str, row))}" for day, row in enumerate(prices, start=2)]
    (directory / "stocks_2016_2019.csv").write_text("\n".join(["Date,A,B,C", *rows, ""]))
    readings = {
        "train": {"sensordata": rng.uniform(1.0, 9.0, (30, 4))},
        "test": {"sensordata": rng.uniform(1.0, 9.0, (7, 4))},
        "coords": np.array([[20.0, 5.0], [30.0, 5.0], [20.0, 9.0], [25.0, 7.0]]),
    }
    savemat(directory / "light_sensors_2005.mat", {"data": readings})
    meals = [
        f"100,{meal},{dose},{100.0 + 0.8 * meal - 6.0 * dose + 0.02 * meal * dose}"
        for meal in (0, 20, 50, 80, 100)
        for dose in range(0, 15, 2)
    ]
    head = "fasting_glucose_mg_dl,carbohydrate_g,insulin_u,glucose_150min_mg_dl"
    (directory / "postprandial_glucose.csv").write_text("\n".join([head, *meals, ""]))
    return directory
