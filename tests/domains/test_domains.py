import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from stoic.data import Observations
from stoic.domains import Among, Box, Finite, Lattice
from stoic.domains.tree import Node, Tree
from stoic.kernels import Matern52, Scaled
from stoic.policies import Band, UpperConfidenceBound
from stoic.posteriors import Exact, Prior, as_observed
from stoic.problems import SMOOTH

NOWHERE = np.empty((0, 1))


class Height:
    """A surface from a function of points and, if any, its gradient."""

    def __init__(self, function, gradient=None):
        self.function, self.gradient = function, gradient

    def __call__(self, x):
        return self.function(x)

    def with_gradient(self, x):
        if self.gradient is not None:
            return self.function(x), self.gradient(x)
        h = 1e-6
        steps = h * np.eye(x.shape[1])
        slopes = [(self.function(x + s) - self.function(x - s)) / (2 * h) for s in steps]
        return self.function(x), np.stack(slopes, axis=1)


def top(domain, function, seed=0, near=None, gradient=None):
    near = np.empty((0, domain.dim)) if near is None else near
    return domain.maximise(Height(function, gradient), np.random.default_rng(seed), near)


# Finite


def test_ties_go_to_the_lowest_row():
    domain = Finite(np.array([[3.0], [1.0], [2.0], [5.0]]))
    assert top(domain, lambda x: np.array([1.0, 7.0, 7.0, 7.0])).arm == 1
    assert top(domain, lambda x: np.zeros(4)).arm == 0
    among = Among(domain, np.array([3, 2]))
    assert among.maximise(Height(lambda x: np.zeros(4)), None, NOWHERE).arm == 2  # not as listed
    peak = top(domain, lambda x: x[:, 0])
    assert (peak.arm, peak.height) == (3, 5.0)
    assert_array_equal(peak.x, [5.0])


def test_points_are_found_again_by_their_value():
    domain = Finite(np.array([[0.0, 1.0], [-0.0 + 2.0, 3.0], [0.1 + 0.2, 5.0]]))
    assert_array_equal(domain.locate(np.array([[2.0, 3.0], [-0.0, 1.0]])), [1, 0])
    assert_array_equal(domain.locate(np.array([[0.1 + 0.2, 5.0]])), [2])
    assert_array_equal(domain.locate(np.array([[2, 3]])), [1])
    # 0.3 is not 0.1 + 0.2, but the same up to rounding
    assert_array_equal(domain.locate(np.array([[0.3, 5.0], [2.0, 3.0]])), [2, 1])
    with pytest.raises(ValueError, match=r"\[0.3001, 5.0\] is not one of the 3 points.*use a Box"):
        domain.locate(np.array([[0.3, 5.0], [0.3001, 5.0]]))
    with pytest.raises(ValueError, match="2 coordinates"):
        domain.locate(np.array([[1.0]]))
    with pytest.raises(ValueError, match="must be finite"):
        domain.locate(np.array([[0.0, np.nan]]))


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (np.empty((0, 2)), "shape"),
        (np.array([[1.0], [1.0]]), "distinct points.*np.unique"),
        (np.array([[0.0], [-0.0]]), "distinct points"),
        (np.array([[np.nan]]), "finite"),
        (np.ones((2, 2, 2)), "shape"),
    ],
)
def test_impossible_finite_domains_are_refused(points, message):
    with pytest.raises(ValueError, match=message):
        Finite(points)


def test_a_finite_domain_cannot_be_altered_from_outside():
    points = np.arange(6.0).reshape(3, 2)
    domain = Finite(points)
    points[0] = 99.0
    assert_array_equal(domain.points[0], [0.0, 1.0])
    with pytest.raises(ValueError, match="read-only"):
        domain.points[0] = 5.0
    assert_array_equal(domain.widths, [4.0, 4.0])
    assert_array_equal(Finite(np.array([[1.0, 0.0], [1.0, 3.0]])).widths, [1.0, 3.0])


def test_samples_of_a_finite_domain_are_its_points():
    domain, rng = Finite(np.arange(10.0)), np.random.default_rng(0)
    assert domain.locate(domain.sample(50, rng)).shape == (50,)
    assert sorted(domain.locate(domain.spread(10, rng))) == list(range(10))
    assert np.bincount(domain.locate(domain.spread(25, rng))).max() == 3
    assert domain.spread(0, rng).shape == (0, 1)


