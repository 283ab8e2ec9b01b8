"""Backward passes compiled: one program for every tape of the same structure.

A structure that comes once or twice is swept step by step, so that graphs that never come again cost nothing more; the
third time it is compiled.  Programs are kept in order of their last use.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from nnc_core.algodiff.tape import Tape, TapeStructure, structure
from nnc_core.base.cache import LRU
from nnc_core.base.errors import Error, FallbackWarning
from nnc_core.base.line import users_frame
from nnc_core.engine import ComputationGraph
from nnc_core.graph import SymbolicGraph
from nnc_core.operator import PLACEHOLDER, Nodes
from nnc_core.operator.control import PICK
from nnc_core.optimiser import rebuild
from nnc_core.symbol import Node, postorder, without_collector
from nnc_core.type import Attributes, Op, TupleSpec
from nnc_core.values.evaluation import evaluate
from nnc_core.values.joint_steps import JointCall, JointStep
from nnc_core.values.value import Value

STEPPED = 2
"""How often a structure is swept step by step before it is compiled."""
LONGEST = 4096
"""Values on the longest tape that is compiled: compiling takes about ten times as long as sweeping, and programs are
kept."""
MOST_PROGRAMS, MOST_SIGHTINGS = 64, 4096


class BackwardProgram(NamedTuple):
    """A compiled backward pass."""

    run: ComputationGraph
    read: tuple[tuple[str, int], ...]
    """Inputs of the graph, with the places on the tape of the values whose arrays they are."""
    saved: tuple[tuple[str, int, int], ...]
    """Inputs, with the place of a result of a call, and the number of one of the arrays that the call has saved."""
    parts: tuple[tuple[str, int, int], ...]
    """Inputs, with places of values that are several arrays, and the number of one that is read although no step picks
    it."""
    seeded: tuple[tuple[str, int], ...]
    """Inputs, with the roots whose given cotangent they are."""
    found: tuple[tuple[str, int], ...]
    """Outputs, with the values differentiated by whose gradient they are."""


class BackwardInfo(NamedTuple):
    """Compiled backward passes so far: passes that ran compiled, programs made, programs kept."""

    hits: int
    compiled: int
    size: int


class BackwardPrograms:
    """The compiled backward passes of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sightings: LRU[int, int] = LRU(MOST_SIGHTINGS)
        self._kept: LRU[TapeStructure, BackwardProgram | None] = LRU(MOST_PROGRAMS)
        self.hits = self.compiled = 0

    def find(self, tape: Tape) -> BackwardProgram | None:
        """The program for a tape; None if it is to be swept step by step."""
        if len(tape.order) > LONGEST:
            return None
        key = structure(tape)
        if key is None:
            return None
        with self._lock:
            kept: BackwardProgram | bool | None = self._kept.get(key, False)
            if not isinstance(kept, bool):
                self.hits += kept is not None
                return kept
            if not self._is_due(hash(key)):
                return None
        program = _compiled_or_none(tape)
        with self._lock:
            self.compiled += program is not None
            self._kept.put(key, program)
        return program

    def _is_due(self, key: int) -> bool:
        """True if a structure was seen often enough; only its hash is kept until then."""
        seen = int(self._sightings.pop(key, 0)) + 1
        if seen <= STEPPED:
            self._sightings.put(key, seen)
        return seen > STEPPED

    def info(self) -> BackwardInfo:
        with self._lock:
            return BackwardInfo(self.hits, self.compiled, sum(p is not None for p in self._kept.values()))

    def clear(self) -> None:
        with self._lock:
            self._sightings.clear()
            self._kept.clear()


PROGRAMS = BackwardPrograms()


def backward_info() -> BackwardInfo:
    """Count the backward passes that ran compiled, and the programs that were made and are kept."""
    return PROGRAMS.info()


def _compiled_or_none(tape: Tape) -> BackwardProgram | None:
    try:
        return compile_sweep(tape)
    except Error as error:
        warnings.warn(f"this backward pass is not compiled but swept step by step: {error}", FallbackWarning,
                      stacklevel=users_frame())
        return None


