"""Modules: parts of a network with their weights, composed by attributes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Self

from nnc_core.base.errors import AttributeValueError, NotSupportedError, OperandError
from nnc_core.dynamic.algodiff.hooks import HookHandle
from nnc_core.dynamic.cell import Cell
from nnc_core.dynamic.state import HostArray, load_state, save_state
from nnc_core.dynamic.tensor import Tensor
from nnc_core.dynamic.traces.jit import Jitted
from nnc_core.dynamic.traces.trace import guarded
from nnc_core.nn.hooks import AFTER, BEFORE, Hook, arguments_after, register, result_after
from nnc_core.nn.parameter import Parameter, accumulated, read_as
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
    _before_forward: Mapping[int, Hook] = MappingProxyType({})
    _after_forward: Mapping[int, Hook] = MappingProxyType({})

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes."""
        raise NotSupportedError(f"{type(self).__name__} has no forward", hint="define forward(self, ...)")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        guarded(self._read_version)
        if self._before_forward or self._after_forward:
            args = arguments_after(self, args)
            return result_after(self, args, self._run(*args, **kwargs))
        return self._run(*args, **kwargs)

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        if self._compiled is not None:
            return self._compiled(*args, **kwargs)
        return self.forward(*args, **kwargs)

    def functional_call(self, weights: Mapping[str, Tensor], *args: Any, **kwargs: Any) -> Any:
        """What a call computes with these tensors, by name, in the places of its parameters; others stay."""
        mine = self.named_parameters()
        if weights.keys() - mine.keys():
            raise OperandError(f"{type(self).__name__} has no parameter {sorted(weights.keys() - mine.keys())[0]!r}",
                               hint=f"its parameters are {', '.join(mine) or 'none'}")
        with read_as({mine[name]: tensor for name, tensor in weights.items()}):
            return self(*args, **kwargs)

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
        """Copies and pickles start without compiled code and without hooks."""
        return {name: x for name, x in vars(self).items() if name not in ("_compiled", BEFORE, AFTER)}

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

    def hybridize(self, active: bool = True, *, static_alloc: bool = False, static_shape: bool = False,
                  inline_limit: int = 2) -> Self:
        """Compile calls of this module and of all its parts from now on, as `jit` does; active=False undoes it.

        A part that is called by a compiled module is compiled with it.  `static_alloc`: memory for intermediate values
        is allocated when a call is compiled, not when it first runs, so that a call allocates its results only; it is
        kept in either case, once for each call that runs at the same time as others.  `static_shape`, which needs
        static_alloc: another shape is a ShapeError instead of another compilation.  `inline_limit`: a module of at
        most so many operators is written out where another trace calls it, a larger one may be called there as a
        whole; with static_alloc, every one may.
        """
        if static_shape and not static_alloc:
            raise AttributeValueError("static_shape=True needs static_alloc=True: what is fixed is the memory",
                                      operator="hybridize")
        for place in walk(self):
            module: Any = place.module
            module.__dict__["_compiled"] = Jitted(
                module._forward, static_alloc=static_alloc, static_shape=static_shape,
                inline_limit=0 if static_alloc else inline_limit, face=module.forward) if active else None
        return self

    def _forward(self, *args: Any, **kwargs: Any) -> Any:
        """What is compiled: forward, traced again when an attribute is replaced."""
        guarded(self._read_version)
        return self.forward(*args, **kwargs)

    # ---- hooks
    def register_forward_pre_hook(self, hook: Hook) -> HookHandle:
        """Call hook(module, arguments) before forward; the arguments that it gives, unless None, are used instead.

        Inside compiled code it runs when the code is traced, which is done again when a hook is added or removed.
        """
        return register(self, BEFORE, hook)

    def register_forward_hook(self, hook: Hook) -> HookHandle:
        """Call hook(module, arguments, result) after forward; what it gives, unless None, is the result instead.

        Inside compiled code it runs when the code is traced, which is done again when a hook is added or removed.
        """
        return register(self, AFTER, hook)

    # ---- the dynamic graph
    def requires_grad_(self, on: bool = True) -> Self:
        """Make the parameters variables of the dynamic graph: `loss.backward()` adds to their `grad`."""
        for parameter in self.parameters():
            parameter.requires_grad = on
        return self

    def gradients(self) -> dict[str, Tensor]:
        """What `backward` has added up, by the names of the parameters, zeros where it is nothing: what a minimiser's
        `update` takes."""
        return accumulated(self.named_parameters())

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self.parameters():
            if parameter.requires_grad:
                parameter.grad = None

    # ---- text
    def __repr__(self) -> str:
        return tree_text(self)

    def summary(self) -> str:
        """A table of modules, the shapes of their parameters and counts, as text."""
        return summary(self)
