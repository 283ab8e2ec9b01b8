"""Modules: parts of a network with their weights, composed by attributes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from nnc_core.base.dtype import accumulator, is_float
from nnc_core.base.errors import (
    AttributeValueError,
    DTypeError,
    Error,
    NotSupportedError,
    OperandError,
    UnknownNameError,
    UnknownShapeError,
)
from nnc_core.base.unknown_names import unknown_member
from nnc_core.nn.construction import Construction
from nnc_core.nn.hooks import AFTER, BEFORE, Hook, arguments_after, register, result_after
from nnc_core.nn.inference import watcher
from nnc_core.nn.networks.handle import has_handles, recorded
from nnc_core.nn.parameter import Parameter, Parameters, accumulated, read_as
from nnc_core.nn.spellings import OF_CALLS, OF_MODULES
from nnc_core.nn.text import summary, tree_text
from nnc_core.nn.tree import ModuleNode, cells_of, entries, note_change, walk
from nnc_core.nn.weights.freezing import chosen, trained
from nnc_core.nn.weights.unmatched import Unmatched, fitted
from nnc_core.symbol import show_line, user_line
from nnc_core.tracing.jit import Jitted
from nnc_core.type import admit_numpy
from nnc_core.values.argument_checks import FAILURES, misplaced, type_mismatch
from nnc_core.values.arguments import constructor
from nnc_core.values.cell import Cell
from nnc_core.values.hooks import HookHandle
from nnc_core.values.modes import always_evaluates, is_evaluating
from nnc_core.values.postponed import postponed
from nnc_core.values.results import ONE, results_of
from nnc_core.values.state import HostArray, load_state, save_state
from nnc_core.values.tensor import Tensor
from nnc_core.values.trace import guarded


def _is_internal(cls: type) -> bool:
    """Tell whether the class is nnc's own, whose annotations are checked."""
    return cls.__module__.partition(".")[0] == __name__.partition(".")[0]


