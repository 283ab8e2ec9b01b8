"""Weights under the names and in the layouts of PyTorch's `state_dict`, both ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nnc_core.base.errors import NotSupportedError, OperandError, ShapeError, StateError
from nnc_core.nn.layers.linear import Linear
from nnc_core.nn.module import Module
from nnc_core.nn.tree import ModuleNode, entries, join, walk
from nnc_core.nn.weights.palettised import PalettisedWeight
from nnc_core.nn.weights.pytorch_rules import Array, Entry, flattened_linear, rule_of, same
from nnc_core.nn.weights.unmatched import Unmatched
from nnc_core.random.generator import Generator
from nnc_core.values.arguments import located
from nnc_core.values.cell import Cell
from nnc_core.values.state import load_state, save_state
from nnc_core.values.tensor import Tensor

Rename = Callable[[str], str]
Shapes = Mapping[str, Sequence[int]]
_IGNORED = "num_batches_tracked"


class Weight(NamedTuple):
    """An array of PyTorch's by its whole name, with the cells that it is made of."""

    name: str
    entry: Entry
    cells: tuple[Cell, ...]
    paths: tuple[str, ...]


@located
def to_pytorch_state(module: Module, *, prefix: str = "", rename: Rename | None = None,
                     flattened: Shapes | None = None) -> dict[str, Array]:
    """Parameters and buffers as host arrays, called and laid out as in the `state_dict` of the same network in PyTorch.

    Linear weights are (out, in), convolutions' (out, in, *sizes), recurrent ones `weight_ih_l0` and so on, attention's
    `in_proj_weight`; random keys are left out.  Submodules are called as they are here, but for those of transformer
    layers; `rename` turns names so made into others, and `prefix` stands before them.  A parameter that is shared is
    there under each of its names.

    A linear layer on a flattened image takes channels last here and first in PyTorch: `flattened`, such as
    {"head": (4, 4, 16)}, names such layers with the (height, width, channels) of the image.

    Raises NotSupportedError for modules that PyTorch has not.
    """
    return {weight.name: np.ascontiguousarray(weight.entry.export(_held(weight)))
            for weight in _weights(module, prefix, rename, flattened)}


@located
def from_pytorch_state(module: Module, arrays: Mapping[str, Any], *, prefix: str = "", rename: Rename | None = None,
                       flattened: Shapes | None = None, strict: bool = True) -> Unmatched:
    """Take over arrays that are called and laid out as `to_pytorch_state` has them; the options are the same.

    Arrays are NumPy's, tensors, or anything that NumPy makes arrays of.  Names without the prefix, and
    `num_batches_tracked`, are nobody's.  Nothing changes unless everything fits; with strict=False what only one side
    has is left alone, and named in the result.  Raises StateError with all names that are missing or unexpected, or
    where shared parameters should differ, ShapeError and DTypeError for arrays that do not fit.
    """
    wanted = _weights(module, prefix, rename, flattened)
    given = {name: x for name, x in arrays.items() if name.startswith(prefix) and not name.endswith(_IGNORED)}
    present = [w for w in wanted if w.name in given]
    covered = {path for w in present for path in w.paths}
    missing = tuple([w.name for w in wanted if w.name not in given and not covered.issuperset(w.paths)])
    unexpected = tuple([name for name in given if name not in {w.name for w in wanted}])
    what = f"a state of PyTorch for {type(module).__name__}"
    if strict and (missing or unexpected):
        said = [f"missing {', '.join(missing)}"] * bool(missing)
        said += [f"unexpected {', '.join(unexpected)}"] * bool(unexpected)
        raise StateError(f"{what} does not fit: {'; '.join(said)}",
                         hint="give rename= or prefix= if names differ, strict=False to leave these alone")
    cells: dict[str, Cell] = {}
    taken: dict[str, Array] = {}
    for weight in present:
        parts = weight.entry.take(_fitting(weight, given[weight.name], what))
        for path, cell, part in zip(weight.paths, weight.cells, parts, strict=True):
            if path in taken and not np.array_equal(taken[path], part, equal_nan=True):
                raise StateError(f"{what}: {weight.name!r} differs from what else is {path!r}, which is shared here")
            cells[path], taken[path] = cell, np.ascontiguousarray(part)
    load_state(cells, taken, what)
    return Unmatched(missing, unexpected)


