"""NNC's minimisers, each a command that takes a gradient: here minimisers, whose step is compiled with the model's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import nnc_core as nnc
from nnc_core import optim
from tests.house.nnc_rows import NO_PATTERN, Backward, Command
from tests.house.rows import Array, Row
from tests.optim import references

_RNG = np.random.default_rng(17)
START, GRADIENTS = _RNG.uniform(-1, 1, (2, 3)), _RNG.uniform(-1, 1, (3, 2, 3))
STEPS_COMPILED = "the step is compiled by `make_step`, in the row itself"


def _stepped(kind: Callable[..., Any], options: dict[str, Any], eager: bool) -> Any:
    cell = nnc.Cell(nnc.asarray(START))
    minimiser = kind({"p": cell}, **options)
    step = optim.make_step(lambda g: (nnc.sum(g), {"p": g}), minimiser, eager=eager)
    for g in GRADIENTS:
        step(nnc.asarray(g))
    return cell.read()


def _minimiser(name: str, options: dict[str, Any], wanted: Callable[[Array, Array], Array], note: str = "") -> Command:
    kind = getattr(optim, name)
    return Command(Row(f"optim.{name}", lambda: [_stepped(kind, options, eager) for eager in (True, False)],
                       lambda: [wanted(START, GRADIENTS)] * 2, note=note, near=1e-9, eager_only=STEPS_COMPILED),
                   Backward(why_not=NO_PATTERN))


COMMANDS: dict[str, Command] = {
    "SGD": _minimiser("SGD", {"learning_rate": 0.1, "momentum": 0.9, "dampening": 0.2, "weight_decay": 0.01},
                      lambda p, g: references.sgd(p, g, 0.1, 0.9, dampening=0.2, decay=0.01),
                      "NNC takes nesterov with dampening too; `scale` is a setting of all minimisers"),
    "ADAM": _minimiser("Adam", {"learning_rate": 0.1, "weight_decay": 0.01},
                       lambda p, g: references.adam(p, g, 0.1, decay=0.01),
                       "the step is counted, not given; with amsgrad NNC takes the largest after the correction"),
    "ADAMW": _minimiser("AdamW", {"learning_rate": 0.1, "weight_decay": 0.01},
                        lambda p, g: references.adam(p, g, 0.1, decay=0.01, decoupled=True)),
    "LAMB": _minimiser("LAMB", {"learning_rate": 0.1, "weight_decay": 0.01},
                       lambda p, g: references.lamb(p, g, 0.1, decay=0.01)),
    "RMSPROP": _minimiser("RMSprop", {"learning_rate": 0.1, "momentum": 0.9, "weight_decay": 0.01, "smoothing": 0.95},
                          lambda p, g: references.rmsprop(p, g, 0.1, 0.95, momentum=0.9, decay=0.01)),
}  # fmt: skip
