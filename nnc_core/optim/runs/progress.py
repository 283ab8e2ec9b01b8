"""The progress of a run."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from nnc_core.base.errors import StateError
from nnc_core.base.fields import are_numbers, check_fields, is_count, is_number
from nnc_core.optim.minimisers.minimiser import Minimiser
from nnc_core.values.arguments import constructor
from nnc_core.values.tensor import Tensor

_FIELDS = {"batch": is_count, "batches_per_epoch": lambda x: is_count(x) and x > 0, "losses": are_numbers,
           "validation_losses": are_numbers, "seconds": lambda x: is_number(x) and x >= 0}
UNREAD = 256
"""Losses that may be on their way from the device."""


class Progress:
    """The progress of a run, which checkpoints and reports see and a run goes on from: the `state` of the next call.

    The minimiser's own state (directions, velocities, step number) is in its cells; `save_training_state(path, network,
    progress.minimiser, progress=progress)` writes both.  `optim.fit` counts epochs as batches, and has no minimiser
    here.
    """

    @constructor
    def __init__(self, minimiser: Minimiser | None, batches_per_epoch: int = 1, *, batch: int = 0,
                 losses: Iterable[float] = (), validation_losses: Iterable[float] = ()) -> None:
        self.minimiser, self.batches_per_epoch = minimiser, batches_per_epoch
        self.batch = batch
        """Batches done."""
        self.batches = 0
        """Batches that the run is to have in all."""
        self._losses, self._unread = list(losses), list[Tensor]()
        self.validation_losses = list(validation_losses)
        """After each epoch."""
        self.stop = False
        """A checkpoint sets it to end the run."""
        self.reason = ""
        """Why the run has ended before its last batch."""
        self._before, self._started = 0.0, time.monotonic()

    @property
    def losses(self) -> list[float]:
        """The loss of each batch before its update, with regularisation; waits for the device."""
        self._losses += [x.item() for x in self._unread]
        self._unread.clear()
        return self._losses

    @property
    def epoch(self) -> float:
        """Epochs done."""
        return self.batch / self.batches_per_epoch

    @property
    def seconds(self) -> float:
        """The duration of the run so far, former parts included."""
        return self._before + time.monotonic() - self._started

    # ---- for those who run
    @property
    def goes_on(self) -> bool:
        """True if there is another batch."""
        return self.batch < self.batches and not self.stop

    def begin(self, batches: int) -> None:
        """Go on until there are so many batches."""
        self.batches, self.stop, self.reason = batches, False, ""

    def note(self, loss: Tensor | float) -> None:
        """A batch is done.  A loss on a device is read when somebody asks for losses, or some hundred batches later."""
        self.batch += 1
        if isinstance(loss, Tensor):
            self._unread.append(loss)
        else:
            self.losses.append(loss)
        if len(self._unread) >= UNREAD:
            _ = self.losses

    # ---- state
    def state_dict(self) -> dict[str, Any]:
        """The state for a file, as JSON can hold it."""
        return {"batch": self.batch, "batches_per_epoch": self.batches_per_epoch, "losses": list(self.losses),
                "validation_losses": list(self.validation_losses), "seconds": self.seconds}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over where another run was.  StateError if that is something else."""
        if state.keys() != self.state_dict().keys():
            raise StateError(f"{', '.join(state) or 'nothing'} is no progress of a run",
                             hint="save the training with progress=...")
        check_fields(state, _FIELDS, "the progress of a run", StateError)
        self.batch, self.batches_per_epoch = state["batch"], state["batches_per_epoch"]
        self._losses, self._unread = list(state["losses"]), []
        self.validation_losses = list(state["validation_losses"])
        self._before, self._started = float(state["seconds"]), time.monotonic()

    def __str__(self) -> str:
        """One line: time, epoch, batch, loss and whether it has fallen."""
        losses = self.losses or [float("nan")]
        now, before = losses[-1], losses[-2] if len(losses) > 1 else losses[-1]
        trend = "▼" if now < before else "▲" if now > before else "-"
        return (f"T: {self.seconds:.1f} s | E: {self.epoch:.1f}/{self.batches / self.batches_per_epoch:g} | "
                f"B: {self.batch}/{self.batches} | L: {now:.6f}[{trend}]")
