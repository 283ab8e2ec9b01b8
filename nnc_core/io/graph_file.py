"""Symbolic graphs on disk: one safetensors file, whose metadata describe the nodes and whose arrays are the constants.

The description is JSON under the key `nnc.graph`: the operators with the names of their attributes, then the bodies of
control flow, innermost first, then the nodes of the graph, inputs first.  A node is [operator, numbers of its inputs,
attributes, number of its source line]; a body has nodes of its own.  Only the leaves' and the outputs' specs are
stored: all are inferred again, and the outputs' compared.  The file's checksum covers it all.

Version 2 added bodies and tuples of specs; a graph without them is written as version 1, which older nnc reads.
"""

from __future__ import annotations

import json
import os

from nnc_core.base.errors import NotSupportedError
from nnc_core.graph import SymbolicGraph
from nnc_core.io.checkpoint import load_arrays, save_arrays
from nnc_core.io.graph_reader import Reader, blaming, refused
from nnc_core.io.graph_writer import Download, Writer
from nnc_core.operator import Operator
from nnc_core.recording.unshaped_graph import SPECIALISE, UnshapedGraph
from nnc_core.symbol import without_collector
from nnc_core.values.arguments import located
from nnc_core.values.modes import current_stack

_KEY, VERSIONS = "nnc.graph", (1, 2)
_LARGEST = 90_000_000  # bytes of description; safetensors readers refuse headers beyond 100 MB


@without_collector()
@located
def save_graph(graph: SymbolicGraph, path: str | os.PathLike[str], *, download: Download | None = None) -> None:
    """Write a graph with its constants; an old file stays until the new one is whole.

    `download` gives the host array of a constant that is on a device; what `export` and `make_graph` make has none.
    Raises NotSupportedError for such a constant without it, for what a file cannot hold (Python functions as nodes,
    operators that are not nnc's) and for a description beyond 90 MB, and what `save_arrays` does.
    """
    if isinstance(graph, UnshapedGraph):
        raise NotSupportedError(f"a file holds graphs with shapes, {graph.name!r} has inputs of unknown shape",
                                hint=f"save one with shapes: {SPECIALISE}")
    writer = Writer(download)
    text = json.dumps(writer.describe(graph), separators=(",", ":"))
    if len(text) > _LARGEST:
        raise NotSupportedError(f"the description of {graph.name!r} takes {len(text)} bytes, a graph file holds "
                                f"{_LARGEST}", hint="save parts of the graph, or the program that builds it")
    save_arrays(path, writer.constants, {_KEY: text})


@without_collector()
@located
def load_graph(path: str | os.PathLike[str], operator: Operator | None = None) -> SymbolicGraph:
    """Read a graph that `save_graph` wrote, on whatever device; it can be compiled for every one.

    Nodes are made, and specs inferred again, by the layer `operator`, which is that of the current device unless
    given.  Raises MissingFileError for a missing file and FileFormatError for one that is damaged, truncated, no graph
    file, of a later version, or with an operator or attributes that this version of nnc does not have; DTypeError for
    a dtype that the device beneath `operator` lacks.
    """
    arrays, metadata = load_arrays(path)
    if _KEY not in metadata:
        raise refused(path, "it is a safetensors file without a graph", "read it with load_arrays")
    with blaming(path, "its description is not what save_graph writes"):
        description = json.loads(metadata[_KEY])
        version = description["version"]
    if type(version) is not int or version not in VERSIONS:
        raise refused(path, f"its version is {version!r}, this nnc reads {', '.join(map(str, VERSIONS))}",
                      "use a later version of nnc")
    with blaming(path, "its description is not what save_graph writes"):
        return Reader(path, operator or current_stack().operator, arrays, description).graph()
