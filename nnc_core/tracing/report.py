"""Compiled functions as text."""

from __future__ import annotations

from collections.abc import Iterator

from nnc_core.tracing.compilation import Compilation
from nnc_core.tracing.signature import Parameters, Signature


def shown(name: str, parameters: Parameters, signature: Signature) -> str:
    """f(x=float32[2,3] on cpu:0, n=3)"""
    labels = parameters.labels(signature.structure)
    return f"{name}({', '.join(f'{label}={x}' for label, x in zip(labels, signature.leaves, strict=True))})"


def explained(signature: str, found: Compilation, counts: str) -> str:
    """Explain why it was traced, what the trace holds for, its memory, its commands."""
    return "\n".join([signature, *_lines(found, counts), found.run.explain()])


def _lines(found: Compilation, counts: str) -> Iterator[str]:
    traced, run = found.traced, found.run
    written = {cell for _, cell in traced.writes}
    yield f"  {counts}"
    yield f"  traced because {traced.because}"
    if traced.sizes is not None:
        said = [f"{name} = {n}" for name, n in found.numbers.items()]
        yield f"  named dimensions: {', '.join(said)}"
        yield from (f"  guard: {g}" for g in traced.sizes.guards())
    yield from (f"  guard: {g} is {g.value!r}" for g in traced.guards)
    if len(traced.captured):
        yield f"  compared at each call: {traced.captured}"
    for k, cell in traced.cells:
        how = ", updated in place" if k in run.donated else ", updated" if cell in written else ""
        yield f"  cell {cell.name or k!r}: {run.graph.inputs[k].spec}{how}"
    yield from (f"  read from outside at each call: {run.graph.inputs[k].spec}" for k, _ in traced.outside)
    taken = [k for k in found.arguments if k in run.donated]
    if taken:
        yield f"  memory taken over: {', '.join(taken)}"
    plan = run.memory_plan
    yield f"  memory: peak {plan.peak:,} bytes, bound {plan.bound:,}"
