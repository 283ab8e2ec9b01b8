"""Owl's LSTM example unrolled: nodes, seconds to build, differentiate, optimise and compile, planned memory.

Window 100, vocabulary 60, embedding 40, LSTM 128, linear 512 relu, linear 60 softmax, batch 100; forward, backward
and Adagrad in one graph.  Owl's has 15,105 nodes.
"""

from __future__ import annotations

import gc
from time import perf_counter

import numpy as np

import nnc_core as nnc
from benchmarks._measure import peak_megabytes, seconds, show
from nnc_core.base.dtype import float32, int64
from nnc_core.engine import Engine
from nnc_core.graph import SymbolicGraph, reverse
from nnc_core.operator import Nodes
from nnc_core.symbol import Node, without_collector
from nnc_core.type import TensorSpec

WINDOW, VOCABULARY, EMBEDDING, HIDDEN, LINEAR, BATCH = 100, 60, 40, 128, 512, 100


def parameters(F: Nodes) -> dict[str, Node]:
    """Four gates with matrices of their own, as Owl has them."""
    shapes: dict[str, tuple[int, ...]] = {"embedding": (VOCABULARY, EMBEDDING)}
    for gate in "ifoc":
        shapes |= {f"w{gate}": (EMBEDDING, HIDDEN), f"u{gate}": (HIDDEN, HIDDEN), f"b{gate}": (HIDDEN,)}
    shapes |= {"w1": (HIDDEN, LINEAR), "b1": (LINEAR,), "w2": (LINEAR, VOCABULARY), "b2": (VOCABULARY,)}
    return {name: F.placeholder(name, TensorSpec(shape, float32)) for name, shape in shapes.items()}


def loss_of(F: Nodes, p: dict[str, Node], text: Node, label: Node) -> Node:
    h = c = F.full(shape=(BATCH, HIDDEN), value=0, dtype=float32)
    for t in range(WINDOW):
        column = F.reshape(F.slice(text, start=(0, t), stop=(BATCH, t + 1), step=(1, 1)), shape=(BATCH,))
        x = F.matmul(F.one_hot(column, depth=VOCABULARY, dtype=float32), p["embedding"])

        def gate(name: str, x: Node = x, h: Node = h) -> Node:
            return F.add(F.add(F.matmul(x, p[f"w{name}"]), F.matmul(h, p[f"u{name}"])), p[f"b{name}"])

        i, f, o = (F.sigmoid(gate(name)) for name in "ifo")
        c = F.add(F.multiply(f, c), F.multiply(i, F.tanh(gate("c"))))
        h = F.multiply(o, F.tanh(c))
    hidden = F.relu(F.add(F.matmul(h, p["w1"]), p["b1"]))
    logits = F.add(F.matmul(hidden, p["w2"]), p["b2"])
    rows = F.multiply(F.one_hot(label, depth=VOCABULARY, dtype=float32), F.log_softmax(logits, axis=1))
    return F.divide(F.negative(F.sum(rows, axis=(0, 1))), BATCH)


def build(F: Nodes) -> SymbolicGraph:
    """Forward, backward and update."""
    p = parameters(F)
    squares = {k: F.placeholder(f"squares of {k}", x.spec) for k, x in p.items()}
    text = F.placeholder("text", TensorSpec((BATCH, WINDOW), int64))
    label = F.placeholder("label", TensorSpec((BATCH,), int64))
    loss = loss_of(F, p, text, label)
    forward = SymbolicGraph({**p, "text": text, "label": label}, {"loss": loss})
    seed = F.full(shape=(), value=1, dtype=float32)
    gradients = reverse(F, forward.nodes, {id(loss): seed}, list(p.values()))
    outputs, pairs = {"loss": loss}, []
    for (name, w), g in zip(p.items(), gradients, strict=True):
        total = F.add(squares[name], F.multiply(g, g))
        outputs[f"new squares of {name}"] = total
        outputs[f"new {name}"] = F.subtract(w, F.divide(F.multiply(g, 0.01), F.add(F.sqrt(total), 1e-8)))
        pairs += [(f"new {name}", name), (f"new squares of {name}", f"squares of {name}")]
    inputs = {**p, **{f"squares of {k}": s for k, s in squares.items()}, "text": text, "label": label}
    return SymbolicGraph(inputs, outputs, tuple(pairs), "lstm")


def data(graph: SymbolicGraph, engine: Engine) -> dict[str, object]:
    rng = np.random.default_rng(0)
    host = {k: (rng.integers(0, VOCABULARY, n.spec.static_shape) if n.dtype == int64
                else np.zeros(n.spec.static_shape, np.float32) if k.startswith("squares")
                else rng.normal(0, 0.1, n.spec.static_shape).astype(np.float32)) for k, n in graph.inputs.items()}
    return {k: engine.executor.upload(x) for k, x in host.items()}


def main() -> None:
    stack = nnc.stack_for(None)
    rows = []
    with without_collector():
        start = perf_counter()
        graph = build(stack.operator.open())
        built = perf_counter()
        optimised = stack.graph.optimise(graph)
        end = perf_counter()
        run = stack.engine.compile(graph)
        compiled = perf_counter()
    gc.collect()
    rows += [["built and differentiated", *map(str, graph.complexity), f"{(built - start) * 1e3:.0f}"],
             ["optimised", *map(str, optimised.complexity), f"{(end - built) * 1e3:.0f}"],
             ["built and optimised (Owl: 15105 nodes, 125 ms)", "", "", f"{(end - start) * 1e3:.0f}"],
             ["compiled (optimised again, planned, bound)", str(len(run.records)), "", f"{(compiled - end) * 1e3:.0f}"]]
    show(f"LSTM on {stack.device.spec.id}", ["", "nodes", "edges", "ms"], rows)
    print(run.memory_plan)
    arrays = data(graph, stack.engine)

    def step() -> None:
        out = run.run(arrays)
        arrays.update({i: out[o] for o, i in graph.iopairs})
        stack.engine.executor.download(out["loss"])

    milliseconds = seconds(step, repeats=5) * 1e3
    print(f"training step {milliseconds:.0f} ms, peak memory of the process {peak_megabytes():.0f} MB")


if __name__ == "__main__":
    main()
