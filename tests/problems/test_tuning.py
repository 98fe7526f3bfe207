import sys

import numpy as np
import pytest

from stoic.domains import Box
from stoic.problems import Problem, tuning
from stoic.problems.tuning import DigitsTuning, Interpolated, digits_mean


@pytest.fixture
def sklearn():
    try:
        return tuning._multilayer_perceptron()
    except ImportError as error:
        pytest.skip(str(error))


GOOD, SLOW, WILD = np.array([-2.0, -4.0]), np.array([-5.0, -4.0]), np.array([-1.0, -6.0])


@pytest.mark.usefixtures("sklearn")
class TestDigits:
    def test_the_noise_is_the_seed_of_the_training(self):
        program = DigitsTuning()
        results = [program.run(GOOD, seed) for seed in (0, 1, 2, 0)]
        assert results[0] == results[3]
        assert len(set(results)) > 1
        assert all(result * 500 == pytest.approx(round(result * 500)) for result in results)

    def test_there_is_a_good_region_and_bad_ones(self):
        program = DigitsTuning()
        good, slow, wild = (
            np.mean([program.run(x, seed) for seed in range(5)]) for x in (GOOD, SLOW, WILD)
        )
        assert good > 0.9
        assert slow < 0.3
        assert good - wild > 0.05

    def test_weight_decay_is_that_of_the_mean_loss(self):
        # One pass in one step by plain gradients, from the first weights W and with the mean loss
        # l: the difference between two weight decays is rate * (decay - 0) * W exactly.
        from sklearn.neural_network import MLPClassifier

        train, labels, _, _ = tuning._digits()
        batch = len(train)

        def weights(alpha, rate):
            model = MLPClassifier(
                (8,), solver="sgd", momentum=0.0, alpha=alpha, batch_size=batch,
                learning_rate_init=rate, max_iter=1, random_state=3,
            )  # fmt: skip
            with pytest.warns(tuning._multilayer_perceptron()[1]):
                model.fit(train, labels)
            return model.coefs_[0]

        decay, rate = 0.01, 0.1
        start = weights(0.0, 1e-300)
        moved = weights(0.0, rate) - weights(decay * batch, rate)
        np.testing.assert_allclose(moved, rate * decay * start, atol=1e-12)

    def test_training_and_scoring_images_are_apart(self):
        train, labels, held_out, truth = tuning._digits()
        assert train.shape == (1297, 64)
        assert held_out.shape == (500, 64)
        assert len(labels) == 1297
        assert len(truth) == 500
        assert train.max() == 1.0
        from sklearn.datasets import load_digits

        whole = np.sort(load_digits().data.sum(axis=1))
        parts = np.sort(16.0 * np.concatenate([train, held_out]).sum(axis=1))
        np.testing.assert_allclose(parts, whole)

    def test_the_mean_is_taken_at_every_node(self):
        mean = digits_mean((2, 2), 2)
        program = DigitsTuning()
        assert isinstance(mean, Problem)
        assert mean.value(np.array([[-5.0, -2.0]]))[0] == pytest.approx(
            np.mean([program.run(np.array([-5.0, -2.0]), seed) for seed in (0, 1)])
        )
        assert mean.domain.lower.tolist() == program.domain.lower.tolist()
        assert digits_mean((2, 2), 2) is mean


BOX = Box([10.0, -3.0], [14.0, -1.0])
NODES = np.array([[0.0, 1.0], [4.0, 2.0], [3.0, 3.5]])


class TestInterpolated:
    def test_nodes_are_met_and_lines_lie_between(self):
        f = Interpolated("f", BOX, NODES)
        assert isinstance(f, Problem)
        np.testing.assert_allclose(f.value(BOX.grid((3, 2)).points), NODES.ravel())
        x = np.array([[11.0, -3.0], [12.0, -2.0], [13.0, -2.0], [10.5, -1.5]])
        # Products of shares: (3/4, 1/4) of the first two rows, (1/4, 3/4) of their columns.
        corner = 0.75 * (0.25 * 0.0 + 0.75 * 1.0) + 0.25 * (0.25 * 4.0 + 0.75 * 2.0)
        np.testing.assert_allclose(f.value(x), [2.0, 3.0, 3.125, corner])

    def test_the_stated_maximum_is_the_maximum(self):
        f = Interpolated("f", BOX, NODES)
        assert f.optimum.x.tolist() == [12.0, -3.0]
        assert f.value(f.optimum.x[None])[0] == f.optimum.value == 4.0
        everywhere = f.value(BOX.sample(2000, np.random.default_rng(0)))
        assert everywhere.max() <= 4.0
        assert everywhere.max() > 3.8

    def test_it_keeps_its_own_values(self):
        values = NODES.copy()
        f = Interpolated("f", BOX, values)
        values[:] = 0.0
        assert f.value(np.array([[12.0, -3.0]]))[0] == 4.0

    def test_off_the_box_is_refused(self):
        with pytest.raises(ValueError, match="outside"):
            Interpolated("f", BOX, NODES).value(np.array([[9.0, -2.0]]))

    @pytest.mark.parametrize(
        "values", [np.zeros(4), np.zeros((3, 1)), np.array([[0.0, np.nan], [1.0, 2.0]])]
    )
    def test_what_is_no_table_is_refused(self, values):
        with pytest.raises(ValueError, match="needs finite values"):
            Interpolated("f", BOX, values)


def test_what_is_missing_is_named(monkeypatch):
    tuning._multilayer_perceptron.cache_clear()
    monkeypatch.setitem(sys.modules, "sklearn.neural_network", None)
    with pytest.raises(ImportError, match=r"pip install 'stoic\[problems\]'"):
        DigitsTuning().run(GOOD, 0)
    tuning._multilayer_perceptron.cache_clear()
