"""One network in one mode, in a process of its own: makes it ready, then evaluates when it is told to."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import nnc_core as nnc
from benchmarks._measure import forget_peak, peak_megabytes
from benchmarks._modes_networks import WORKS, Inference, Training, Work
from benchmarks._peer import CLOCK, for_a_while, say
from nnc_core.graph import SymbolicGraph
from nnc_core.recording.compiled import CompiledGraph


class Evaluation(NamedTuple):
    """A function that evaluates once, and what is known of the graph that it runs, if it is compiled."""

    run: Callable[[], list[nnc.Tensor]]
    counts: dict[str, Any]
    """Nodes and edges as written and as optimised, and the megabytes that a call is planned to need."""


def eager(held: list[Work]) -> Evaluation:
    """Operator by operator, now."""
    f, given, _ = parts(held[0])
    return Evaluation(lambda: leaves(f(*given)), {})


def deferred(held: list[Work]) -> Evaluation:
    """Recorded anew each time, then computed as a whole with the state that it writes."""
    f, given, written = parts(held[0])

    def run() -> list[nnc.Tensor]:
        with nnc.deferred():
            results = leaves(f(*given))
            nnc.realize(results, [cell.read() for cell in written])
        return results

    return Evaluation(run, {})


def compiled(held: list[Work]) -> Evaluation:
    """One graph: training with its state; inference with its weights as constants, the network itself given up."""
    work = held.pop()
    if isinstance(work, Training):
        step, batch = work.compiled, work.batch
        lowered = step.lower(*batch)
        return Evaluation(lambda: [step(*batch)], counts(lowered.source, lowered))
    x, images = nnc.var_arr("x", work.images.shape), work.images
    graph = nnc.export({"x": x}, dict(zip("abcd", leaves(work.network(x)), strict=False)), capture="constant")
    del work
    run = graph.compile(consume=True)
    return Evaluation(lambda: [*run(x=images).values()], counts(graph, run))


def counts(written: SymbolicGraph, run: CompiledGraph) -> dict[str, Any]:
    return {"written": written.complexity, "optimised": run.graph.complexity, "planned": run.memory_plan.peak / 2**20}


MODES: dict[str, Callable[[list[Work]], Evaluation]] = {"eager": eager, "deferred": deferred, "compiled": compiled}
"""Each is given a list with the work in it, so that it can give the work up."""


def parts(work: Work) -> tuple[Callable[..., Any], tuple[nnc.Tensor, ...], list[Any]]:
    """A function of tensors, what it is given, and the state that it writes."""
    if isinstance(work, Inference):
        return without_tape(work.network), (work.images,), []
    return work.step, work.batch, [*work.written]


def without_tape(f: Callable[..., Any]) -> Callable[..., Any]:
    def run(*given: nnc.Tensor) -> Any:
        with nnc.no_grad():
            return f(*given)

    return run


def leaves(result: Any) -> list[nnc.Tensor]:
    """The tensors of a result: detections are several."""
    return [*result] if isinstance(result, tuple) else [result]


def main() -> None:
    name, mode = sys.argv[1:3]
    bare = forget_peak()
    held = [WORKS[name]()]
    weights = forget_peak() - bare
    begin = CLOCK()
    run, known = MODES[mode](held)

    def evaluate() -> None:
        results = run()
        nnc.synchronize()
        del results

    evaluate()
    say({"first": CLOCK() - begin, "weights": weights, **known})
    for line in sys.stdin:
        seconds = json.loads(line)["seconds"]
        say({"step": for_a_while(evaluate, seconds) if seconds else 0.0, "peak": peak_megabytes() - bare})


if __name__ == "__main__":
    main()
