"""Weights kept as codes of a few bits and palettes, and read as the arrays that they stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, TypeVar

from nnc_core.base.dtype import DType, is_float, uint8
from nnc_core.base.errors import Error
from nnc_core.device import DeviceSpec
from nnc_core.functions.creation import zeros
from nnc_core.functions.palettes import Palettised, depalettise
from nnc_core.functions.palettes import palettise as palettise_array
from nnc_core.nn.module import Module
from nnc_core.nn.parameter import Parameter
from nnc_core.nn.tree import walk
from nnc_core.nn.weights.freezing import chosen
from nnc_core.shape.palettes import block_count, check_bits, check_block, code_bytes
from nnc_core.type import TensorSpec, admit_numpy, default_float
from nnc_core.values.arguments import located
from nnc_core.values.cell import Cell
from nnc_core.values.modes import stack_named, use_device
from nnc_core.values.reading import ReadAsTensor
from nnc_core.values.tensor import Tensor

M = TypeVar("M", bound=Module)


class PalettisedWeight(ReadAsTensor, Module):
    """In the place of a Parameter: `read()` gives an array of that shape and dtype, made of codes and a palette.

    codes (bytes,) uint8, a buffer; palette (blocks, 2**bits), a Parameter that is frozen at first: with `unfreeze` it
    is trained, for the result is linear in it.  Both are zero until they are written.
    """

    def __init__(self, shape: tuple[int, ...], bits: int, block_size: int, dtype: Any = None,
                 palette_dtype: Any = None) -> None:
        check_bits(bits)
        check_block(block_size)
        self.bits, self.block_size = bits, block_size
        self.spec = TensorSpec(tuple(shape), default_float() if dtype is None else admit_numpy(dtype))
        count, entries = prod(shape), self.spec.dtype if palette_dtype is None else admit_numpy(palette_dtype)
        self.codes = Cell(zeros(code_bytes(count, bits), dtype=uint8))
        self.palette = Parameter(zeros((block_count(count, block_size), 2**bits), dtype=entries))
        self.palette.frozen = True

    @property
    def device(self) -> DeviceSpec:
        return self.codes.device

    def forward(self) -> Tensor:
        """The weight, depalettised where it is."""
        held = depalettise(self.codes.read(), self.palette.read(), bits=self.bits, shape=self.spec.static_shape,
                           block_size=self.block_size)
        return held if held.dtype == self.spec.dtype else held.astype(self.spec.dtype)

    def read(self) -> Tensor:
        """The array that is depalettised, as a Parameter gives its own."""
        return self.forward()

    def describe(self) -> str:
        return f"{self.spec}, bits={self.bits}, block_size={self.block_size}"


@located
def palettise(module: M, bits: int = 8, *, block_size: int | None = None, dtype: Any = None,
              only: str | Sequence[str] | None = None) -> M:
    """Keep weights as codes of `bits` bits, 4 to 8, and palettes, as `nnc.palettise` makes them; gives the module.

    `only`: patterns of names of parameters ("encoder.*", "*.weight").  Without, those of two axes or more, which are
    the matrices, kernels and tables, whose codes and palette take less memory than they.  A weight that is shared
    stays shared.  What was one name in `state_dict()` is two then, NAME.codes and NAME.palette, the latter frozen;
    modules read an array of the same shape and dtype as before.  `block_size` and `dtype` are those of `nnc.palettise`.

    Nothing changes unless every weight can be palettised.  Raises OperandError for a pattern that matches no parameter,
    and what `nnc.palettise` raises, naming the parameter.
    """
    check_bits(bits)
    if block_size is not None:
        check_block(block_size)
    given = _parameters(module)
    if only is None:
        wanted = [p for p in given.values() if _is_large(p, bits, block_size, dtype)]
    else:
        wanted = chosen(given, (only,) if isinstance(only, str) else tuple(only) or ("no pattern",))
    names = {p: name for name, p in given.items()}
    replace_parameters(module, {p: _palettised(names[p], p, bits, block_size, dtype) for p in wanted})
    return module


def _parameters(module: Module) -> dict[str, Parameter]:
    """All of them but palettes."""
    palettes = {place.module.palette for place in walk(module) if isinstance(place.module, PalettisedWeight)}
    return {name: p for name, p in module.named_parameters(frozen=None).items() if p not in palettes}


def _is_large(p: Parameter, bits: int, block_size: int | None, dtype: Any) -> bool:
    """Tell whether a weight gets smaller by it, unless it is asked for by name."""
    if p.spec.ndim < 2 or not is_float(p.spec.dtype):
        return False
    held: DType = p.spec.dtype if dtype is None else admit_numpy(dtype)
    count = prod(p.spec.static_shape)
    blocks = 1 if block_size is None else block_count(count, block_size)
    nbytes: int = code_bytes(count, bits) + blocks * 2**bits * held.itemsize
    return nbytes < p.spec.nbytes


def _palettised(name: str, p: Parameter, bits: int, block_size: int | None, dtype: Any) -> PalettisedWeight:
    try:
        found: Palettised = palettise_array(p.read().detach(), bits, block_size, dtype)
    except Error as error:
        raise type(error)(f"parameter {name!r}: {error.message}", operator="palettise", hint=error.hint) from error
    with use_device(stack_named(p.device)):
        made = PalettisedWeight(found.shape, bits, found.block_size, p.spec.dtype, found.palette.dtype)
    made.codes.write(found.codes)
    made.palette.write(found.palette)
    return made


def replace_parameters(root: Module, by: Mapping[Parameter, Module]) -> None:
    """Put modules wherever these parameters are attributes, or items of tuples that are."""
    for place in list(walk(root)):
        for name, x in list(vars(place.module).items()):
            changed = _with(x, by)
            if changed is not x:
                setattr(place.module, name, changed)


def _with(x: Any, by: Mapping[Parameter, Module]) -> Any:
    if isinstance(x, Parameter):
        return by.get(x, x)
    if not isinstance(x, tuple):
        return x
    parts = tuple([_with(part, by) for part in x])
    if all(a is b for a, b in zip(parts, x, strict=True)):
        return x
    return x._make(parts) if hasattr(x, "_make") else parts  # a named tuple stays one