class Module(ModuleNode):
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

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls) and _is_internal(cls):
            cls.__init__ = constructor(cls.__init__)  # type: ignore[method-assign]

    if not TYPE_CHECKING:  # constructors are checked by __init__
        def __new__(cls, *args: Any, **kwargs: Any) -> Self:
            """Keep the arguments, for files."""
            if cls.__init__ is object.__init__ and (args or kwargs):
                raise OperandError(f"{cls.__name__}() takes no arguments", line=show_line(user_line()),
                                   hint="leave inplace out: x = module(x)" if "inplace" in kwargs else None)
            made = object.__new__(cls)
            made.__dict__["_construction"] = Construction(args, kwargs)
            return made

    def constructor_arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments that make such a module again: those that the class was called with.

        Classes whose parts change afterwards say more.
        """
        known: Construction = self.__dict__["_construction"]
        return known.args, known.kwargs

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the result of the module."""
        raise NotSupportedError(f"{type(self).__name__} has no forward", hint="define forward(self, ...)")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """forward, with hooks and compiled where asked for; of handles a node of a network."""
        if has_handles(args) or (kwargs and has_handles(tuple(kwargs.values()))):
            return recorded(self, args, kwargs)
        guarded(self._read_version)
        if self._before_forward or self._after_forward:
            args = arguments_after(self, args)
            result = result_after(self, args, self._run(*args, **kwargs))
        else:
            result = self._run(*args, **kwargs)
        called = watcher.get()
        if called is not None:
            called(self, result)
        return result

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        try:
            if self._compiled is not None:
                return self._compiled(*args, **kwargs)
            return self.forward(*args, **kwargs)
        except UnknownShapeError as error:
            return self._postponed(error, args, kwargs)
        except FAILURES as error:
            told = isinstance(error, Error) and not isinstance(error, UnknownNameError)
            wrong = None if told or not _is_internal(type(self)) else self._misfit(args, kwargs)
            if wrong is not None:
                raise wrong.locate(operator=type(self).__name__, line=show_line(user_line())) from error
            if isinstance(error, Error):
                error.locate(operator=type(self).__name__, line=show_line(user_line()))
            raise

    def _postponed(self, error: UnknownShapeError, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The results of a call with symbols of unknown shape, for the weights that the module has now."""
        weights = {name: parameter.read() for name, parameter in self.named_parameters(frozen=None).items()}
        results = self.result_structure() or results_of(self.forward, args, kwargs) or ONE
        return postponed(error, _run_with, (self, weights, args, kwargs), {}, lambda *_: results, type(self).__name__)

    def result_structure(self) -> Any:
        """Give the structure of what `forward` gives, with ONE for each tensor; None where its annotation says it."""
        return None

    def _misfit(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> OperandError | None:
        """The error for what a call was given, or the constructor, that it does not take or that is of a wrong kind."""
        made: Construction = self.__dict__["_construction"]
        return (misplaced(self.forward, args, kwargs, OF_CALLS) or type_mismatch(self.forward, args, kwargs)
                or type_mismatch(type(self).__init__, (self, *made.args), made.kwargs))

    def functional_call(self, weights: Mapping[str, Tensor], *args: Any, **kwargs: Any) -> Any:
        """Call the module with these tensors, by name, in the places of its parameters; others stay."""
        mine = self.named_parameters(frozen=None)
        if weights.keys() - mine.keys():
            raise OperandError(f"{type(self).__name__} has no parameter {sorted(weights.keys() - mine.keys())[0]!r}",
                               hint=f"its parameters are {', '.join(mine) or 'none'}")
        with read_as({mine[name]: tensor for name, tensor in weights.items()}):
            return self(*args, **kwargs)

    # ---- attributes
    if not TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any:
            """An error for what is not there, with what to write instead of a name of PyTorch's."""
            raise unknown_member(self, name, OF_MODULES)

    def __setattr__(self, name: str, value: Any) -> None:
        old = self.__dict__.get(name)
        if isinstance(old, Cell) and not (value is None or isinstance(value, (Cell, ModuleNode))):
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
        note_change()

    def _read_version(self) -> int:
        return self._version

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles start without compiled code and without hooks."""
        return {name: x for name, x in vars(self).items() if name not in ("_compiled", BEFORE, AFTER)}

    # ---- parts
    def named_modules(self) -> dict[str, Module]:
        """The module itself, as "", and all its parts by name, each once; names are joined by dots."""
        return {place.path: place.module for place in walk(self) if isinstance(place.module, Module)}

    def modules(self) -> list[Module]:
        """The module itself and all its parts, each once."""
        return list(self.named_modules().values())

    def named_children(self) -> dict[str, Module]:
        """The parts that are attributes of this module, by name: "body", or "layers.0" where they are in a tuple."""
        return {name: x for name, x in entries(self) if isinstance(x, Module)}

    def children(self) -> list[Module]:
        """The parts that are attributes of this module, each once."""
        return list(dict.fromkeys(self.named_children().values()))

    # ---- state
    def cells(self) -> dict[str, Cell]:
        """Parameters and buffers by name, each once; names are joined by dots."""
        return cells_of(self)

    def named_parameters(self, frozen: bool | None = False) -> dict[str, Parameter]:
        """Parameters that are trained, by name; with frozen=True those that are not, with frozen=None all."""
        found = {name: c for name, c in self.cells().items() if isinstance(c, Parameter)}
        return found if frozen is None else trained(found, not frozen)

    def parameters(self) -> Parameters:
        """Parameters that are trained, as a list that knows their names."""
        return Parameters(self.named_parameters())

    def named_buffers(self) -> dict[str, Cell]:
        """State that is not trained, by name: random keys, running statistics."""
        return {name: c for name, c in self.cells().items() if not isinstance(c, Parameter)}

    def buffers(self) -> list[Cell]:
        """State that is not trained."""
        return list(self.named_buffers().values())

    def freeze(self, *patterns: str) -> Self:
        """Train parameters no longer: those whose names match one of the patterns ("encoder.*", "*.bias"), or all.

        A frozen parameter is not among `named_parameters()`, gets no gradient, and minimisers leave it as it is; it
        stays in `state_dict()`.  Running statistics and dropout follow `train` and `eval`, not this.
        """
        for parameter in chosen(self.named_parameters(frozen=None), patterns):
            parameter.frozen = True
        return self

    def unfreeze(self, *patterns: str) -> Self:
        """The opposite of `freeze`."""
        for parameter in chosen(self.named_parameters(frozen=None), patterns):
            parameter.frozen = False
        return self

    @property
    def is_trainable(self) -> bool:
        """True if there is a parameter that is not frozen."""
        return bool(self.named_parameters())

    def state_dict(self) -> dict[str, HostArray]:
        """Parameters and buffers as host arrays."""
        return save_state(self.cells())

    def load_state_dict(self, arrays: Mapping[str, Any], strict: bool = True) -> Unmatched:
        """Take over parameters and buffers; nothing changes unless all names, shapes and dtypes fit.

        With strict=False what only one side has is left alone, and named in the result.  Raises StateError for missing
        or unexpected names, ShapeError, DTypeError.
        """
        cells, taken, found = fitted(self.cells(), arrays, strict)
        load_state(cells, taken, f"the state of {type(self).__name__}")
        return found

    def to(self, device: Any = None, dtype: Any = None) -> Self:
        """Move all parameters and buffers to a device, and cast them as `astype` does; `module.to(nnc.float16)` too."""
        if isinstance(device, np.dtype) or (isinstance(device, type) and issubclass(device, np.generic)):
            device, dtype = dtype, device
        if dtype is not None:
            self.astype(dtype)
        if device is not None:
            for cell in self.cells().values():
                cell.move(device)
        return self

    def astype(self, dtype: Any) -> Self:
        """Cast parameters of real numbers to a floating-point dtype, and buffers of such to the dtype in which sums of
        it are formed (float32 for 16 bits); compiled code is compiled again.

        A minimiser keeps the dtype that it was made with: make it afterwards.
        """
        wanted = admit_numpy(dtype)
        if not is_float(wanted):
            raise DTypeError(f"{wanted} is no floating-point dtype", operator=type(self).__name__,
                             hint='"float16", "bfloat16", "float32" or "float64"')
        for cell in self.cells().values():
            if is_float(cell.spec.dtype):
                cell.cast(wanted if isinstance(cell, Parameter) else accumulator(wanted))
        return self

    # ---- training and evaluation
    @property
    def training(self) -> bool:
        """True while dropout and the like are active; not so within `nnc.evaluating()`.  Compiled code is traced for
        both."""
        return not always_evaluates() and guarded(self._read_training)

    def _read_training(self) -> bool:
        return self._training and not is_evaluating()

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
        """Run forward in compiled code, which is traced again when an attribute is replaced."""
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
        """The gradients that `backward` has added up, by the names of the parameters, zeros where there are none,
        for a minimiser's `update`."""
        return accumulated(self.named_parameters())

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self.parameters():
            if parameter.requires_grad:
                parameter.grad = None

    # ---- text
    def __repr__(self) -> str:
        return tree_text(self)

    def summary(self, *inputs: Any) -> str:
        """A table of modules, the shapes of their parameters and counts, as text.

        With inputs, each a shape such as ("batch", 28, 28, 1), an `nnc.TensorSpec` or a tensor, also what each module
        gives for them; forward runs once on symbols, nothing is computed.
        """
        return summary(self, inputs)


def _run_with(module: Module, weights: Mapping[str, Tensor], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    mine = module.named_parameters(frozen=None)
    with read_as({mine[name]: tensor for name, tensor in weights.items()}):
        return module._run(*args, **kwargs)