@without_collector()
def compile_sweep(tape: Tape) -> BackwardProgram | None:
    """The backward graph: it reads only those arrays of the tape that the operators' rules ask for.

    None if there is nothing to compute.
    """
    G = tape.stack.operator.open()
    mirrored = Mirrored(G, tape)
    mirrors, of = mirrored.nodes, mirrored.of
    given = {j: G.placeholder(f"cotangent{j}", y.spec)
             for j, (y, g) in enumerate(zip(tape.roots, tape.seeds, strict=True)) if g is not None}
    seeds: dict[int, Node] = {}
    for j, y in enumerate(tape.roots):
        root = of[id(y)]
        g = given.get(j) or G.full(shape=y.spec.shape, value=1, dtype=y.spec.dtype)
        seeds[id(root)] = G.add(seeds[id(root)], g) if id(root) in seeds else g
    wrt = [of[id(x)] if id(x) in of else G.placeholder("apart", x.spec) for x in tape.wrt]
    gradients = tape.stack.graph.reverse(G, mirrors, seeds, wrt)
    found = tuple([j for j, g in enumerate(gradients) if g is not None])
    if not found:
        return None
    there = [g for g in gradients if g is not None]
    inputs = {i: m if m.op is PLACEHOLDER else G.placeholder(f"value{i}", m.spec)
              for i, m in mirrored.own.items() if not isinstance(m.spec, TupleSpec)}
    cut = {mirrored.own[i]: x for i, x in inputs.items()}
    saved = {at: G.placeholder(f"saved{at[0]}.{at[1]}", m.spec) for at, m in mirrored.saved.items() if m not in cut}
    cut |= {mirrored.saved[at]: x for at, x in saved.items()}
    picks = _picks(there, mirrored.own, cut)
    parts = {at: G.placeholder(f"value{at[0]}.{at[1]}", node.spec) for at, node in picks.items()}
    cut |= {node: parts[at] for at, node in picks.items()}
    made = rebuild(there, tape.stack.operator.open(), replaced=cut)
    used = set(postorder(made))
    read = {f"value{i}": i for i, x in inputs.items() if x in used}
    kept = {f"saved{i}.{k}": (i, k) for (i, k), x in saved.items() if x in used}
    picked = {f"value{i}.{k}": (i, k) for (i, k), x in parts.items() if x in used}
    seeded = {f"cotangent{j}": j for j, x in given.items() if x in used}
    names = ({name: inputs[i] for name, i in read.items()} | {name: saved[at] for name, at in kept.items()}
             | {name: parts[at] for name, at in picked.items()} | {name: given[j] for name, j in seeded.items()})
    graph = SymbolicGraph(names, {f"gradient{j}": g for j, g in zip(found, made, strict=True)}, (), "backward")
    return BackwardProgram(
        tape.stack.engine.compile(graph), (*read.items(),), tuple([(name, *at) for name, at in kept.items()]),
        tuple([(name, *at) for name, at in picked.items()]), (*seeded.items(),),
        tuple([(f"gradient{j}", j) for j in found]))


def _picks(made: Sequence[Node], own: Mapping[int, Node], cut: Mapping[Node, Node]) -> dict[tuple[int, int], Node]:
    """Picks that rules make from values that are several arrays, by place and number; such values are no inputs."""
    wholes = {m: i for i, m in own.items() if isinstance(m.spec, TupleSpec)}
    if not wholes:
        return {}
    return {(wholes[node.inputs[0]], node.attributes[0]): node for node in postorder(made, {id(m) for m in cut})
            if node.op is PICK and node not in cut and node.inputs[0] in wholes}


class Mirrored:
    """A node for each value.  Equal steps stay apart, since gradients may be asked by one of them; what a rule computes
    that is there already is read."""

    def __init__(self, G: Nodes, tape: Tape) -> None:
        self._G = G
        self.nodes: list[Node] = []
        """All of them, inputs first, with those inside of what one program has computed."""
        self.of: dict[int, Node] = {}
        """That of each value, by its identity."""
        self.own: dict[int, Node] = {}
        """Nodes of values that have their arrays, by their places on the tape."""
        self.saved: dict[tuple[int, int], Node] = {}
        """Nodes whose arrays a call has saved, by the place of one of its results, and their numbers."""
        calls: dict[int, dict[Node, Node]] = {}
        for i, v in enumerate(tape.order):
            step = v.step
            if step is None or tape.begins_with(v):
                m = G.placeholder(f"value{i}", v.spec)
                self.nodes.append(m)
            elif step.__class__ is JointStep:
                call, result = step.call, step.node
                if id(call) not in calls:
                    calls[id(call)] = self._inside(call, i)
                m = calls[id(call)][result]
            else:
                m = self._copied(step.op, [self.of[id(x)] for x in v.inputs], step.attributes, v.spec, v.line)
            self.of[id(v)] = self.own[i] = m

    def _copied(self, op: Op, inputs: Sequence[Node], attributes: Attributes, spec: Any, line: Any) -> Node:
        node = Node(op, (*inputs,), attributes, spec, line)
        self._G.table.adopt(node)
        self.nodes.append(node)
        return node

    def _inside(self, call: JointCall, place: int) -> dict[Node, Node]:
        """The nodes of a program for one call."""
        program = call.program
        made = {x: self.of[id(v)] for x, v in zip(program.inputs, call.inputs, strict=True)}
        for node in program.nodes:
            made[node] = self._copied(node.op, [made[x] for x in node.inputs], node.attributes, node.spec, call.line)
        self.saved |= {(place, k): made[node] for k, node in enumerate(program.saved)}
        return made


def run_program(program: BackwardProgram, tape: Tape) -> list[Value | None]:
    """The gradients of `tape.wrt`, None where there is none."""
    order = tape.order
    values = {name: order[i] for name, i in program.read}
    for name, j in program.seeded:
        seed = tape.seeds[j]
        assert seed is not None
        values[name] = seed
    wholes = [order[i] for _, i, _ in program.parts]
    evaluate([v for v in (*values.values(), *wholes) if v.array is None])
    given = {name: v.array for name, v in values.items()}
    for name, i, k in program.saved:
        given[name] = order[i].step.call.arrays[k]  # type: ignore[union-attr]
    for (name, _, k), whole in zip(program.parts, wholes, strict=True):
        arrays: Any = whole.array
        given[name] = arrays[k]
    made = program.run.run(given)
    gradients: list[Value | None] = [None] * len(tape.wrt)
    for name, j in program.found:
        gradients[j] = Value(made[name], tape.stack)
    return gradients
