"""The symbolic graph: named inputs, named outputs and the nodes between them.  Names no device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Protocol

from nnc_core.base.errors import GraphError, UnconnectedError
from nnc_core.graph.drawing.picture import draw_graph
from nnc_core.graph.drawing.text import to_dot, to_text, to_trace
from nnc_core.operator import PLACEHOLDER
from nnc_core.symbol import Node, postorder, show_line


class Runnable(Protocol):
    """A compiled graph: inputs by name in, outputs by name out."""

    def __call__(self, **given: Any) -> dict[str, Any]: ...


Compiler = Callable[..., Runnable]
"""Called with a graph, a device and the options of `SymbolicGraph.compile`."""


class SymbolicGraph:
    """Immutable.  `iopairs` are (output, input): the output's new value takes the input's memory, for state that
    each call carries on."""

    _compiler: ClassVar[Compiler | None] = None

    def __init__(self, inputs: Mapping[str, Node], outputs: Mapping[str, Node],
                 iopairs: tuple[tuple[str, str], ...] = (), name: str = "graph") -> None:
        self.inputs, self.outputs, self.iopairs, self.name = dict(inputs), dict(outputs), iopairs, name
        self._check()

    def _check(self) -> None:
        given = set(self.inputs.values())
        if len(given) < len(self.inputs):
            raise GraphError(f"two inputs of {self.name!r} are the same symbol")
        for name, node in self.inputs.items():
            if node.op is not PLACEHOLDER:
                raise GraphError(f"input {name!r} of {self.name!r} is no placeholder but {node.op.name}")
        for node in self.nodes:
            if node.op is PLACEHOLDER and node not in given:
                raise UnconnectedError(
                    f"the outputs of {self.name!r} depend on {node.attributes[0]!r}, which is no input",
                    line=show_line(node.line), hint=f"add it to inputs: {', '.join(self.inputs)}")
        self._check_pairs()

    def _check_pairs(self) -> None:
        for output, input in self.iopairs:
            pair = f"iopair {output!r} -> {input!r} of {self.name!r}"
            if output not in self.outputs or input not in self.inputs:
                raise GraphError(f"{pair}: there is no such output or input",
                                 hint=f"outputs: {', '.join(self.outputs)}; inputs: {', '.join(self.inputs)}")
            if self.outputs[output].spec != self.inputs[input].spec:
                raise GraphError(f"{pair}: {self.outputs[output].spec} cannot take the place of "
                                 f"{self.inputs[input].spec}")
        for side, names in zip(("output", "input"), zip(*self.iopairs, strict=True), strict=False):
            if len(set(names)) < len(names):
                raise GraphError(f"an {side} of {self.name!r} is in two iopairs: {', '.join(names)}")

    @cached_property
    def nodes(self) -> list[Node]:
        """All that the outputs depend on, inputs first."""
        return postorder(self.outputs.values())

    @property
    def complexity(self) -> tuple[int, int]:
        """Numbers of nodes and edges, a composite counting as one node."""
        return len(self.nodes), sum(len(n.inputs) for n in self.nodes)

    def list_inputs(self) -> list[str]:
        return list(self.inputs)

    def list_outputs(self) -> list[str]:
        return list(self.outputs)

    def compile(self, device: Any = None, **options: Any) -> Runnable:
        """Optimise, plan and bind for a device, named by id; None means the one in use.

        Options: `optimise=False` leaves the graph as it is written, `memory_steps` is how many steps the memory
        planners may take, and `places` says which devices the graph's places are.  With `consume=True` the graph's
        constants, such as the weights of a network, are given up as the result takes them over, in the order in which
        its code wants them, so that they are in memory once: the graph cannot be compiled, run or saved after that.
        """
        compiler = SymbolicGraph._compiler
        if compiler is None:
            raise GraphError(f"nothing compiles {self.name!r}: no compiler has been registered",
                             hint="import nnc_core, which registers one")
        return compiler(self, device, **options)

    @staticmethod
    def register_compiler(compiler: Compiler) -> None:
        """Say what `compile` calls: the engine stands above graphs, so it is told from there, once."""
        SymbolicGraph._compiler = staticmethod(compiler)

    def __str__(self) -> str:
        return to_text(self)

    def to_dot(self) -> str:
        """The graph in Graphviz' language."""
        return to_dot(self)

    def to_trace(self) -> str:
        """One line for each edge: "user <- input"."""
        return to_trace(self)

    def draw(self, path: str | Path) -> Path:
        """A picture; the ending of the path says the format.  Needs no Graphviz."""
        return draw_graph(self, Path(path))
