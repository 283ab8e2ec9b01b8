"""`nnc graph`: a training step as a graph, before and after the optimiser, and the plan of its memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nnc_core.base.atomic import write_atomically
from nnc_core.graph import SymbolicGraph
from nnc_core.stacks import stack_for
from nnc_core.values.modes import use_device

if TYPE_CHECKING:
    from nnc_core.recording.compiled import CompiledGraph

OWL = "202/240 -> 104/141"  # measured on Owl's released code, by the same count, for its LeNet-like network


@click.command()
@click.option("--network", type=click.Choice(["lenet"]), default="lenet", show_default=True, help="Which network.")
@click.option("--form", type=click.Choice(["text", "dot", "trace"]), default="text", show_default=True,
              help="How the graph is printed.")
@click.option("--device", help="Compile for this device, such as opencl:0.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path),
              help="Write text, dot, pictures and plan into this folder instead of printing the graph.")
def graph(network: str, form: str, device: str | None, out: Path | None) -> None:
    """Show a network's training step: its nodes, what the optimiser leaves, memory and code of each command."""
    from nnc_core.cli.lenet import LeNet

    with use_device(stack_for(device).device):
        step = LeNet(seed=0).compiled_step()
    if out is None:
        click.echo(_in_form(step.source, form))
    else:
        for path in write_files(step, out, network):
            click.echo(f"wrote {path}")
    click.echo("\n".join(figures(step)))
    if out is None:
        click.echo(step.explain())


def figures(step: CompiledGraph) -> list[str]:
    """Lines on nodes and edges before and after optimisation, and on memory."""
    optimised = step.stack.graph.optimise(step.source)
    return [
        f"nodes/edges, a composite counting as one node: {_ratio(step.source)} -> {_ratio(optimised)} "
        f"(Owl's released code: {OWL})",
        f"nodes/edges as compiled for {step.stack.device.spec.id}, composites that it does not claim expanded: "
        f"{_ratio(step.graph)}",
        f"memory: {step.memory_plan}",
    ]


def write_files(step: CompiledGraph, folder: Path, name: str) -> list[Path]:
    """The graph as text, dot and picture, the plan as picture and text; the paths."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.ClickException(f"cannot write into {str(folder)!r}: {error.strerror}") from error
    written = []
    for ending, text in ((".txt", str(step.source)), (".dot", step.source.to_dot()), ("-plan.txt", step.explain())):
        path = folder / f"{name}{ending}"
        write_atomically(path, lambda file, text=text: file.write(text.encode()))  # type: ignore[misc]
        written.append(path)
    return [*written, *draw_pictures(step, folder, name)]


def draw_pictures(step: CompiledGraph, folder: Path, name: str) -> list[Path]:
    """Pictures of the graph and of its memory in time; the paths."""
    return [step.source.draw(folder / f"{name}.svg"), step.memory_plan.draw(folder / f"{name}-memory.svg")]


def _in_form(graph: SymbolicGraph, form: str) -> str:
    return {"text": graph.__str__, "dot": graph.to_dot, "trace": graph.to_trace}[form]()


def _ratio(graph: SymbolicGraph) -> str:
    nodes, edges = graph.complexity
    return f"{nodes}/{edges}"
