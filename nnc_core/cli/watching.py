"""The display of a training run: a bar on a terminal, else a line for each epoch."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from nnc_core.cli.training import Epoch


class Bar:
    """A Watcher.  The bar counts the steps of all epochs, so that the time it names is that to the end."""

    def __init__(self, console: Console, epochs: int) -> None:
        self.epochs = epochs
        self.progress = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("loss {task.fields[loss]}"),
            TimeRemainingColumn(), console=console, transient=True, disable=not console.is_terminal)
        self.task = self.progress.add_task("starting", total=None, loss="…")

    def __enter__(self) -> Self:
        self.progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.progress.stop()

    def begin(self, epoch: int, steps: int) -> None:
        self.progress.update(self.task, description=f"epoch {epoch}/{self.epochs}", total=steps * self.epochs,
                             completed=steps * (epoch - 1))

    def step(self, loss: float | None) -> None:
        self.progress.advance(self.task)
        if loss is not None:
            self.progress.update(self.task, loss=f"{loss:.4f}")

    def end(self, epoch: Epoch) -> None:
        """Print the epoch's line, above the bar where there is one."""
        width = len(str(self.epochs))
        self.progress.console.print(f"epoch {epoch.number:{width}}/{self.epochs}  loss {epoch.loss:.4f}  "
                                    f"accuracy {100 * epoch.accuracy:.1f} %  {epoch.seconds:.1f} s")