def test_a_part_of_a_finite_domain():
    domain = Finite(np.arange(6.0))
    height = Height(lambda x: x[:, 0])
    mask = np.array([True, False, True, False, False, False])
    assert Among(domain, mask).maximise(height, None, NOWHERE).arm == 2
    for arms, message in (
        (np.array([], dtype=int), "at least one"),
        (np.array([7]), "rows 0 to 5"),
        (np.array([-1]), "rows 0 to 5"),
        (np.array([1.0]), "integers"),
    ):
        with pytest.raises(ValueError, match=message):
            Among(domain, arms)


# Box


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        ([0.0], [0.0], "coordinate 0"),
        ([0.0, 2.0], [1.0, 1.0], "coordinate 1"),
        ([0.0], [np.inf], "both finite"),
        ([np.nan], [1.0], "both finite"),
        ([0.0, 0.0], [1.0], "same number"),
        ([], [], "same number"),
    ],
)
def test_impossible_boxes_are_refused(lower, upper, message):
    with pytest.raises(ValueError, match=message):
        Box(lower, upper)


def test_what_is_not_in_the_box_is_refused():
    box = Box([0.0, -2.0], [1.0, 2.0])
    assert box.locate(np.array([[0.5, 2.0 + 1e-12]])) is None  # rounded on its way
    for x, message in (
        ([[0.5, 2.1]], r"coordinate 1 is 2.1, outside \[-2, 2\]"),
        ([[np.nan, 0.0]], "must be finite"),
        ([[np.inf, 0.0]], "must be finite"),
        ([[0.5]], "2 coordinates"),
        ([[[0.5, 0.5]]], "2 coordinates"),
    ):
        with pytest.raises(ValueError, match=message):
            box.locate(np.array(x))


def test_grids_have_their_corners_and_counts():
    np.testing.assert_array_equal(Box([0.0], [1.0]).grid(np.int64(3)).points, [[0.0], [0.5], [1.0]])
    grid = Box([0.0, 10.0], [1.0, 30.0]).grid([3, 5])
    assert len(grid) == 15
    assert_array_equal(grid.points[0], [0.0, 10.0])
    assert_array_equal(grid.points[-1], [1.0, 30.0])
    assert_array_equal(np.unique(grid.points[:, 1]), [10.0, 15.0, 20.0, 25.0, 30.0])
    assert len(Box([0.0, 10.0], [1.0, 30.0]).grid(4)) == 16


@given(seed=st.integers(0, 10**6), n=st.integers(0, 40))
def test_samples_and_designs_lie_in_the_domain(seed, n):
    box, rng = mixed(), np.random.default_rng(seed)
    for points in (box.sample(n, rng), box.spread(n, rng)):
        assert points.shape == (n, 6)
        box.locate(points)
        assert_array_equal(box.snap(points), points)


def test_a_design_covers_the_box_evenly():
    box = Box([10.0, -4.0], [12.0, 4.0])
    design = box.spread(16, np.random.default_rng(3))
    cells = np.floor((design - box.lower) / box.widths * 4).astype(int)
    assert len({tuple(cell) for cell in cells}) == 16  # one in each cell of a 4 x 4 grid


def mixed():
    """Two floats, an integer from 3 to 9, a step of 0.25, and a choice of two."""
    return Box(
        [-5.0, 0.0, 3.0, 1.0, 0.0, 0.0],
        [5.0, 1.0, 9.0, 2.0, 1.0, 1.0],
        lattices=(
            Lattice(np.array([2]), np.arange(3.0, 10.0)[:, None]),
            Lattice(np.array([3]), np.arange(1.0, 2.01, 0.25)[:, None]),
            Lattice(np.array([4, 5]), np.eye(2)),
        ),
    )


def test_a_grid_has_the_values_of_lattices_and_no_others():
    box = mixed()
    for n, integers, steps in ((9, 7, 5), (7, 7, 5), (4, 4, 4), (2, 2, 2)):
        grid = box.grid(n)
        assert len(grid) == n * n * integers * steps * 2
        assert_array_equal(box.snap(grid.points), grid.points)
        assert {tuple(row) for row in grid.points[:, 4:]} == {(1.0, 0.0), (0.0, 1.0)}
        assert_array_equal(np.unique(grid.points[:, 0]), np.linspace(-5.0, 5.0, n))
        for column, ends in ((2, [3.0, 9.0]), (3, [1.0, 2.0])):
            assert_array_equal(np.unique(grid.points[:, column])[[0, -1]], ends)
    assert_array_equal(np.unique(box.grid(4).points[:, 2]), [3.0, 5.0, 7.0, 9.0])
    assert len(box.grid([2, 3, 4, 5, 1, 1])) == 2 * 3 * 4 * 5 * 2
    assert len(box.having({2: 8.0, 4: 1.0, 5: 0.0, 0: 0.5}).grid(3)) == 3 * 3  # what is left free
    # Where values are closer together at one end, some places share the nearest one.
    uneven = Lattice(np.array([0]), np.log2(np.arange(1.0, 257.0))[:, None] / 8.0)
    thinned = uneven.thinned(12)[:, 0]
    assert set(thinned) <= set(uneven.values[:, 0])
    assert_array_equal(thinned[[0, -1]], [0.0, 1.0])
    assert 9 <= len(thinned) <= 12


