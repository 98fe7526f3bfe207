import math
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from stoic.distances import Distance, blocks, reach
from stoic.kernels import RBF, Matern32, Scaled

RNG = np.random.default_rng(0)
X, Z = RNG.uniform(5.0, 9.0, (40, 3)), RNG.uniform(5.0, 9.0, (60, 3))
X[:, 0], X[:, 2] = RNG.integers(5, 9, size=40), RNG.integers(3, size=40)
Z[:, 0], Z[:, 2] = RNG.integers(5, 9, size=60), RNG.integers(4, size=60)
POWERS = {"cityblock": 1.0, "euclidean": 2.0, "chebyshev": math.inf}
KERNEL = Scaled(Matern32(np.array([1.0, 2.0, 0.5])), 3.0)


def literal(distance, x, z):
    """Each pair on its own, from the definition."""
    unit = np.broadcast_to(distance.tolerance, x.shape[1:])
    table = np.empty((len(x), len(z)))
    for i, a in enumerate(x):
        for j, b in enumerate(z):
            moving = unit > 0.0
            if (a != b)[~moving].any():
                table[i, j] = math.inf
            elif isinstance(distance.metric, str):
                steps = (a - b)[moving] / unit[moving]
                table[i, j] = np.linalg.norm(steps, POWERS[distance.metric])
            else:
                k = [[float(KERNEL(u[None], v[None])[0, 0]) for v in (a, b)] for u in (a, b)]
                table[i, j] = math.sqrt(max(k[0][0] - 2.0 * k[0][1] + k[1][1], 0.0))
    return table


DISTANCES = [
    Distance(),
    Distance("cityblock", [1.0, 2.0, 0.5]),
    Distance("chebyshev", [1.0, 0.3, 0.0]),
    Distance(tolerance=[0.0, 2.0, 0.0]),
    Distance("euclidean", 4.0),
    Distance.of_kernel(KERNEL),
    Distance.of_kernel(KERNEL, [1.0, 1.0, 0.0]),
]


@pytest.mark.parametrize("distance", DISTANCES)
def test_every_pair_is_as_far_apart_as_the_definition_says(distance):
    assert_allclose(distance(X, Z), literal(distance, X, Z), rtol=1e-12, atol=1e-7)


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("copies", [1, 20])
def test_nearest_is_the_least_of_all_with_a_tree_or_without(distance, copies):
    # Twenty times the rows are many enough for the tree.
    x, z = np.tile(X, (copies, 1)), np.tile(Z, (copies, 1)) + 0.0
    expected = literal(distance, X, Z).min(axis=1)
    assert_allclose(distance.nearest(x, z), np.tile(expected, copies), rtol=1e-9, atol=1e-7)
    middle = np.median(expected[np.isfinite(expected)])
    close = np.where(expected <= reach(middle), expected, np.inf)
    near = distance.nearest(x, z, reach(middle))
    assert_allclose(near, np.tile(close, copies), rtol=1e-9, atol=1e-7)
    assert np.isinf(distance.nearest(x, z[:0])).all()


def test_nothing_is_altered():
    x, z = X.copy(), Z.copy()
    for distance in DISTANCES:
        distance(x, z)
        distance.nearest(x, z)
        distance.ball(x[0], z, 2.0)
    assert_array_equal(x, X)
    assert_array_equal(z, Z)


def test_a_ball_has_its_surface_wherever_the_grid_is():
    # 0.1 is not a binary fraction: the same step is sometimes a digit longer.
    for origin in (0.0, 3.7, -11.3, 1e3):
        line = (origin + 0.1 * np.arange(50))[:, None]
        sizes = {len(Distance().ball(line[i], line, 0.3)) for i in range(3, 47)}
        assert sizes == {7}


def test_the_tolerance_is_the_unit():
    far = Distance(tolerance=[2.0, 0.5])
    assert far(np.ones((1, 2)), np.array([[3.0, 1.0], [1.0, 2.0]])).tolist() == [[1.0, 2.0]]


def test_blocks_cover_all_rows_once_and_stay_small():
    rows = np.concatenate([np.arange(10_000)[part] for part in blocks(10_000, 10_000)])
    assert_array_equal(rows, np.arange(10_000))
    points = np.random.default_rng(1).random((3_000, 2))
    tracemalloc.start()
    Distance.of_kernel(RBF(0.3)).nearest(points, points[:2_000])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 3_000 * 2_000 / 2  # never all distances at once


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tolerance": -1.0}, "finite number >= 0"),
        ({"tolerance": [1.0, math.inf]}, "finite number >= 0"),
        ({"tolerance": [[1.0]]}, "one or one per coordinate"),
        ({"tolerance": [0.0, 0.0]}, "nothing moves"),
        ({"metric": "euclidian"}, "name that scipy knows"),
        ({"metric": "seuclidean"}, "depends on all rows"),
        ({"metric": lambda x, z: np.zeros((len(x), len(z))), "tolerance": 2.0}, "units of its own"),
    ],
)
def test_what_is_no_distance_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Distance(**arguments)


def test_a_tolerance_for_each_coordinate():
    with pytest.raises(ValueError, match="3 coordinates, but there are 2 tolerances"):
        Distance(tolerance=[1.0, 1.0])(X, Z)
