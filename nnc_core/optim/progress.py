"""How far a run of Owl's minimise functions is."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from nnc_core.optim.minimiser import Minimiser


@dataclass
class Progress:
    """What checkpoints see, and what a run goes on from: hand it to the next call as `state`.

    The minimiser's own state (directions, velocities, step number) is in its cells.
    """

    minimiser: Minimiser
    batches_per_epoch: int
    batches: int = 0
    """Batches that the run is to have in all."""
    batch: int = 0
    """Batches done."""
    losses: list[float] = field(default_factory=list)
    """The loss of each batch before its update, with regularisation."""
    validation_losses: list[float] = field(default_factory=list)
    stop: bool = False
    """A checkpoint sets it to end the run."""
    reason: str = ""
    """Why the run has ended before its last batch."""
    started: float = field(default_factory=time.monotonic)

    @property
    def epoch(self) -> float:
        """Epochs done."""
        return self.batch / self.batches_per_epoch

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self.started

    def __str__(self) -> str:
        now, before = self.losses[-1], self.losses[-2] if len(self.losses) > 1 else self.losses[-1]
        trend = "-" if now == before else "▼" if now < before else "▲"
        return (f"T: {self.seconds:.1f} s | E: {self.epoch:.1f}/{self.batches / self.batches_per_epoch:g} | "
                f"B: {self.batch}/{self.batches} | L: {now:.6f}[{trend}]")