@pytest.mark.parametrize("n", [0, 1, 7, 300])
def test_the_nearest_row_is_counted_in_widths(n, monkeypatch):
    monkeypatch.setattr("stoic.domains.finite._BLOCK", 500)  # several blocks
    rng = np.random.default_rng(n)
    domain = Finite(rng.uniform([0.0, 100.0], [1.0, 1000.0], size=(50, 2)))
    x = rng.uniform([0.0, 100.0], [1.0, 1000.0], size=(n, 2))
    apart = np.abs(x[:, None] - domain.points) / domain.widths
    assert_array_equal(domain.nearest(x), apart.max(axis=2).argmin(axis=1))
    rounded = domain.points + 1e-13 * domain.widths
    assert_array_equal(domain.nearest(rounded), np.arange(50))


@given(seed=st.integers(0, 10**6))
def test_snapping_takes_the_nearest_value(seed):
    box = mixed()
    x = np.random.default_rng(seed).uniform(box.lower - 1.0, box.upper + 1.0, size=(20, 6))
    original = x.copy()
    snapped = box.snap(x)
    assert_array_equal(x, original)
    inside = np.clip(x, box.lower, box.upper)
    assert_array_equal(snapped[:, :2], inside[:, :2])
    for lattice in box.lattices:
        for row in range(20):
            here = inside[row, lattice.columns]
            distance = np.linalg.norm(lattice.values - here, axis=1)
            chosen = np.linalg.norm(snapped[row, lattice.columns] - here)
            assert chosen <= distance.min() + 1e-12


def test_a_lattice_of_one_value_and_of_any_vectors():
    single = Lattice(np.array([0]), np.array([[2.0]]))
    assert_array_equal(single.nearest(np.array([[5.0], [-1.0]])), [[2.0], [2.0]])
    # Not one-hot, of different lengths: still the nearest.
    vectors = Lattice(np.array([0, 1]), np.array([[0.0, 0.0], [10.0, 10.0], [1.0, 0.0]]))
    assert_array_equal(vectors.nearest(np.array([[0.9, 0.2], [0.1, 0.1]])), [[1, 0], [0, 0]])


@pytest.mark.parametrize("problem", SMOOTH, ids=lambda make: make.__name__)
def test_the_maximum_of_a_known_function_is_found(problem):
    problem = problem()
    peak = top(problem.domain, problem.value)
    scale = np.ptp(problem.value(problem.domain.sample(200, np.random.default_rng(0))))
    assert peak.height > problem.optimum.value - 1e-4 * scale
    assert peak.height == pytest.approx(float(problem.value(peak.x[None])[0]), rel=1e-9)


def posterior_on(box, seed, n=25):
    rng = np.random.default_rng(seed)
    x = box.sample(n, rng)
    observations = Observations(x, rng.standard_normal(n), np.full(n, np.nan))
    prior = Prior(Scaled(Matern52(0.4 * box.widths), 1.5), 0.05)
    return Exact.condition(prior, as_observed, observations, as_observed(observations, prior)), x


@pytest.mark.parametrize("seed", range(8))
def test_what_is_found_is_stationary_or_at_the_border_and_no_random_point_is_higher(seed):
    box = Box([100.0, -7.0, 0.0], [108.0, -6.0, 0.01])
    posterior, x = posterior_on(box, seed)
    surface = UpperConfidenceBound(Band(posterior, 2.0))
    peak = box.maximise(surface, np.random.default_rng(seed), x)
    box.locate(peak.x[None])
    rng = np.random.default_rng(seed + 100)
    assert peak.height >= surface(box.sample(20_000, rng)).max() - 1e-9
    slope = surface.with_gradient(peak.x[None])[1][0] * box.widths
    at_lower = peak.x <= box.lower + 1e-9 * box.widths
    at_upper = peak.x >= box.upper - 1e-9 * box.widths
    assert np.abs(slope[~at_lower & ~at_upper]).max(initial=0.0) < 1e-3
    assert (slope[at_lower] < 1e-3).all()
    assert (slope[at_upper] > -1e-3).all()


