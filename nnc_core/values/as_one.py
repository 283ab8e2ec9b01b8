"""Functions of several operators as one program, where gradients are followed through them.

A call of such a function that comes for the third time, by the dtypes and shapes of its operands and by its other
arguments, is written down as nodes and compiled; from then on it is one launch and one step (`decisions/0067`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast
from weakref import ref

from nnc_core.base.cache import LRU
from nnc_core.base.config import config
from nnc_core.base.dtype import is_inexact
from nnc_core.base.errors import Error
from nnc_core.base.fast_path import CLOSED_BY
from nnc_core.device import REPRODUCIBLE
from nnc_core.graph import SymbolicGraph
from nnc_core.operator import OPERATORS, Nodes
from nnc_core.operator.control import PICK
from nnc_core.optimiser import rebuild
from nnc_core.stacks import Stack
from nnc_core.symbol import Literal, Node, Number, postorder, user_line, without_collector
from nnc_core.type import TupleSpec, is_static
from nnc_core.values.joint_steps import JointCall, JointProgram, JointStep, is_operator
from nnc_core.values.modes import current_trace, deferred, gradients, is_step_by_step, lazy, use_device
from nnc_core.values.prepared import has_own_rule
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

P = ParamSpec("P")
R = TypeVar("R")

STEPPED = 2
"""How often a function runs operator by operator, for operands of a kind, before it is compiled."""
MOST_PROGRAMS, MOST_SIGHTINGS = 512, 4096
_PLAIN = frozenset({type(None), bool, int, str})
_TRANSFER = OPERATORS["transfer"]
_programs: LRU[tuple[Any, ...], JointProgram | None] = LRU(MOST_PROGRAMS)
_sightings: LRU[int, int] = LRU(MOST_SIGHTINGS)
_UNKNOWN: Any = object()


def as_one(f: Callable[P, R]) -> Callable[P, R]:
    """A function that calls operators on its operands and nothing else: it has no state, draws no numbers, and looks
    at no elements."""

    @wraps(f)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if CLOSED_BY or lazy.get() or not gradients.get() or current_trace.get() is not None:
            return f(*args, **kwargs)
        kind: list[Any] = [f]
        values: list[Value] = []
        if not _gather((*args, *kwargs.values()) if kwargs else args, kind, values):
            return f(*args, **kwargs)
        program = _program(f, args, kwargs, kind, values)
        return f(*args, **kwargs) if program is None else cast("R", _called(program, values))

    return call


def _gather(args: Sequence[Any], kind: list[Any], values: list[Value]) -> bool:
    """The values among arguments, with what makes two calls one; False for arguments of other kinds."""
    for x in args:
        cls = x.__class__
        if cls is Tensor or cls is Value:
            v = x._value if cls is Tensor else x
            array = v.array
            if v.__class__ is not Value or array is None or array.__class__ is tuple or v.trace is not None:
                return False
            kind += (cls, array.shape, array.dtype, v.tracked)
            values.append(v)
        elif cls in _PLAIN:
            kind += (cls, x)
        elif cls is float:
            kind += (cls, x.hex())
        elif cls is tuple or (isinstance(x, tuple) and hasattr(x, "_fields")):
            kind += (cls, len(x))
            if not _gather(x, kind, values):
                return False
        else:
            return False
    return True


def _program(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], kind: list[Any],
             values: list[Value]) -> JointProgram | None:
    """The program for such operands, where there is one or it is time to make it."""
    if not any([v.tracked for v in values]):
        return None
    stack = values[0].stack
    if any([v.stack is not stack for v in values]) or stack.operator.replaced:
        return None
    kind += (*kwargs, stack, stack.engine.decider.version, config.of_traces)
    key = (*kind,)
    program = _programs.get(key, _UNKNOWN)
    if program is _UNKNOWN:
        if is_step_by_step() or not _is_due(hash(key)):
            return None
        program = _written(f, args, kwargs, values) if _is_exact(stack) else None
        _programs.put(key, program)
    elif program is not None and is_step_by_step():
        return None
    return program


def _is_exact(stack: Stack) -> bool:
    """Tell whether a program gives the bits of its operators' commands, which `config.deterministic` asks for."""
    return REPRODUCIBLE in stack.device.spec.features and stack.is_plain


def _is_due(key: int) -> bool:
    seen = int(_sightings.pop(key, 0)) + 1
    if seen <= STEPPED:
        _sightings.put(key, seen)
    return seen > STEPPED


def _called(program: JointProgram, values: list[Value]) -> Any:
    """Run a program, and record that it ran."""
    found = program.run.run({name: values[i].array for name, i in program.read})
    call = JointCall(program, (*values,), [found[f"saved{k}"] for k in range(len(program.saved))], user_line())
    stack, results = values[0].stack, []
    for k, (node, cls) in enumerate(zip(program.results, program.classes, strict=True)):
        step = JointStep(call, node) if node in program.followed else None
        v = Value(found[f"result{k}"], stack, node.spec, step, step is not None)
        results.append(v if cls is Value else Tensor(v))
        call.results.append(ref(v))
    return results[0] if program.whole is None else program.whole(results)


