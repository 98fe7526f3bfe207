import pickle
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from stoic.problems import residual
from stoic.problems.residual import FOLDER, TEST, Images, load_images, train_and_score
from stoic.problems.tuning import CifarTuning

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")


def write(path, pixels, labels, protocol=2):
    """A file as CIFAR-10 has them: a dictionary with bytes for keys."""
    table = {b"batch_label": b"a", b"data": pixels, b"labels": [int(label) for label in labels]}
    path.write_bytes(pickle.dumps(table, protocol=protocol))


def coloured(n, seed):
    """Images whose class, 0 or 1, is the brighter half; the rest is noise."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(2, size=n)
    pixels = rng.integers(0, 120, size=(n, 3, 32, 32))
    pixels[labels == 0, :, :16] += 120
    pixels[labels == 1, :, 16:] += 120
    return pixels.astype(np.uint8), labels


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / FOLDER
    folder.mkdir()
    for name, seed in (("data_batch_1", 1), ("data_batch_3", 3), (TEST, 9)):
        pixels, labels = coloured(40, seed)
        write(folder / name, pixels.reshape(40, 3072), labels)
    return folder


class TestFiles:
    def test_what_was_written_is_read(self, folder):
        for path in (folder, folder.parent, str(folder)):
            images = load_images(path)
            assert images.train.shape == (80, 3, 32, 32)
            first, labels = coloured(40, 1)
            np.testing.assert_array_equal(images.train[:40], first)
            np.testing.assert_array_equal(images.train_labels[:40], labels)
            np.testing.assert_array_equal(images.train[40:], coloured(40, 3)[0])
            np.testing.assert_array_equal(images.test, coloured(40, 9)[0])

    @pytest.mark.parametrize("protocol", [2, 4])
    def test_files_of_all_ages(self, folder, protocol):
        pixels, labels = coloured(7, 5)
        write(folder / TEST, pixels.reshape(7, 3072), labels, protocol)
        np.testing.assert_array_equal(load_images(folder).test, pixels)

    def test_a_file_written_by_python_2(self, folder):
        # Strings of bytes for arrays, and the old home of numpy's constructor.
        pixels, _ = coloured(1, 0)
        raw = pixels.tobytes()
        text = b"(dp0\nS'labels'\n(lI4\nasS'data'\ncnumpy.core.multiarray\n_reconstruct\n"
        text += b"(cnumpy\nndarray\n(I0\ntS'b'\ntR(I1\n(I1\nI3072\ntcnumpy\ndtype\n"
        text += b"(S'u1'\nI0\nI1\ntR(I3\nS'|'\nNNNI-1\nI-1\nI0\ntbI00\nS"
        text += b"'" + "".join(f"\\x{byte:02x}" for byte in raw).encode() + b"'\ntbs."
        (folder / TEST).write_bytes(text)
        images = load_images(folder)
        np.testing.assert_array_equal(images.test, pixels)
        assert images.test_labels.tolist() == [4]

    def test_a_file_cannot_run_code(self, folder, tmp_path):
        struck = tmp_path / "struck"

        class Attack:
            def __reduce__(self):
                return (open, (str(struck), "w"))

        (folder / TEST).write_bytes(pickle.dumps({b"data": Attack(), b"labels": []}))
        with pytest.raises(ValueError, match=r"it asks for \w+\.open"):
            load_images(folder)
        assert not struck.exists()

    def test_what_is_missing_is_refused(self, folder, tmp_path):
        with pytest.raises(ValueError, match="needs the files data_batch_1 to data_batch_5"):
            load_images(tmp_path / "nowhere")
        (folder / TEST).unlink()
        with pytest.raises(ValueError, match="test_batch"):
            load_images(folder)

    @pytest.mark.parametrize(
        ("pixels", "labels"),
        [
            (np.zeros((2, 3071), np.uint8), [0, 1]),
            (np.zeros((2, 3072), np.float32), [0, 1]),
            (np.zeros((2, 3072), np.uint8), [0]),
            (np.zeros((2, 3072), np.uint8), [0, 10]),
            (np.zeros((0, 3072), np.uint8), []),
        ],
    )
    def test_what_is_no_batch_is_refused(self, folder, pixels, labels):
        write(folder / TEST, pixels, labels)
        with pytest.raises(ValueError, match=r"test_batch is not a batch of CIFAR-10"):
            load_images(folder)

    def test_a_text_file_is_refused(self, folder):
        (folder / TEST).write_text("hello")
        with pytest.raises(ValueError, match="is not a batch"):
            load_images(folder)

    def test_moments_of_the_channels(self):
        pixels, _ = coloured(30, 2)
        mean, sd = residual._moments(pixels)
        as_floats = pixels.astype(float)
        np.testing.assert_allclose(mean, as_floats.mean(axis=(0, 2, 3)))
        np.testing.assert_allclose(sd, as_floats.std(axis=(0, 2, 3)))
        assert residual._moments(np.full((2, 3, 32, 32), 7, np.uint8))[1] == [1.0] * 3


@pytest.fixture(scope="module")
def images():
    return Images(*coloured(96, 0), *coloured(64, 1))


@needs_torch
class TestTraining:
    def test_the_network_is_the_resnet_20(self):
        # [He2016]_, table 6: 20 layers, 0.27 million parameters.
        network = residual._network(3)
        parameters = sum(part.numel() for part in network.parameters())
        assert parameters == 269_722
        layers = [m for m in network.modules() if type(m).__name__ in ("Conv2d", "Linear")]
        assert len(layers) == 20

    def test_it_learns_what_can_be_learnt(self, images):
        settings = {"epochs": 3, "blocks": 1, "batch": 16, "device": "cpu"}
        assert train_and_score(images, 0.05, 1e-4, 0, **settings) > 0.9
        # At a rate of 1e-12 nothing moves, and ten classes are guessed at.
        assert train_and_score(images, 1e-12, 1e-4, 0, **settings) < 0.8

    def test_the_same_seed_is_the_same_training(self, images):
        import torch

        before = torch.random.get_rng_state()
        settings = {"epochs": 1, "blocks": 1, "batch": 19, "device": "cpu"}  # 96 = 5 * 19 + 1
        scores = [train_and_score(images, 0.003, 1e-4, seed, **settings) for seed in (0, 0, 1, 2)]
        assert scores[0] == scores[1]
        assert len(set(scores)) > 1
        assert torch.equal(torch.random.get_rng_state(), before)  # nobody else's draws are used

    def test_a_training_that_diverges_is_a_guess(self, images):
        score = train_and_score(images, 1e30, 0.01, 0, epochs=1, blocks=1, batch=32, device="cpu")
        assert 0.0 <= score < 0.8

    def test_the_program_reads_its_point_as_logarithms(self, folder):
        program = CifarTuning(folder, epochs=2, blocks=1, batch=16, device="cpu")
        same = train_and_score(
            load_images(folder), 1e-2, 1e-4, 3, epochs=2, blocks=1, batch=16, device="cpu"
        )
        assert program.run(np.array([-2.0, -4.0]), 3) == same


def test_what_is_missing_is_named(monkeypatch, images):
    residual._torch.cache_clear()
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"pip install 'stoic\[botorch\]'"):
        train_and_score(images, 0.1, 0.1, 0)
    residual._torch.cache_clear()