@pytest.mark.parametrize("seed", range(4))
def test_on_lattices_the_maximum_is_the_one_of_all_combinations(seed):
    box = Box(
        [0.0, 3.0, 0.0, 0.0, 0.0],
        [4.0, 9.0, 1.0, 1.0, 1.0],
        lattices=(
            Lattice(np.array([1]), np.arange(3.0, 10.0)[:, None]),
            Lattice(np.array([2, 3, 4]), np.eye(3)),
        ),
    )
    posterior, x = posterior_on(box, seed, 15)
    surface = UpperConfidenceBound(Band(posterior, 2.0))
    peak = box.maximise(surface, np.random.default_rng(seed), x)
    assert_array_equal(box.snap(peak.x[None])[0], peak.x)
    line = np.linspace(0.0, 4.0, 401)
    best = max(
        surface(np.column_stack([line, np.tile([k, *category], (401, 1))])).max()
        for k in range(3, 10)
        for category in np.eye(3)
    )
    assert peak.height >= best - 0.05 * abs(best)
    assert peak.height <= best + 0.01 * abs(best)


def test_all_coordinates_may_be_on_lattices():
    box = Box([0.0, 0.0], [99.0, 5.0], lattices=(
        Lattice(np.array([0]), np.arange(100.0)[:, None]),
        Lattice(np.array([1]), np.arange(6.0)[:, None]),
    ))  # fmt: skip
    peak = top(box, lambda x: -np.abs(x[:, 0] - 71.3) - (x[:, 1] - 1.8) ** 2)
    assert_array_equal(peak.x, [71.0, 2.0])


def test_a_narrow_peak_is_found_from_a_point_that_is_near_it():
    box = Box([0.0, 0.0], [1.0, 1.0])
    centre = np.array([0.123456, 0.654321])

    def spike(x):
        return np.exp(-0.5 * ((x - centre) ** 2).sum(axis=1) / 0.004**2)

    peak = top(box, spike, near=centre[None] + 0.003)
    assert_allclose(peak.x, centre, atol=1e-5)


@pytest.mark.parametrize("unit", [1e-4, 1e-6, 1e-9, 1e-30])
def test_the_maximum_of_a_low_surface_is_found_as_well(unit):
    box = Box([0.0, 0.0], [1.0, 1.0], climbs=1, candidates=16)
    peak = top(box, lambda x: -unit * ((x - 0.3) ** 2).sum(axis=1))
    assert_allclose(peak.x, 0.3, atol=1e-4)
    assert peak.height == -unit * ((peak.x - 0.3) ** 2).sum()


def test_the_search_is_deterministic_given_its_generator_and_new_with_another():
    box = Box([0.0], [1.0])
    posterior, x = posterior_on(box, 0)
    surface = UpperConfidenceBound(Band(posterior, 2.0))
    a, b = (box.maximise(surface, np.random.default_rng(5), x) for _ in range(2))
    assert_array_equal(a.x, b.x)
    c, d = (top(box, lambda z: np.full(len(z), 7.0), seed) for seed in (1, 2))
    assert c.height == d.height == 7.0
    assert not np.array_equal(c.x, d.x)


@pytest.mark.parametrize(("factor", "shift"), [(64.0, 0.0), (0.001, 0.0), (3.7, 1000.0)])
def test_translating_and_rescaling_a_box_moves_what_is_found_with_it(factor, shift):
    here = Box([1.0, -2.0], [3.0, 2.0])
    there = Box(shift + factor * here.lower, shift + factor * here.upper)

    def surface(box):
        def function(x):
            u = (x - box.lower) / box.widths
            return np.sin(5.0 * u[:, 0]) * np.cos(3.0 * u[:, 1]) + 0.3 * u[:, 0]

        def gradient(x):
            u = (x - box.lower) / box.widths
            a, b = 5.0 * u[:, 0], 3.0 * u[:, 1]
            du = 5.0 * np.cos(a) * np.cos(b) + 0.3, -3.0 * np.sin(a) * np.sin(b)
            return np.stack(du, axis=1) / box.widths

        return top(box, function, gradient=gradient)

    a, b = surface(here), surface(there)
    u, v = (a.x - here.lower) / here.widths, (b.x - there.lower) / there.widths
    assert_allclose(u, v, atol=1e-5)
    assert_allclose(a.height, b.height, atol=1e-9)