def _held(weight: Weight) -> list[Array]:
    return list(save_state(dict(zip(weight.paths, weight.cells, strict=True))).values())


def _fitting(weight: Weight, x: Any, what: str) -> Array:
    array = x.numpy() if isinstance(x, Tensor) else np.asarray(x)
    shapes = [np.broadcast_to(np.float32(0), cell.spec.static_shape) for cell in weight.cells]
    expected = weight.entry.export(shapes).shape
    if array.shape != expected:
        raise ShapeError(f"{what}: {weight.name!r} has shape {array.shape}, expected {expected} for "
                         f"{' and '.join(map(repr, weight.paths))}")
    return array


# ---- the tree
def _weights(module: Module, prefix: str, rename: Rename | None, flattened: Shapes | None) -> list[Weight]:
    """Every place of every parameter and buffer; a shared one is known by its first path."""
    known = dict(flattened or {})
    coded = next((p.path for p in walk(module) if isinstance(p.module, PalettisedWeight)), None)
    if coded is not None:
        raise NotSupportedError(f"{coded!r} of {type(module).__name__} is palettised, which PyTorch's states are not",
                                hint="translate before nn.palettise, or read it: weight.read()")
    first: dict[Cell, str] = {}
    found = []
    for entry, theirs, cells, paths in _walked(module, known):
        name = join(theirs, entry.theirs)
        own = tuple([first.setdefault(cell, path) for cell, path in zip(cells, paths, strict=True)])
        found.append(Weight(prefix + (name if rename is None else rename(name)), entry, cells, own))
    if known:
        raise OperandError(f"{next(iter(known))!r} of `flattened` is no nn.Linear of {type(module).__name__}")
    return found


Found = tuple[Entry, str, tuple[Cell, ...], tuple[str, ...]]


def _walked(root: Module, flattened: dict[str, Sequence[int]]) -> Iterator[Found]:
    """Entries with their place there and here, shared modules at each of their places."""
    waiting: list[tuple[Any, str, str, tuple[ModuleNode, ...]]] = [(root, "", "", ())]
    while waiting:
        module, path, theirs, above = waiting.pop()
        rule = rule_of(module)
        cells = _cells(module, rule.whole)
        shape = flattened.pop(path, None) if isinstance(module, Linear) else None
        named = rule.entries(module) if shape is None else flattened_linear(shape)
        for entry in named:
            if all(name in cells for name in entry.ours):
                yield entry, theirs, tuple([cells[n] for n in entry.ours]), tuple([join(path, n) for n in entry.ours])
        spoken = {name for entry in named for name in entry.ours}
        for name, cell in cells.items():
            if name not in spoken:
                yield same(name, name), theirs, (cell,), (join(path, name),)
        if not rule.whole:
            inner = [(x, join(path, name), join(theirs, rule.children.get(name, name)), (*above, module))
                     for name, x in entries(module) if isinstance(x, ModuleNode) and x is not module and x not in above]
            waiting.extend(reversed(inner))


def _cells(module: Any, whole: bool) -> dict[str, Cell]:
    """Parameters and buffers of the module itself, or with those of its parts; without random keys."""
    found: dict[str, Cell] = {}
    waiting: list[tuple[Any, str]] = [(module, "")]
    while waiting:
        owner, path = waiting.pop()
        keys = {id(x.key) for x in vars(owner).values() if isinstance(x, Generator)}
        for name, x in entries(owner):
            if isinstance(x, Cell) and id(x) not in keys:
                found[join(path, name)] = x
            elif isinstance(x, ModuleNode) and whole:
                waiting.append((x, join(path, name)))
    return found
