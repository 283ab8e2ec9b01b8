"""A bar on the terminal for whoever watches a run."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from nnc_core.base.missing import require
from nnc_core.optim.runs.progress import Progress


class ProgressBar:
    """`with optim.ProgressBar() as bar: optim.train(network, params, x, y, report=bar)`

    Shows batches, the loss of now and then, and the time that is left; nothing where the output is no terminal.
    `console` is one of rich's.  Raises MissingPackageError without rich (`pip install nnc-core[cli]`).
    """

    every = 10
    """Batches from one look at the loss to the next: each look waits for the device."""

    def __init__(self, console: Any = None) -> None:
        rich = require("rich.progress", purpose="a progress bar", extra="cli")
        if console is None:
            console = require("rich.console", purpose="a progress bar", extra="cli").Console()
        self._bar = rich.Progress(
            rich.TextColumn("epoch {task.fields[epoch]}"), rich.BarColumn(), rich.MofNCompleteColumn(),
            rich.TextColumn("loss {task.fields[loss]}"), rich.TimeRemainingColumn(),
            console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task("training", total=None, epoch="…", loss="…")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self._bar.stop()

    def __call__(self, progress: Progress) -> None:
        said: dict[str, str] = {}
        if progress.batch % self.every == 0 or not progress.goes_on:
            said["loss"] = f"{progress.losses[-1]:.4f}"
        epochs = progress.batches / progress.batches_per_epoch
        self._bar.update(self._task, completed=progress.batch, total=progress.batches,
                         epoch=f"{progress.epoch:.1f}/{epochs:g}", **said)