def test_a_part_of_a_box_keeps_the_lattices_of_the_whole():
    whole = Box([0.0, 0.0], [10.0, 1.0], (Lattice(np.array([0]), np.arange(11.0)[:, None]),))
    part = Box([0.4, 0.2], [7.7, 0.9]).on_lattices_of(whole)
    points = part.sample(200, np.random.default_rng(0))
    assert set(points[:, 0]) == {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0}
    fixed = Box([0.0, 0.0], [10.0, 1.0], (Lattice(np.array([0]), np.array([[2.5]])),))
    assert np.all(fixed.on_lattices_of(whole).sample(9, np.random.default_rng(0))[:, 0] == 2.5)
    with pytest.raises(ValueError, match="may take lies between"):
        Box([0.4, 0.0], [0.6, 1.0]).on_lattices_of(whole)
    assert part.on_lattices_of(Box([0.0, 0.0], [10.0, 1.0])) is part


def test_a_part_has_the_values_that_are_given():
    grid = Box([0.0, 0.0], [1.0, 30.0]).grid([5, 4])
    part = grid.having({1: 10.0})
    assert np.all(grid.points[part.arms, 1] == 10.0)
    assert len(part.arms) == 5
    assert_array_equal(part.having({0: 0.25}).arms, [1 * 4 + 1])
    assert_array_equal(part.contains(grid.points), grid.points[:, 1] == 10.0)
    assert_array_equal(grid.contains(np.array([[0.25, 10.0], [0.3, 10.0]])), [True, False])
    for values, message in (
        ({1: 11.0}, "has 11 in coordinate 1: the nearest value there is 10"),
        ({2: 0.0}, "numbered 0 to 1, got 2"),
        ({0: np.nan}, "Coordinate 0 must be given one finite value"),
    ):
        with pytest.raises(ValueError, match=message):
            grid.having(values)


def test_a_part_of_a_box_has_the_values_that_are_given():
    category = Lattice(np.array([2, 3, 4]), np.eye(3))
    whole = Box([0.0] * 5, [4.0, 1.0, 1.0, 1.0, 1.0], (
        Lattice(np.array([0]), np.arange(5.0)[:, None]), category,
    ))  # fmt: skip
    part = whole.having({0: 3.0, 1: 0.3, 3: 1.0})
    points = part.sample(50, np.random.default_rng(0))
    assert_array_equal(points, np.tile([3.0, 0.3, 0.0, 1.0, 0.0], (50, 1)))
    assert part.contains(points).all()
    assert not part.contains(np.array([[3.0, 0.4, 0.0, 1.0, 0.0]])).any()
    line = whole.having({1: 0.3}).sample(200, np.random.default_rng(0))
    assert len(np.unique(line, axis=0)) == 15
    peak = top(part, lambda x: x.sum(axis=1), near=points[:1])
    assert_array_equal(peak.x, points[0])
    for values, message in (
        ({0: 2.5}, "cannot have the value 2.5: the nearest it can have is [23]"),
        ({1: 1.2}, r"Coordinate 1 lies in \[0, 1\], so it cannot have the value 1.2"),
        ({3: 1.0, 4: 1.0}, "Coordinate 4 cannot have the value 1: the nearest it can have is 0"),
        ({7: 0.0}, "numbered 0 to 4, got 7"),
    ):
        with pytest.raises(ValueError, match=message):
            whole.having(values)


def test_a_part_of_a_stepped_box_has_the_steps_at_its_ends():
    steps = Lattice(np.array([0]), np.arange(11)[:, None] * 0.1)  # 0.3 is 0.30000000000000004
    whole = Box([0.0], [1.0], (steps,))
    part = Box([0.25], [0.3]).on_lattices_of(whole)
    assert_allclose(part.sample(5, np.random.default_rng(0)), 0.3)


def test_a_mask_is_of_all_points():
    whole = Finite(np.arange(5.0))
    assert Among(whole, np.arange(5) % 2 == 0).arms.tolist() == [0, 2, 4]
    with pytest.raises(ValueError, match="each of the 5 points, got 2"):
        Among(whole, np.array([True, False]))
    inside = Among(whole, np.array([1, 2])).contains(np.array([[1.0], [3.0], [0.5]]))
    assert inside.tolist() == [True, False, False]


