"""Checkpoints: functions that a run calls with its progress, to save it for example:

`EveryEpochs(1, lambda now: nnc_core.io.save_training_state(path, network, now.minimiser))`
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nnc_core.base.errors import AttributeValueError
from nnc_core.optim.runs.progress import Progress
from nnc_core.optim.settings import COUNT, POSITIVE, check_all

Save = Callable[[Progress], Any]


class Checkpoint:
    """A function that is called between batches."""

    f: Save

    def is_due(self, progress: Progress) -> bool:
        """After this batch?"""
        return True

    def run(self, progress: Progress) -> None:
        """Call the function if it is due."""
        if self.is_due(progress):
            self.f(progress)

    def _check(self) -> None:
        if not callable(self.f):
            raise AttributeValueError(f"{self.f!r} is no function of the progress", operator=type(self).__name__)


@dataclass(frozen=True)
class EveryBatches(Checkpoint):
    """After every `count` batches."""

    count: int
    f: Save

    def __post_init__(self) -> None:
        check_all(self, count=COUNT)
        self._check()

    def is_due(self, progress: Progress) -> bool:
        return progress.batch % self.count == 0


@dataclass(frozen=True)
class EveryEpochs(Checkpoint):
    """After every `count` epochs, which may be a fraction."""

    count: float
    f: Save

    def __post_init__(self) -> None:
        check_all(self, count=POSITIVE)
        self._check()

    def is_due(self, progress: Progress) -> bool:
        return progress.batch % max(1, int(self.count * progress.batches_per_epoch)) == 0


@dataclass(frozen=True)
class Custom(Checkpoint):
    """After every batch; it may set progress.stop."""

    f: Save

    def __post_init__(self) -> None:
        self._check()
