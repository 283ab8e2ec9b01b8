"""`nnc demo`: a network trained on real digits, from the first weight to the last accuracy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nnc_core.base.missing import require
from nnc_core.data import Dataset, load_mnist
from nnc_core.stacks import stack_for
from nnc_core.values.modes import use_device

if TYPE_CHECKING:
    from rich.console import Console

    from nnc_core.cli.lenet import LeNet
    from nnc_core.cli.training import DemoProgress, Epoch

CHECKPOINT = "lenet.safetensors"
INTERRUPTED = 130  # the exit status that shells give to Ctrl-C


@click.command()
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True,
              help="Decides weights, dropout, order and shifts.")
@click.option("--epochs", type=click.IntRange(min=1), default=20, show_default=True,
              help="How often each digit is seen.")
@click.option("--device", help="Train on this device, such as opencl:0.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=Path("out"), show_default=True,
              help="Folder for checkpoint and pictures.")
@click.option("--eager", is_flag=True, help="Run operator by operator instead of one compiled graph per step.")
@click.option("--resume", is_flag=True, help="Go on from the checkpoint in that folder, if there is one.")
@click.option("--checkpoint", type=click.IntRange(min=1), metavar="STEPS",
              help="Write a checkpoint each time so many steps are done, and after each epoch.")
@click.option("--limit", type=click.IntRange(min=100), hidden=True, help="Use at most so many digits.")
def demo(seed: int, epochs: int, device: str | None, out: Path, eager: bool, resume: bool,
         checkpoint: int | None, limit: int | None) -> None:
    """Train a LeNet-like network on handwritten digits.

    Writes its checkpoint after each epoch (Ctrl-C leaves the last one), then pictures of the curve, the graph and the
    memory.  The last line is the accuracy on digits that it has not been trained on.  A run that was interrupted, or
    killed, goes on with --resume as if nothing had happened.
    """
    from rich.console import Console

    from nnc_core.cli.lenet import LeNet
    from nnc_core.cli.training import DemoProgress

    _check_packages()
    out.mkdir(parents=True, exist_ok=True)
    digits = _limited(load_mnist("sample"), limit)
    console = Console(highlight=False, markup=False, soft_wrap=True)
    with use_device(stack_for(device).device):
        lenet, progress = LeNet(seed, compiled=not eager), DemoProgress(digits, seed, eager=eager, limit=limit)
        if resume:
            _take_up(lenet, progress, out, console)
        _introduce(lenet, digits, console)
        _train(lenet, digits, epochs, progress, out, checkpoint, console)
        _draw(lenet, progress.history, out, console)
    click.echo(f"accuracy: {100 * progress.history[-1].accuracy:.1f} %")


def _check_packages() -> None:
    """Before the training, not after it."""
    require("safetensors", purpose="writing a checkpoint", extra="io")
    require("matplotlib", purpose="a picture of the training", extra="plots")


def _limited(digits: Dataset, limit: int | None) -> Dataset:
    return replace(digits, train_images=digits.train_images[:limit], train_labels=digits.train_labels[:limit],
                   test_images=digits.test_images[:limit], test_labels=digits.test_labels[:limit])


def _introduce(lenet: LeNet, digits: Dataset, console: Console) -> None:
    from nnc_core.cli.graph import figures

    console.print(digits.note)
    console.print(f"device: {lenet.device.id}, {lenet.device.name}")
    for line in figures(lenet.compiled_step()) if lenet.compiled else ():
        console.print(line)


def _take_up(lenet: LeNet, progress: DemoProgress, out: Path, console: Console) -> None:
    from nnc_core.base.errors import StateError

    path = out / CHECKPOINT
    if not path.exists():
        console.print(f"there is no {path}: starting from the beginning")
        return
    try:
        lenet.load(path, progress)
    except StateError as error:
        raise click.ClickException(str(error)) from error
    console.print(f"resumed {path}: epoch {progress.order.epoch}, step {progress.order.position}")


def _train(lenet: LeNet, digits: Dataset, epochs: int, progress: DemoProgress, out: Path, every: int | None,
           console: Console) -> None:
    """Train, with a checkpoint after each epoch and each `every` steps; Ctrl-C ends the command."""
    from nnc_core.cli.training import train
    from nnc_core.cli.watching import Bar

    path, kept = out / CHECKPOINT, "no epoch was finished"

    def save(done: int) -> None:
        nonlocal kept
        lenet.save(path, done, progress)
        step = progress.order.position
        kept = f"{path} is of epoch {done}" + (f" and step {step} of the next" if step else "")

    def after_step() -> None:
        if every and progress.order.position % every == 0:
            save(progress.order.epoch - 1)

    try:
        with Bar(console, epochs) as bar:
            for epoch in train(lenet, digits, epochs, progress, bar, after_step):
                bar.end(epoch)
                save(epoch.number)
    except KeyboardInterrupt:
        console.print(f"interrupted; {kept}")
        raise click.exceptions.Exit(INTERRUPTED) from None


def _draw(lenet: LeNet, history: list[Epoch], out: Path, console: Console) -> None:
    from nnc_core.cli.graph import draw_pictures
    from nnc_core.cli.pictures import draw_curve

    written = [out / CHECKPOINT, draw_curve(history, out / "curve.svg")]
    if lenet.compiled:
        written += draw_pictures(lenet.compiled_step(), out, "lenet")
    console.print(f"wrote {', '.join(map(str, written))}")
