"""Rules around the steps of a run: validation, stopping, checkpoints and reports, in that order."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from nnc_core.optim.owl.checkpoint import Checkpoint
from nnc_core.optim.owl.stopping import Stopping
from nnc_core.optim.runs.progress import Progress

Report: TypeAlias = Callable[[Progress], object]
"""Shows how a run goes: `log`, a `ProgressBar`, or any other function of the progress."""
_log = logging.getLogger("nnc_core.optim")


def log(progress: Progress) -> None:
    """One line to the logger "nnc_core.optim" at level INFO."""
    _log.info("%s", progress)


@dataclass(frozen=True)
class Rules:
    """Asked after each batch, or after each epoch of `fit`."""

    stopping: Stopping | None = None
    checkpoint: Checkpoint | None = None
    validate: Callable[[], float] | None = None
    """Measures the loss on other data, after each epoch."""
    report: Report | None = None

    def __post_init__(self) -> None:
        if self.stopping is not None:
            self.stopping.check(self.validate is not None)

    def apply(self, progress: Progress) -> None:
        """After a batch."""
        if self.validate is not None and progress.batch % progress.batches_per_epoch == 0:
            progress.validation_losses.append(self.validate())
        reason = None if self.stopping is None else self.stopping.reason(progress)
        if reason is not None:
            progress.stop, progress.reason = True, reason
        if self.checkpoint is not None:
            self.checkpoint.run(progress)
            if progress.stop and not progress.reason:
                progress.reason = "a checkpoint said so"
        if self.report is not None:
            self.report(progress)
