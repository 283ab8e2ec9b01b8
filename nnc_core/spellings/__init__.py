"""Names of NumPy, PyTorch and JAX: those that mean the same are taken, others are answered with ours.

`dir(nnc)` and the documents have one name for each thing; a name from elsewhere is looked up when it is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from nnc_core import fft, linalg
from nnc_core.base.errors import UnknownNameError
from nnc_core.base.unknown_names import answers
from nnc_core.base.unknown_names import unknown_name as unknown
from nnc_core.functions import movement, public
from nnc_core.nn.spellings import OF_PARAMETERS
from nnc_core.random.generator import Generator
from nnc_core.spellings.elsewhere import ELSEWHERE, OF_GENERATORS, OF_UPDATES
from nnc_core.spellings.tables import ADVICE, ALIASES, DTYPES, MAKERS, OF_TENSORS
from nnc_core.values.arguments import ArrayLike, located
from nnc_core.values.tensor import Tensor


def taken(name: str) -> Any:
    """The function or dtype of ours that a name from elsewhere means; None if there is none."""
    if name in ALIASES:
        return getattr(public, ALIASES[name])
    if name in MAKERS:
        return array
    return transpose if name == "transpose" else DTYPES.get(name)


def function_called(name: str, space: str = "") -> Callable[..., Any] | None:
    """The public function of a name, here or elsewhere, in a name space: "", "linalg" or "fft"."""
    module = {"linalg": linalg, "fft": fft}.get(space, public)
    found = vars(module).get(name) if space == "" or name in module.__all__ else None
    return found if found is not None else taken(name) if space == "" else None


@located
def array(x: Any, /, dtype: Any = None, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor of what is given, as `asarray` makes it."""
    return public.asarray(x, dtype, device=device, copy=copy)


@located
def transpose(x: ArrayLike, /, axes: Any = None) -> Tensor:
    """All axes reversed, or permuted as given, as NumPy has it."""
    v = public.asarray(x)
    return movement.permute_dims(v, tuple(reversed(range(v.ndim))) if axes is None else axes)


def unknown_name(name: str, package: ModuleType) -> UnknownNameError:
    """The error for a name that the package has not, with what to write instead."""
    hint = ADVICE.get(name) or (f"nnc.linalg.{name}" if name in linalg.__all__ else ELSEWHERE.get(name))
    if hint is None and name[-1:] == "_" and callable(function_called(name[:-1])):
        hint = f"x = nnc.{name[:-1]}(x, ...)"
    return unknown(f"module {package.__name__!r} has no attribute {name!r}", name, package, hint)


def advise(module: ModuleType, advice: Mapping[str, str]) -> None:
    """Answer names that a module has not: by this advice, or with a function of the main name space."""
    setattr(module, "__getattr__", answers(module.__name__, advice, _main_function))  # noqa: B010


def _main_function(name: str) -> str | None:
    return f"nnc.{ALIASES.get(name, name)}" if name[:1] != "_" and callable(function_called(name)) else None


def unknown_distribution(generator: Generator, name: str) -> Any:
    """Raise the error for an attribute that generators have not; `Generator.__getattr__`."""
    raise unknown(f"'Generator' object has no attribute {name!r}", name, generator, OF_GENERATORS.get(name))


def unknown_update(at_key: Any, name: str) -> Any:
    """Raise the error for an attribute that `x.at[key]` has not; `AtKey.__getattr__`."""
    raise unknown(f"'x.at[key]' has no attribute {name!r}", name, at_key, OF_UPDATES.get(name))


def unknown_attribute(of: Any, name: str) -> Any:
    """Raise the error for an attribute that tensors, or what is read as one, have not; `Tensor.__getattr__`."""
    hint = None
    if name[:1] != "_":
        hint = None if isinstance(of, Tensor) else OF_PARAMETERS.get(name)
        hint = hint or OF_TENSORS.get(name) or _function_of(name) or ADVICE.get(name.removesuffix("_"))
    raise unknown(f"{type(of).__name__!r} object has no attribute {name!r}", name, of, hint)


def _function_of(name: str) -> str | None:
    """The function that takes the place of a method: of `x.exp()`, of `x.det()`, and of `x.exp_()`, which writes x."""
    if callable(function_called(name)):
        return f"nnc.{ALIASES.get(name, name)}(x, ...)"
    if name in linalg.__all__:
        return f"nnc.linalg.{name}(x, ...)"
    return f"x[...] = nnc.{name[:-1]}(x, ...)" if name[-1:] == "_" and callable(function_called(name[:-1])) else None
