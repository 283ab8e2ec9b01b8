"""Exported graphs go to a file and come back, in another process and on another device (the mission's row M6)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import FileFormatError, NotSupportedError
from nnc_core.base.missing import MissingFileError
from nnc_core.io import load_arrays, save_arrays
from nnc_core.io.graph_reader import RENAMED
from tests.devices import devices
from tests.sizes import LONG

pytest.importorskip("safetensors")

VERSION_1 = Path(__file__).with_name("graph-version-1.nnc")
"""Written before there was a version 2."""
IMAGES = np.linspace(-1, 1, 2 * 6 * 6, dtype=np.float32).reshape(2, 6, 6, 1)

CHILD = """
import sys
import numpy as np
import nnc_core as nnc
file, device, given, found = sys.argv[1:]
with nnc.use_device(device), nnc.config.using(deterministic=True):
    graph = nnc.load_graph(file)
    outputs = graph.compile(device)(**np.load(given))
np.savez(found, **{name: y.numpy() for name, y in outputs.items()})
"""


def exact_graph() -> nnc.SymbolicGraph:
    """Operators that are exact everywhere: movement, integers, comparisons, single roundings, random bits."""
    x = nnc.asarray(IMAGES)
    weights = nnc.asarray(np.array([0.5, -0.0, np.nan, 2.0, np.inf, 1e-40], np.float32))
    noise = nnc.Generator(3)
    with nnc.deferred():
        shifted = nnc.concat([x[:, 1:], nnc.flip(x[:, :1], axis=1)], axis=1)
        y = nnc.where(shifted > 0, shifted * 4.0, -shifted)
        scaled = nnc.reshape(y, (2, 6, 6)) * weights
        ranks = nnc.argmax(y, axis=1) + nnc.arange(6)[:, None]
        bits = noise.bits((5,))
        uniform = noise.uniform((4, 3))
    ends = {"y": y, "scaled": scaled, "ranks": ranks, "bits": bits, "uniform": uniform}
    return nnc.export({"x": x}, ends, capture="constant", name="exact")


def network() -> nnc.SymbolicGraph:
    x = nnc.asarray(IMAGES)
    kernel = nnc.asarray(np.linspace(-1, 1, 3 * 3 * 4, dtype=np.float32).reshape(3, 3, 1, 4))
    dense = nnc.asarray(np.linspace(-1, 1, 16 * 3, dtype=np.float32).reshape(16, 3))
    with nnc.deferred():
        hidden = nnc.max_pool2d(nnc.relu(nnc.conv2d(x, kernel)), 2)
        y = nnc.softmax(nnc.reshape(hidden, (2, 16)) @ dense, axis=-1)
    return nnc.export({"x": x, "kernel": kernel, "dense": dense}, {"y": y}, name="network")


def given_to(graph: nnc.SymbolicGraph) -> dict[str, np.ndarray]:
    return {k: np.resize(np.linspace(-1, 1, 50, dtype=np.float32), n.spec.static_shape)
            for k, n in graph.inputs.items()}


def outputs(graph: nnc.SymbolicGraph, device: str) -> dict[str, np.ndarray]:
    return {k: y.numpy() for k, y in graph.compile(device)(**given_to(graph)).items()}


def in_a_child(path: Path, device: str, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    np.savez(path.with_suffix(".given.npz"), **given)
    found = path.with_suffix(".found.npz")
    command = [sys.executable, "-c", CHILD, str(path), device, str(path.with_suffix(".given.npz")), str(found)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    with np.load(found) as arrays:
        return dict(arrays)


def same_bits(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> None:
    assert a.keys() == b.keys()
    for name in a:
        assert (a[name].dtype, a[name].shape) == (b[name].dtype, b[name].shape)
        assert a[name].tobytes() == b[name].tobytes(), name


def test_a_graph_exported_here_runs_in_another_process_on_every_device(device: str, tmp_path: Path) -> None:
    """Exported on `device`, run on all others: the same bits where operators are exact; a network within tolerance,
    and on one device, deterministic, to the bit."""
    exact, net = exact_graph(), network()
    nnc.save_graph(exact, tmp_path / "exact.nnc")
    nnc.save_graph(net, tmp_path / "net.nnc")
    wanted = outputs(exact, device)
    for target in devices():
        with nnc.use_device(target):
            loaded = nnc.load_graph(tmp_path / "exact.nnc")
            same_bits(outputs(loaded, target), wanted)
            again = outputs(nnc.load_graph(tmp_path / "net.nnc"), target)
        same_bits(again, outputs(net, target))
        np.testing.assert_allclose(again["y"], outputs(net, device)["y"], rtol=1e-5)
    target = devices()[-1] if device == devices()[0] else "strict:0"
    same_bits(in_a_child(tmp_path / "exact.nnc", target, given_to(exact)), wanted)
    same_bits(in_a_child(tmp_path / "net.nnc", target, given_to(net)), outputs(net, target))


def test_what_was_loaded_is_what_was_saved(device: str, tmp_path: Path) -> None:
    graph = network()
    nnc.save_graph(graph, tmp_path / "net.nnc")
    loaded = nnc.load_graph(tmp_path / "net.nnc")
    assert str(loaded) == str(graph) and "test_graphs.py:" in str(loaded)
    assert (loaded.list_inputs(), loaded.list_outputs(), loaded.name) == (["x", "kernel", "dense"], ["y"], "network")
    nnc.save_graph(loaded, tmp_path / "again.nnc")
    first, second = (load_arrays(tmp_path / name) for name in ("net.nnc", "again.nnc"))
    same_bits(first[0], second[0])
    assert first[1] == second[1]


def test_loops_branches_and_sizes_that_depend_on_data_come_back(device: str, tmp_path: Path) -> None:
    x, w = nnc.asarray([1.0, -2.0, 3.0]), nnc.asarray([2.0, 2.0, 2.0])

    def build(x: nnc.Tensor, w: nnc.Tensor) -> dict[str, nnc.Tensor]:
        (grown,) = nnc.while_loop(lambda a: nnc.sum(a) < 100, lambda a: (a * w,), (x,))
        last, sums = nnc.scan(lambda c, row: (c + row, c * row), nnc.sum(x), w)
        chosen = nnc.cond(nnc.sum(x) > 0, lambda: x * 3, lambda: x - w)
        return {"grown": grown, "last": last, "sums": sums, "chosen": chosen, "found": x[x > 0] + 1}

    with nnc.deferred():
        recorded = build(x, w)
    nnc.save_graph(nnc.export({"x": x, "w": w}, recorded), tmp_path / "g.nnc")
    loaded = nnc.load_graph(tmp_path / "g.nnc")
    assert {"loop", "case_of", "nonzero"} <= {n.op.name for n in loaded.nodes}
    for host in ([1.0, -2.0, 3.0], [5.0, 6.0, 7.0]):
        given = {"x": np.array(host, np.float32), "w": np.full(3, 2, np.float32)}
        wanted = build(*map(nnc.asarray, given.values()))
        same_bits({k: y.numpy() for k, y in loaded.compile(device)(**given).items()},
                  {k: y.numpy() for k, y in wanted.items()})


def test_unused_inputs_pairs_and_named_dimensions_come_back(device: str, tmp_path: Path) -> None:
    x, w, u = (nnc.asarray(np.full((2, 3), v, np.float32)) for v in (1, 2, 3))
    with nnc.deferred():
        new = w + nnc.mean(x, axis=0)
    graph = nnc.export({"x": x, "w": w, "u": u}, {"new": new}, on_unused="ignore", iopairs=[("new", "w")],
                       named_dims={"x": ("batch", None)})
    nnc.save_graph(graph, tmp_path / "g.nnc")
    loaded = nnc.load_graph(tmp_path / "g.nnc")
    assert loaded.iopairs == (("new", "w"),) and str(loaded.inputs["x"].spec) == "float32[batch,3]"
    found = loaded.compile(device)(x=np.ones((5, 3), np.float32), w=np.zeros((2, 3), np.float32))
    assert found["new"].tolist() == [[1, 1, 1], [1, 1, 1]]


def test_a_file_of_version_1_keeps_loading(device: str) -> None:
    graph = nnc.load_graph(VERSION_1)
    assert (graph.name, graph.list_inputs(), graph.list_outputs()) == ("old", ["x"], ["y", "total"])
    w = np.arange(6, dtype=np.float32).reshape(3, 2)
    for count in (1, 4):
        x = np.linspace(-1, 1, 3 * count, dtype=np.float32).reshape(count, 3)
        found = graph.compile(device)(x=x)
        logits = np.tanh(x * 0.5) @ w - 0.25
        e = np.exp(logits - logits.max(1, keepdims=True))
        np.testing.assert_allclose(found["y"].numpy(), e / e.sum(1, keepdims=True), rtol=1e-5)
        np.testing.assert_allclose(found["total"].numpy(), x[:, 1:].sum(), rtol=1e-5, atol=1e-6)


def test_operators_that_had_another_name_keep_loading(tmp_path: Path) -> None:
    """Convolution and pools were of two dimensions once, and so named."""
    nnc.save_graph(network(), tmp_path / "new.nnc")
    arrays, metadata = load_arrays(tmp_path / "new.nnc")
    text = metadata["nnc.graph"]
    for old, new in RENAMED.items():
        text = text.replace(f'"{new}"', f'"{old}"')
    assert text != metadata["nnc.graph"] and '"conv2d"' in text and '"max_pool2d"' in text
    save_arrays(tmp_path / "old.nnc", arrays, {"nnc.graph": text})
    for name, y in outputs(nnc.load_graph(tmp_path / "old.nnc"), "cpu:0").items():
        np.testing.assert_array_equal(y, outputs(network(), "cpu:0")[name])


# ---- files from before an operator gained an attribute
def written_by_hand(path: Path, operators: list[Any], attributes: dict[str, list[Any]]) -> None:
    """y = x[[2, 0]] by `take`, and z = x with y added to its rows 0 and 1 by `scatter`."""
    spec = [["float32", [3, 2]], ["int64", [2]], ["float32", [2, 2]]]
    description = {
        "version": 1, "name": "by hand", "operators": operators, "lines": [],
        "nodes": [[0, [], ["x", {"spec": spec[0]}], None], [1, [], ["constant.0", {"spec": spec[1]}], None],
                  [1, [], ["constant.1", {"spec": spec[1]}], None], [2, [0, 1], attributes["take"], None],
                  [3, [0, 2, 3], attributes["scatter"], None]],
        "inputs": [["x", 0]], "outputs": [["y", 3, {"spec": spec[2]}], ["z", 4, {"spec": spec[0]}]], "iopairs": [],
    }
    arrays = {"constant.0": np.array([2, 0]), "constant.1": np.array([0, 1])}
    save_arrays(path, arrays, {"nnc.graph": json.dumps(description)})


LEAVES: list[Any] = [["placeholder", ["name", "spec", "uid"]], ["constant", ["literal", "spec"]]]


@pytest.mark.filterwarnings("ignore:scatter has no kernel")
def test_attributes_that_a_file_is_too_old_to_have_are_defaults(device: str, tmp_path: Path) -> None:
    """`batch` came later to both, at the end; what stands in another order is told by name."""
    path = tmp_path / "old.nnc"
    written_by_hand(path, [*LEAVES, ["take", ["axis"]], ["scatter", ["mode", "axis"]]],
                    {"take": [0], "scatter": ["add", 0]})
    graph = nnc.load_graph(path)
    assert {n.op.name: n.attributes for n in graph.nodes if n.op.name in ("take", "scatter")} == {
        "take": (0, 0), "scatter": (0, "add", 0)}
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    found = graph.compile(device)(x=x)
    assert found["y"].tolist() == [[4, 5], [0, 1]] and found["z"].tolist() == [[4, 6], [2, 4], [4, 5]]
    nnc.save_graph(graph, tmp_path / "new.nnc")
    assert '["take",["axis","batch"]]' in load_arrays(tmp_path / "new.nnc")[1]["nnc.graph"].replace(" ", "")


@pytest.mark.parametrize(("operators", "attributes", "said"), [
    ([*LEAVES, ["take", []], ["scatter", ["axis", "mode"]]], {"take": [], "scatter": [0, "add"]},
     "operator 'take' has no attribute 'axis' there"),
    ([*LEAVES, ["take", ["axis"]], ["scatter", ["batch", "axis"]]], {"take": [0], "scatter": [0, 0]},
     "operator 'scatter' has no attribute 'mode' there"),
    ([*LEAVES, ["take", ["axis", "axis"]], ["scatter", ["axis", "mode"]]], {"take": [0, 0], "scatter": [0, "add"]},
     "operator 'take' has attributes"),
    ([*LEAVES, ["take", ["axis", "way"]], ["scatter", ["axis", "mode"]]], {"take": [0, 0], "scatter": [0, "add"]},
     "operator 'take' has attributes"),
    ([*LEAVES, ["take", ["axis"]], ["scatter", ["axis", "mode"]]], {"take": [0, 0], "scatter": [0, "add"]},
     "'take' does not take what the file gives it: 2 inputs and 2 attributes"),
    ([["placeholder", ["spec", "name", "uid"]], *LEAVES[1:], ["take", ["axis"]], ["scatter", ["axis", "mode"]]],
     {"take": [0], "scatter": [0, "add"]}, "operator 'placeholder' has attributes"),
])
def test_attributes_without_a_default_are_missed_by_name(tmp_path: Path, operators: list[Any],
                                                         attributes: dict[str, list[Any]], said: str) -> None:
    written_by_hand(tmp_path / "g.nnc", operators, attributes)
    with pytest.raises(FileFormatError, match=re.escape(said)) as caught:
        nnc.load_graph(tmp_path / "g.nnc")
    assert caught.value.hint


# ---- files that are none
def test_damage_of_any_kind_is_one_clear_error(tmp_path: Path) -> None:
    content = VERSION_1.read_bytes()
    path = tmp_path / "g.nnc"
    damaged = {
        "empty": b"", "cut short": content[:-10], "half of it": content[: len(content) // 2],
        "a changed constant": content[:-3] + bytes([content[-3] ^ 1]) + content[-2:],
        "a changed description": content.replace(b"tanh", b"tanx"), "something else": b"\x93NUMPY" + content,
    }
    for what, changed in damaged.items():
        assert changed != content, what
        path.write_bytes(changed)
        with pytest.raises(FileFormatError) as caught:
            nnc.load_graph(path)
        assert str(path) in str(caught.value) and caught.value.hint, what
    with pytest.raises(MissingFileError, match="there is no"):
        nnc.load_graph(tmp_path / "absent.nnc")


@pytest.mark.parametrize(("old", "new", "said", "hint"), [
    ('"version":1', '"version":3', "version is 3, this nnc reads 1, 2", "later version"),
    ('"tanh"', '"teleport"', "no operator 'teleport'", "the version of nnc that wrote it"),
    ('["softmax",["axis"]]', '["softmax",["dim"]]', "'softmax' has attributes", "wrote it"),
])
def test_files_of_other_versions_say_what_to_do(tmp_path: Path, old: str, new: str, said: str, hint: str) -> None:
    arrays, metadata = load_arrays(VERSION_1)
    assert old in metadata["nnc.graph"]
    save_arrays(tmp_path / "g.nnc", arrays, {"nnc.graph": metadata["nnc.graph"].replace(old, new)})
    with pytest.raises(FileFormatError, match=said) as caught:
        nnc.load_graph(tmp_path / "g.nnc")
    assert hint in str(caught.value)


def test_nothing_is_overwritten_by_a_save_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "g.nnc"
    nnc.save_graph(network(), path)
    before = path.read_bytes()
    monkeypatch.setattr(os, "replace", lambda *a: (_ for _ in ()).throw(OSError("the disk is full")))
    with pytest.raises(OSError, match="the disk is full"):
        nnc.save_graph(exact_graph(), path)
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["g.nnc"]


def test_a_dtype_that_the_device_lacks_names_the_device(tmp_path: Path) -> None:
    x = nnc.asarray(np.ones(2), device="strict:0", dtype="float64")
    with nnc.deferred():
        y = x * 2
    nnc.save_graph(nnc.export({"x": x}, {"y": y}), tmp_path / "g.nnc")
    with nnc.use_device("strict-nofloat64:0"), pytest.raises(TypeError, match="no float64") as caught:
        nnc.load_graph(tmp_path / "g.nnc")
    assert "strict-nofloat64:0" in str(caught.value)
    with nnc.use_device("strict:0"):
        assert nnc.load_graph(tmp_path / "g.nnc").compile("strict:0")(x=np.ones(2))["y"].tolist() == [2, 2]


def test_python_functions_cannot_be_saved(device: str, tmp_path: Path) -> None:
    symbol = nnc.var_arr("x", (3,))
    ordered = nnc.callback(np.sort, symbol.spec, symbol)
    with pytest.raises(NotSupportedError, match=r"callback: .*no Python functions") as caught:
        nnc.save_graph(nnc.export({"x": symbol}, {"y": ordered}), tmp_path / "g.nnc")
    assert "test_graphs.py:" in str(caught.value)

    @nnc.custom_vjp
    def twice(x: nnc.Tensor) -> nnc.Tensor:
        return x * 2

    twice.defvjp(lambda x: (x * 2, None), lambda _, g: (g * 2,))
    x = nnc.asarray([1.0, 2.0])
    with nnc.deferred():
        y = twice(x)
    graph = nnc.export({"x": x}, {"y": y})
    with pytest.raises(NotSupportedError, match="no Python functions") as caught:
        nnc.save_graph(graph, tmp_path / "g.nnc")
    assert "test_graphs.py:" in str(caught.value) and not list(tmp_path.iterdir())


def test_a_long_chain_goes_through_a_file(tmp_path: Path) -> None:
    x = nnc.var_arr("x", (2,))
    y = x
    for _ in range(LONG):
        y = -y
    nnc.save_graph(nnc.export({"x": x}, {"y": y}), tmp_path / "long.nnc")
    assert nnc.load_graph(tmp_path / "long.nnc").complexity == (LONG + 1, LONG)
