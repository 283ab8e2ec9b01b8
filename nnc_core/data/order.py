"""The order of examples as state: where in which epoch a training run is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnc_core.base.errors import StateError
from nnc_core.base.fields import check_fields, is_count
from nnc_core.data.batches import batches


class DataOrder:
    """The index arrays of `batches`, epoch after epoch, from a place that can be saved.

    Each iteration gives what is left of the current epoch and ends with it::

        order = DataOrder(len(images), 100, seed=0)
        while order.epoch < 20:
            for chosen in order:
                step(images[chosen], labels[chosen])

    `epoch` counts from 0; `position` is the number of batches that the epoch has handed out.  A loop that is left
    early goes on where it was.
    """

    def __init__(self, n: int, batch_size: int, *, seed: int, drop_last: bool = True) -> None:
        self.settings = {"n": n, "batch_size": batch_size, "seed": seed, "drop_last": drop_last}
        self.epoch = self.position = 0
        batches(n, batch_size, seed=seed, epoch=0, drop_last=drop_last)  # raises what is wrong with them

    def __len__(self) -> int:
        """Batches of a whole epoch."""
        full, rest = divmod(self.settings["n"], self.settings["batch_size"])
        return full + (rest > 0 and not self.settings["drop_last"])

    def __iter__(self) -> Iterator[NDArray[np.int64]]:
        whole = list(batches(**self.settings, epoch=self.epoch))  # type: ignore[arg-type]
        for chosen in whole[self.position :]:
            self.position += 1  # before it is used: a state that is saved then has it behind it
            yield chosen
        self.epoch, self.position = self.epoch + 1, 0

    def state_dict(self) -> dict[str, Any]:
        """The place, and the settings that it belongs to, as numbers."""
        return {**self.settings, "epoch": self.epoch, "position": self.position}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go to a saved place.  StateError if it is one among other examples or of another shuffle."""
        if state.keys() != self.state_dict().keys():
            raise StateError(f"{', '.join(state) or 'nothing'} is no place in the order of examples",
                             hint="save the training with this DataOrder")
        different = [f"{k} was {state[k]} and is {mine}" for k, mine in self.settings.items() if state[k] != mine]
        if different:
            raise StateError(f"the order of examples is another one: {'; '.join(different)}")
        check_fields(state, {"epoch": is_count, "position": is_count}, "the place in the order of examples", StateError)
        if state["position"] > len(self):
            raise StateError(f"batch {state['position']} of an epoch that has {len(self)}")
        self.epoch, self.position = state["epoch"], state["position"]

    def __repr__(self) -> str:
        return f"<order of {self.settings['n']} examples: epoch {self.epoch}, batch {self.position} of {len(self)}>"
