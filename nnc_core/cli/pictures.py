"""The pictures that a training run leaves: its curve, its graph and its memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nnc_core.base.atomic import open_atomically
from nnc_core.base.missing import require
from nnc_core.cli.training import Epoch

LOSS, ACCURACY = "tab:blue", "tab:orange"


def draw_curve(epochs: Sequence[Epoch], path: Path) -> Path:
    """Mean loss and accuracy of each epoch, in the format of the path's ending; gives the path.

    The file is there whole or not at all.  Raises MissingPackageError where matplotlib is missing.
    """
    library = require("matplotlib.figure", purpose="a picture of the training", extra="plots")
    figure = library.Figure(figsize=(7, 4), layout="constrained")  # of its own: pyplot stays as the user has it
    loss = figure.add_subplot()
    accuracy = loss.twinx()
    numbers = [epoch.number for epoch in epochs]
    loss.plot(numbers, [epoch.loss for epoch in epochs], color=LOSS, marker=".")
    accuracy.plot(numbers, [100 * epoch.accuracy for epoch in epochs], color=ACCURACY, marker=".")
    loss.set(xlabel="epoch", ylim=(0, None))
    loss.set_ylabel("mean loss of the epoch", color=LOSS)
    accuracy.set_ylabel("accuracy on held-out digits, %", color=ACCURACY)
    loss.xaxis.get_major_locator().set_params(integer=True)
    loss.grid(alpha=0.3)
    with open_atomically(path) as file:
        figure.savefig(file, format=path.suffix[1:] or "png")
    return path