# ---- writing a function down
@without_collector()
def _written(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
             values: list[Value]) -> JointProgram | None:
    """The program of a function for operands of such kinds; None where it is not of operators alone."""
    stack = values[0].stack
    symbols = [Value(None, stack, v.spec) for v in values]
    left = iter(symbols)
    own_args, own_kwargs = _with(args, left), dict(zip(kwargs, _with(tuple(kwargs.values()), left), strict=True))
    try:
        with deferred(keep_graph=True), use_device(stack):
            given = f(*own_args, **own_kwargs)
    except Error:
        return None  # the function itself will say it
    several = isinstance(given, (tuple, list))
    whole = None if not several else getattr(given, "_make", given.__class__)
    parts = [*given] if several else [given]
    if not all([x.__class__ in (Tensor, Value) for x in parts]):
        return None
    outputs = [x._value if x.__class__ is Tensor else x for x in parts]
    G = stack.operator.open()
    inputs = tuple([G.placeholder(f"x{i}", v.spec) for i, v in enumerate(symbols)])
    results = _as_nodes(G, outputs, dict(zip(symbols, inputs, strict=True)))
    if results is None or len(set(results)) != len(results) or not all(map(is_operator, results)):
        return None
    tracked = frozenset([x for x, v in zip(inputs, values, strict=True) if v.tracked])
    return _compiled(G, stack, inputs, results, tracked, tuple([x.__class__ for x in parts]), whole)


def _with(args: tuple[Any, ...], symbols: Iterator[Value]) -> tuple[Any, ...]:
    """The arguments with symbols in place of values."""
    made: list[Any] = []
    for x in args:
        if isinstance(x, tuple):
            inner = _with(x, symbols)
            made.append(type(x)(*inner) if hasattr(x, "_fields") else inner)
        elif x.__class__ is Tensor:
            made.append(Tensor(next(symbols)))
        else:
            made.append(next(symbols) if x.__class__ is Value else x)
    return (*made,)


def _as_nodes(G: Nodes, outputs: Sequence[Value], known: dict[Value, Node]) -> list[Node] | None:
    """The recorded steps as nodes, with composites whose bodies are differentiated written out; None where a step is no
    plain operator."""
    for v in postorder(outputs):
        if v in known:
            continue
        if v.step is None:
            if v.tracked or v.array is None:
                return None
            known[v] = _constant(G, v)
            continue
        op, inputs = v.op, [known[x] for x in v.inputs]
        if op.bodies or op.random or op.host or op.virtual or op.data_dependent or op is _TRANSFER or not _is_sized(v):
            return None
        known[v] = (G.apply(op, tuple(inputs), v.attributes) if op.decompose is None or has_own_rule(op)
                    else op.decompose(G, *inputs, *v.attributes))
    return [known[v] for v in outputs]


def _is_sized(v: Value) -> bool:
    parts = v.spec.parts if isinstance(v.spec, TupleSpec) else (v.spec,)
    return all([is_static(part.shape) for part in parts])


def _constant(G: Nodes, v: Value) -> Node:
    array = v.stack.engine.executor.seen(v.array)
    return G.filled(shape=(), number=Number(array, v.dtype)) if v.shape == () else G.constant(Literal(array), v.spec)


def _compiled(G: Nodes, stack: Stack, inputs: tuple[Node, ...], results: list[Node], tracked: frozenset[Node],
              classes: tuple[type, ...], whole: Callable[..., Any] | None) -> JointProgram | None:
    nodes = [node for node in postorder(results) if is_operator(node)]
    followed = set(tracked)
    for node in nodes:
        if node.op.differentiable and not followed.isdisjoint(node.inputs):
            followed.add(node)
    saved = _saved(G, stack, inputs, nodes, [r for r in results if r in followed], tracked)
    used = set(postorder(results))
    read = {f"x{i}": x for i, x in enumerate(inputs) if x in used}
    outputs = {f"result{k}": node for k, node in enumerate(results)} | {f"saved{k}": x for k, x in enumerate(saved)}
    graph = SymbolicGraph(read, outputs, (), "as_one")
    with config.using(deterministic=True):
        run = stack.engine.compile(graph)
    return JointProgram(run, tuple([(f"x{i}", i) for i, x in enumerate(inputs) if x in used]),
                        inputs, tuple(nodes), frozenset(followed), tuple(results), saved, classes, whole)


def _saved(G: Nodes, stack: Stack, inputs: tuple[Node, ...], nodes: list[Node], results: list[Node],
           tracked: frozenset[Node]) -> tuple[Node, ...]:
    """Nodes that the operators' rules read on the way back; views are taken again.  What rules pick of several results
    is added to `nodes`."""
    seeds = {id(r): G.placeholder(f"g{k}", r.spec) for k, r in enumerate(results) if is_inexact(r.spec.dtype)}
    found = [g for g in stack.graph.reverse(G, [*inputs, *nodes], seeds, [*tracked]) if g is not None]
    known = set(nodes)
    nodes += [x for x in postorder(found) if x.op is PICK and x not in known and x.inputs[0] in known]
    cut = {node: G.placeholder(f"v{k}", node.spec) for k, node in enumerate(nodes)
           if node.inputs and node.op.view is None and not isinstance(node.spec, TupleSpec)}
    used = set(postorder(rebuild(found, stack.operator.open(), replaced=cut)))
    return tuple([node for node, x in cut.items() if x in used])
