"""`nnc graph`: the training step in every form, its figures, and files that need no Graphviz."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

import pytest
from click import ClickException

from nnc_core.cli.graph import write_files
from nnc_core.cli.lenet import LeNet
from nnc_core.recording.compiled import CompiledGraph
from nnc_core.symbol import show_line
from tests.cli.conftest import Run

RATIO = r"(\d+)/(\d+)"


@pytest.fixture(scope="module")
def step() -> CompiledGraph:
    return LeNet(seed=0).compiled_step()


def test_the_step_holds_forward_backward_and_update(step: CompiledGraph) -> None:
    names = [node.op.name for node in step.source.nodes]
    for name in ("conv", "max_pool", "matmul", "conv_kernel_gradient", "sqrt", "bernoulli"):
        assert name in names
    weights, squares = 6, 6
    random_keys, counts = 1, 1
    assert len(step.source.iopairs) == weights + squares + random_keys + counts


def test_text_with_figures_and_plan(run: Run, step: CompiledGraph) -> None:
    result = run("graph")
    assert result.exit_code == 0
    assert "conv(" in result.output and "takes the memory of" in result.output
    nodes, edges, fewer_nodes, fewer_edges = map(int, _find(rf"one node: {RATIO} -> {RATIO} \(Owl", result.output))
    assert (nodes, edges) == step.source.complexity
    assert fewer_nodes < nodes and fewer_edges < edges
    assert "(Owl's released code: 202/240 -> 104/141)" in result.output
    assert f"memory: peak {str(step.memory_plan).removeprefix('peak ')}" in result.output
    assert f"{step.memory_plan.commands} commands on {step.stack.device.spec.id}" in result.output


def test_lines_are_those_of_the_network_and_its_step(step: CompiledGraph) -> None:
    files = {line.partition(":")[0] for node in step.source.nodes if (line := show_line(node.line)) != "?"}
    assert files <= {"lenet.py", Path(__file__).name}


def _find(pattern: str, text: str) -> tuple[str, ...]:
    found = re.search(pattern, text)
    assert found, text
    return found.groups()


def test_dot_and_trace(run: Run) -> None:
    assert run("graph", "--form", "dot").output.startswith("digraph")
    assert " <- " in run("graph", "--form", "trace").output.splitlines()[0]


def test_files(run: Run, tmp_path: Path) -> None:
    result = run("graph", "--out", tmp_path / "deep" / "folder")
    assert result.exit_code == 0
    written = {file.name: file for file in (tmp_path / "deep" / "folder").iterdir()}
    assert sorted(written) == ["lenet-memory.svg", "lenet-plan.txt", "lenet.dot", "lenet.svg", "lenet.txt"]
    assert all(f"wrote {file}\n" in result.output for file in written.values())
    assert "<svg" in written["lenet.svg"].read_text() and "<svg" in written["lenet-memory.svg"].read_text()
    assert written["lenet.dot"].read_text().startswith("digraph")
    assert "conv(" in written["lenet.txt"].read_text()


def test_an_unknown_network_is_refused(run: Run) -> None:
    result = run("graph", "--network", "vgg")
    assert result.exit_code == 2
    assert "lenet" in result.output


def test_a_folder_that_cannot_be_made_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ClickException, match="cannot write into"):
        write_files(cast(Any, None), tmp_path / "file" / "out", "lenet")
