"""`nnc run` and `nnc show`: ONNX models on the command line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from nnc_core.base.errors import Error
from nnc_core.io import load_onnx
from nnc_core.stacks import stack_for
from nnc_core.values.modes import use_device

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from nnc_core.io.onnx.reading.module import OnnxModule

MODEL = click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
DEVICE = click.option("--device", help="The device, such as opencl:0.")


# ---- nnc run
@click.command()
@MODEL
@click.option("--input", "inputs", multiple=True, metavar="[NAME=]FILE.npy",
              help="An array for an input; without a name for the next one in the model's order.  "
                   "A file .npz gives all that it holds, by name.")
@DEVICE
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the outputs into this file .npz.")
@click.option("--repeat", type=click.IntRange(min=0), default=0, metavar="N", help="Time N further calls.")
def run(model: Path, inputs: tuple[str, ...], device: str | None, out: Path | None, repeat: int) -> None:
    """Run an ONNX model on arrays from files, compiled for a device."""
    console = _console()
    with use_device(stack_for(device).device):
        with _status(console, f"loading {model.name}"):
            module = load_onnx(model).hybridize()
        given = _arrays(module, inputs)
        with _status(console, "compiling"):
            outputs = _outputs(module, given)
        for name, value in outputs.items():
            console.print(f"{name}: {_described(value)}", markup=False)
        if repeat:
            console.print(f"{_time(module, given, repeat):.3f} ms a call, the median of {repeat}")
    if out is not None:
        _save(out, outputs)
        console.print(f"wrote {out}", markup=False)


def _arrays(module: OnnxModule, inputs: Iterable[str]) -> dict[str, Any]:
    """Arrays by the names of inputs."""
    given: dict[str, Any] = {}
    for text in inputs:
        name, equals, path = text.rpartition("=")
        loaded = _loaded(Path(path))
        if isinstance(loaded, dict):
            given.update(loaded)
            continue
        free = [input for input in module.input_names if input not in given]
        if not (equals or free):
            known = ", ".join(module.input_names)
            raise click.ClickException(f"{path!r} is one array too many: the inputs are {known}")
        given[name if equals else free[0]] = loaded
    return given


def _loaded(path: Path) -> Any:
    """The array of a file .npy, or those of a file .npz by name."""
    try:
        loaded = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise click.ClickException(f"cannot read arrays from {str(path)!r}: {error}") from error
    return dict(loaded) if isinstance(loaded, np.lib.npyio.NpzFile) else loaded


def _outputs(module: OnnxModule, given: dict[str, Any]) -> dict[str, Any]:
    results = module(**given)
    return dict(zip(module.output_names, results if isinstance(results, tuple) else (results,), strict=True))


def _described(value: Any) -> str:
    if isinstance(value, list):
        return f"sequence of {len(value)}"
    if value is None:
        return "none"
    array = np.asarray(value)
    text = np.array2string(array, threshold=12, edgeitems=3, precision=5)
    return f"{array.dtype}[{', '.join(map(str, array.shape))}]\n{text}"


def _time(module: OnnxModule, given: dict[str, Any], repeat: int) -> float:
    """The median time of a call, in ms, until its results are there."""
    times = []
    for _ in range(repeat):
        begin = perf_counter()
        for value in _outputs(module, given).values():
            if value is not None and not isinstance(value, list):
                np.asarray(value)
        times.append(perf_counter() - begin)
    return 1e3 * float(np.median(times))


def _save(path: Path, outputs: dict[str, Any]) -> None:
    arrays = {name: np.asarray(value) for name, value in outputs.items() if not isinstance(value, list)}
    try:
        with path.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
    except OSError as error:
        raise click.ClickException(f"cannot write {str(path)!r}: {error.strerror}") from error


# ---- nnc show
@click.command()
@MODEL
@DEVICE
@click.option("--size", "sizes", multiple=True, metavar="NAME=N",
              help="A number for a named dimension: without it one that has no number is 1.")
def show(model: Path, device: str | None, sizes: tuple[str, ...]) -> None:
    """Show what an ONNX model consists of, and the memory that it needs when it is compiled."""
    console = _console()
    with use_device(stack_for(device).device):
        with _status(console, f"loading {model.name}"):
            module = load_onnx(model)
        console.print(_values("inputs", module.inputs))
        console.print(_values("outputs", module.outputs))
        console.print(_operators(module))
        parameters = module.named_parameters(frozen=None).values()
        count = sum(int(np.prod(p.spec.static_shape)) for p in parameters)
        size = sum(int(np.prod(c.spec.static_shape)) * c.spec.dtype.itemsize for c in module.cells().values())
        console.print(f"{len(parameters)} parameters of {count:,} numbers; "
                      f"{size / 2**20:.1f} MiB of weights and buffers")
        with _status(console, "planning"):
            planned = _planned(module, _numbers(sizes))
        console.print(planned, markup=False)


def _numbers(sizes: Iterable[str]) -> dict[str, int]:
    found = {}
    for text in sizes:
        name, equals, number = text.rpartition("=")
        if not (equals and number.isdecimal()):
            raise click.ClickException(f"--size {text!r}: expected NAME=N, such as batch=8")
        found[name] = int(number)
    return found


def _planned(module: OnnxModule, sizes: dict[str, int]) -> str:
    """A line on the arena of the compiled model, or why there is none."""
    sizes = dict.fromkeys(module.dimension_names, 1) | sizes
    try:
        plan = module.graph(frozen=True, sizes=sizes).compile().memory_plan  # type: ignore[attr-defined]
    except Error as error:
        return f"memory: not planned, since the sizes do not say all: {error}"
    at = ", ".join(f"{name} = {n}" for name, n in sizes.items())
    return f"memory{' for ' + at if at else ''}: {plan}"


def _values(title: str, values: Iterable[Any]) -> Table:
    def shape(value: Any) -> str:
        return "?" if value.shape is None else ", ".join("?" if d is None else str(d) for d in value.shape)

    return _table(title, ("name", "dtype", "shape"),
                  [(value.name, str(value.dtype or value.kind), f"[{shape(value)}]") for value in values])


def _operators(module: OnnxModule) -> Table:
    counts = Counter((step.operator.name, step.operator.since) for step in module.steps)
    ordered = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return _table("operators", ("operator", "since version", "count"),
                  [(name, str(since), str(count)) for (name, since), count in ordered])


def _table(title: str, columns: Iterable[str], rows: Iterable[Iterable[str]]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(*columns, title=Text(title), title_justify="left")
    for row in rows:
        table.add_row(*map(Text, row))  # brackets are no markup
    return table


def _console() -> Console:
    from rich.console import Console

    return Console(highlight=False, soft_wrap=True)


def _status(console: Console, text: str) -> AbstractContextManager[Any]:
    return console.status(text) if console.is_terminal else nullcontext()
