"""Modules: parts of a network with their weights, composed by attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from nnc_core.base.errors import NotSupportedError, OperandError
from nnc_core.dynamic.cell import Cell, guarded
from nnc_core.dynamic.jit import Jitted, jit
from nnc_core.dynamic.state import HostArray, load_state, save_state
from nnc_core.dynamic.tensor import Tensor
from nnc_core.nn.parameter import Parameter, is_substituted
from nnc_core.nn.text import summary, tree_text
from nnc_core.nn.tree import Branch, cells_of, walk


class Module(Branch):
    """A part of a network.  Subclasses set their parts in `__init__` and say in `forward` what is computed.

    Attributes that are a Parameter, a Module, a Cell (a buffer), a Generator (the buffer is its key) or a tuple of
    such are found by name.  Compiled code is traced again when an attribute has been replaced or the mode of training
    has changed.
    """

    _training = True
    _version = 0
    _compiled: Jitted | None = None

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes."""
        raise NotSupportedError(f"{type(self).__name__} has no forward", hint="define forward(self, ...)")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        guarded(self._read_version)
        if self._compiled is not None and not is_substituted():
            return self._compiled(*args, **kwargs)
        return self.forward(*args, **kwargs)

    # ---- attributes
    def __setattr__(self, name: str, value: Any) -> None:
        old = self.__dict__.get(name)
        if isinstance(old, Cell) and isinstance(value, (Tensor, float, int)):
            raise OperandError(f"{type(self).__name__}.{name} is a {type(old).__name__}, not a {type(value).__name__}",
                               hint=f"module.{name}.write(tensor), or a new {type(old).__name__}")
        if old is not value or name not in self.__dict__:
            object.__setattr__(self, name, value)
            self._changed()
        if isinstance(value, Cell) and not value.name:
            value.name = name

    def __delattr__(self, name: str) -> None:
        object.__delattr__(self, name)
        self._changed()

    def _changed(self) -> None:
        self.__dict__["_version"] = self._version + 1

    def _read_version(self) -> int:
        return self._version

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles start without compiled code."""
        return {name: x for name, x in vars(self).items() if name != "_compiled"}

    # ---- state
    def cells(self) -> dict[str, Cell]:
        """Parameters and buffers by name, each once; names are joined by dots."""
        return cells_of(self)

    def named_parameters(self) -> dict[str, Parameter]:
        """What is trained, by name."""
        return {name: c for name, c in self.cells().items() if isinstance(c, Parameter)}

    def parameters(self) -> list[Parameter]:
        """What is trained."""
        return list(self.named_parameters().values())

    def named_buffers(self) -> dict[str, Cell]:
        """State that is not trained, by name: random keys, running statistics."""
        return {name: c for name, c in self.cells().items() if not isinstance(c, Parameter)}

    def buffers(self) -> list[Cell]:
        """State that is not trained."""
        return list(self.named_buffers().values())

    def state_dict(self) -> dict[str, HostArray]:
        """Parameters and buffers as host arrays."""
        return save_state(self.cells())

    def load_state_dict(self, arrays: Mapping[str, Any]) -> None:
        """Take over parameters and buffers; nothing changes unless all names, shapes and dtypes fit.

        Raises StateError for missing or unexpected names, ShapeError, DTypeError.
        """
        load_state(self.cells(), arrays, f"the state of {type(self).__name__}")

    def to(self, device: Any) -> Self:
        """Move all parameters and buffers to a device."""
        for cell in self.cells().values():
            cell.move(device)
        return self

    # ---- training and evaluation
    @property
    def training(self) -> bool:
        """Whether dropout and the like are active; compiled code is traced for both."""
        return guarded(self._read_training)  # type: ignore[no-any-return]

    def _read_training(self) -> bool:
        return self._training

    def train(self, mode: bool = True) -> Self:
        """Set this module and all its parts to training, or with False to evaluation."""
        for place in walk(self):
            place.module.__dict__["_training"] = bool(mode)
        return self

    def eval(self) -> Self:
        """Set this module and all its parts to evaluation."""
        return self.train(False)

    def hybridize(self, active: bool = True) -> Self:
        """Compile calls of this module from now on, as `jit` does."""
        self.__dict__["_compiled"] = jit(self.forward) if active else None
        return self

    # ---- text
    def __repr__(self) -> str:
        return tree_text(self)

    def summary(self) -> str:
        """A table of modules, the shapes of their parameters and counts, as text."""
        return summary(self)
