"""What all minimisers share: parameters by name, state in cells, a live step count and learning rate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Self

import ml_dtypes
import numpy as np

from nnc_core.base.dtype import DType
from nnc_core.base.errors import (
    AttributeValueError,
    DTypeError,
    NotSupportedError,
    OperandError,
    ShapeError,
    StateError,
)
from nnc_core.dynamic.cell import Cell, guarded
from nnc_core.dynamic.functions.creation import asarray, zeros
from nnc_core.dynamic.modes import no_grad
from nnc_core.dynamic.state import HostArray, load_state, save_state
from nnc_core.dynamic.tensor import Tensor

Schedule = Callable[[Tensor], Tensor]
"""From the number of updates made before (float32, no dimensions) to the learning rate."""
Rate = float | Tensor
Updates = list[tuple[Cell, Tensor]]


class Minimiser:
    """Changes parameters so that a loss falls: `update` takes gradients by the names of the parameters.

    `parameters` is a mapping such as `module.named_parameters()`, taken as it is now, or a sequence of cells, named
    by position.  The learning rate is a number or a `Schedule`, evaluated in the graph; compiled code is traced again
    when a setting is changed.  State has the dtype and the device of its parameter.
    """

    settings: ClassVar[tuple[str, ...]] = ("learning_rate",)
    """Attributes that compiled code depends on."""

    def __init__(self, parameters: Mapping[str, Cell] | Iterable[Cell], learning_rate: float | Schedule) -> None:
        self.parameters = _named(parameters)
        self.learning_rate = learning_rate
        first = next(iter(self.parameters.values()))
        self.step = Cell(asarray(np.int64(0), device=first.device), "step")
        self.slots: dict[str, dict[str, Cell]] = {}

    # ---- for subclasses
    def slot(self, name: str) -> None:
        """A cell of zeros for each parameter."""
        self.slots[name] = {key: Cell(zeros_of(p), f"{name}.{key}") for key, p in self.parameters.items()}

    def changes(self, gradients: Mapping[str, Tensor]) -> Updates:
        """The cells that one update writes and what it writes there."""
        raise NotSupportedError(f"{type(self).__name__} has no changes", hint="define changes(self, gradients)")

    def rate_for(self, p: Tensor) -> Rate:
        """The learning rate of this update, in the dtype of a parameter."""
        rate = self._rate()
        return rate.astype(p.dtype) if isinstance(rate, Tensor) else rate

    def _rate(self) -> Rate:
        if not callable(self.learning_rate):
            return self.learning_rate
        rate = self.learning_rate(self.step.read().astype("float32"))
        if isinstance(rate, Tensor) and rate.shape != ():
            raise ShapeError(f"the schedule gives {rate.spec}, expected one number")
        return rate

    # ---- for users
    def update(self, gradients: Mapping[str, Tensor]) -> None:
        """One update.  All new values are computed before the first is written.

        Raises StateError for names that are not those of the parameters, ShapeError and DTypeError for gradients that
        are not like their parameters.
        """
        self._check(gradients)
        guarded(self._read_settings)
        with no_grad():
            changes = self.changes(gradients)
            count = self.step.read() + 1
        for cell, tensor in [*changes, (self.step, count)]:
            cell.write(tensor)

    def _check(self, gradients: Mapping[str, Tensor]) -> None:
        missing, unknown = self.parameters.keys() - gradients.keys(), gradients.keys() - self.parameters.keys()
        if missing or unknown:
            said = [f"missing {', '.join(sorted(missing))}"] * bool(missing)
            said += [f"unknown {', '.join(sorted(unknown))}"] * bool(unknown)
            raise StateError(f"gradients for {type(self).__name__}: {'; '.join(said)}",
                             hint="differentiate by the parameters that the minimiser was made with")
        for name, p in self.parameters.items():
            g = gradients[name]
            if g.shape != p.spec.shape:
                raise ShapeError(f"the gradient of {name!r} is {g.spec}, its parameter {p.spec}")
            if g.dtype != p.spec.dtype:
                raise DTypeError(f"the gradient of {name!r} is {g.spec}, its parameter {p.spec}",
                                 hint="cast with astype")

    def _read_settings(self) -> tuple[Any, ...]:
        return tuple([getattr(self, name) for name in self.settings])

    def cells(self) -> dict[str, Cell]:
        """The state by name: "step", and "slot.parameter" for the rest."""
        found = {"step": self.step}
        for slot, cells in self.slots.items():
            found |= {f"{slot}.{name}": cell for name, cell in cells.items()}
        return found

    def state_dict(self) -> dict[str, HostArray]:
        """The state as host arrays; settings and parameters are not part of it."""
        return save_state(self.cells())

    def load_state_dict(self, arrays: Mapping[str, Any]) -> None:
        """Take over the state; nothing changes unless all names, shapes and dtypes fit."""
        load_state(self.cells(), arrays, f"the state of {type(self).__name__}")

    def to(self, device: Any) -> Self:
        """Move the state to a device, as the parameters are moved by their module."""
        for cell in self.cells().values():
            cell.move(device)
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.settings:
            _check_setting(type(self).__name__, name, value)
        object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        said = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.settings)
        return f"{type(self).__name__}({len(self.parameters)} parameters, {said})"


def _named(parameters: Mapping[str, Cell] | Iterable[Cell]) -> dict[str, Cell]:
    named = dict(parameters) if isinstance(parameters, Mapping) else {str(i): p for i, p in enumerate(parameters)}
    if not named:
        raise OperandError("no parameters to train")
    for name, p in named.items():
        if not isinstance(p, Cell):
            raise OperandError(f"parameter {name!r} is {type(p).__name__}, which cannot be written",
                               hint="pass module.named_parameters(), or Cells")
    return named


def _check_setting(minimiser: str, name: str, value: Any) -> None:
    if isinstance(value, bool) or (name == "learning_rate" and callable(value)):
        return
    if not isinstance(value, (int, float)) or not value >= 0:
        hint = "a learning rate that changes is a function of the step" if name == "learning_rate" else None
        raise AttributeValueError(f"{name} is {value!r}, expected a number of at least 0", operator=minimiser,
                                  hint=hint)


def zeros_of(p: Cell) -> Tensor:
    """Zeros like a parameter, on its device."""
    return zeros(p.spec.shape, dtype=p.spec.dtype, device=p.device)


def representable(epsilon: float, dtype: DType) -> float:
    """An epsilon that is not rounded to zero: at least the smallest normal number of the dtype."""
    return max(epsilon, float(ml_dtypes.finfo(dtype).smallest_normal))  # type: ignore[no-untyped-call]