def test_a_grid_needs_a_number_for_each_coordinate():
    with pytest.raises(ValueError, match="each of the 2 coordinates, got 1"):
        Box([0.0, 0.0], [1.0, 1.0]).grid([5])
    for count in (2.5, "a", 0, [3, 2.5], True):
        with pytest.raises(ValueError, match="whole one above 0"):
            Box([0.0, 0.0], [1.0, 1.0]).grid(count)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Lattice([0, 1], [1.0, 2.0]), r"got shape \(2,\) on the coordinates \[0, 1\]"),
        (lambda: Lattice([0], []), "finite values"),
        (lambda: Lattice([0], [1.0, np.nan]), "finite values"),
        (lambda: Box([0.0], [1.0], [Lattice([5], [0.0, 1.0])]), r"coordinates, 0 to 0, got \[5\]"),
        (lambda: Lattice([0.5], [0.0, 1.0]), "numbers of different coordinates"),
        (lambda: Lattice([0, 0], np.eye(2)), "numbers of different coordinates"),
        (lambda: Box([0.0], [1.0], [Lattice(0, [0.0, 1.0])] * 2), r"0 to 0, got \[0, 0\]"),
        (lambda: Box([0.0], [1.0], [0.25]), r"each a Lattice\(columns, values\).*got \[0.25\]"),
        (lambda: Box([0.0], [1.0], None), r"each a Lattice\(columns, values\).*got None"),
    ],
)
def test_a_lattice_that_fits_nowhere_is_refused(make, said):
    with pytest.raises(ValueError, match=said):
        make()


def test_a_lattice_is_given_in_any_form():
    box = Box([0.0, 0.0], [1.0, 9.0], Lattice(1, (8, 1, 4)))
    assert_array_equal(box.lattices[0].values, [[1.0], [4.0], [8.0]])
    assert set(box.spread(20, np.random.default_rng(0))[:, 1]) == {1.0, 4.0, 8.0}


def test_a_part_may_hold_points_without_a_coordinate_whose_place_is_outside():
    layers = Lattice(np.array([0]), np.arange(1.0, 6.0)[:, None])
    tree = Tree(
        ((np.array([1]), Node(True, 0, 1.5, Node(False), Node(True))),),
        np.array([0.0, 0.5]),
        np.zeros(2, dtype=bool),
    )
    part = Box([1.0, 0.8], [5.0, 1.0], (layers,), tree=tree)

    class Hill:
        def __call__(self, x):
            return -((x[:, 0] - 1.0) ** 2) - (x[:, 1] - 0.5) ** 2

        def with_gradient(self, x):
            return self(x), -2.0 * (x - [1.0, 0.5])

    peak = part.maximise(Hill(), np.random.default_rng(0), np.empty((0, 2)))
    np.testing.assert_array_equal(peak.x, [1.0, 0.5])
    assert peak.height == 0.0


def test_single_precision_is_a_rounding_and_not_another_point():
    box = Box([0.0, 1e6], [0.1, 2e6], lattices=Lattice(np.array([1]), 1e6 + 1e5 * np.arange(11.0)))
    corner = box.upper.astype(np.float32)
    assert float(corner[0]) > box.upper[0]
    box.locate(corner.astype(float))
    assert_array_equal(box.having({0: np.float32(0.1)}).snap(corner[None])[0], box.upper)
    long = Box([2e7], [2.02e7], Lattice(np.array([0]), np.arange(2e7, 2.02e7 + 1.0)))
    assert_array_equal(long.having({0: 20100000}).lattices[0].values, [[20100000.0]])
    narrow = Box([0.3, 20230000.0], [0.3000001, 20239999.0])
    for k, far in ((0, float(np.float32(0.3000001))), (1, 20240000.0)):
        with pytest.raises(ValueError, match=f"coordinate {k} is {far:.12g}"):
            narrow.locate(np.where(np.arange(2) == k, far, narrow.lower))
    days = Finite(np.array([[0.1, 20231101.0], [0.1, 20231102.0], [0.7, 20231101.0]]))
    rounded = np.stack([days.points[:, 0].astype(np.float32), days.points[:, 1]], axis=1)
    assert_array_equal(days.locate(rounded[[0, 2]]), [0, 2])
    assert_array_equal(days.having({0: np.float32(0.1)}).arms, [0, 1])
    assert_array_equal(days.having({1: 20231102}).arms, [1])
    with pytest.raises(ValueError, match=r"has 20231103 in coordinate 1: .* 20231102"):
        days.having({1: 20231103})
    with pytest.raises(ValueError, match="not one of the 3 points"):
        days.locate(np.array([[0.1, 20231103.0]]))
