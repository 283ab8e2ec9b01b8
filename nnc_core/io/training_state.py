"""A training run on disk: all that it needs to go on bit for bit, in one file.

That is weights and buffers, the minimiser's state, class and settings, random keys (the default
generator's too), the place in the data, and by which backends each command ran, so that the resumed run takes the same
code even where a plugin has been added since.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from nnc_core.base.config import config
from nnc_core.base.errors import (
    AttributeValueError,
    FileFormatError,
    NotSupportedError,
    OperandError,
    ResumeWarning,
    StateError,
)
from nnc_core.base.fields import RESTORE
from nnc_core.io.checkpoint import load_arrays, save_arrays
from nnc_core.io.training_header import KEY, TrainingHeader, header_of
from nnc_core.random.generator import Generator, default_generator
from nnc_core.stacks import Stack
from nnc_core.symbol import users_frame
from nnc_core.values.arguments import located
from nnc_core.values.cell import Cell
from nnc_core.values.state import load_state, save_state

if TYPE_CHECKING:
    from nnc_core.nn import Module
    from nnc_core.optim import Minimiser

Path = str | os.PathLike[str]
Generators = Mapping[str, Generator]
_DEFAULT = "random/the default generator"
SHOWN = 3
"""Obstacles that a message names."""


class SavedProgress(Protocol):
    """A position in a run, such as a `DataOrder`, whose state JSON can hold."""

    def state_dict(self) -> Mapping[str, Any]: ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...


@located
def save_training_state(path: Path, module: Module, minimiser: Minimiser, generators: Generators | None = None,
                        metadata: Mapping[str, str] | None = None, *, progress: SavedProgress | None = None) -> None:
    """Write all that a run needs to go on bit for bit; an old file stays until the new one is whole.

    `generators` are those that are no part of the module, by names of the caller's choice (the default generator is
    saved unasked); `progress` is the run's `DataOrder`, or anything else with the same two methods; `metadata` is text.
    """
    cells = _cells(module, minimiser, generators)
    run = TrainingHeader(minimiser.configuration(), minimiser.numbers(),
                         None if progress is None else dict(progress.state_dict()),
                         [_describe(stack) for stack in _stacks(cells)])
    cells[_DEFAULT] = default_generator().key  # wherever it is: it goes to where numbers are drawn next
    save_arrays(path, save_state(cells), {**(metadata or {}), KEY: run.text()})


@located
def load_training_state(path: Path, module: Module, minimiser: Minimiser, generators: Generators | None = None, *,
                        progress: SavedProgress | None = None, exact: bool | None = None) -> dict[str, str]:
    """Put a saved run into a module, a minimiser, generators and a place in the data of the same kinds; the metadata.

    Where the run cannot go on bit for bit, because it is on another device or a backend
    is missing, one ResumeWarning says why; with `exact=True` (the default under `config.deterministic`) that is an
    error, and with `exact=False` backends are chosen anew and nothing is said.

    The minimiser is of the class and the settings of the run; those that are numbers are taken over.  What is to
    change is set after loading.

    Nothing changes unless everything fits.  Raises StateError for names that are missing or unexpected and for another
    minimiser, ShapeError, DTypeError, NotSupportedError for `exact`, and what `load_arrays` raises for files that are
    missing or damaged.
    """
    what = f"the training state in {os.fspath(path)!r}"
    arrays, metadata = load_arrays(path)
    run = header_of(metadata, what)
    if progress is not None and run.progress is None:
        raise StateError(f"{what} has no place in the data", hint="save it with progress=...")
    cells = _cells(module, minimiser, generators)
    run.check_minimiser(minimiser.configuration(), what)
    matching = _matching(run, cells)
    strict = config.deterministic if exact is None else exact
    reasons = [] if exact is False else _obstacles(run, cells)
    cells[_DEFAULT] = default_generator().key
    if reasons and strict:
        raise NotSupportedError(f"{what} cannot go on bit for bit: {'; '.join(reasons)}",
                                hint="load it with exact=False to go on by other code")
    with _all_or_nothing(minimiser, progress):
        _take_numbers(minimiser, run.settings, what)
        if progress is not None and run.progress is not None:
            progress.load_state_dict(run.progress)
        load_state(cells, arrays, what)
    for stack, saved in matching:
        stack.engine.decider.pin({} if exact is False else saved["choices"], strict, warned=bool(reasons))
    if reasons:
        warnings.warn(f"{what}: {'; '.join(reasons)}; the run goes on, not bit for bit", ResumeWarning,
                      stacklevel=users_frame())
    return metadata


@contextmanager
def _all_or_nothing(minimiser: Minimiser, progress: SavedProgress | None) -> Iterator[None]:
    """If the block fails, the settings and the place in the data are as they were."""
    numbers, place = minimiser.numbers(), None if progress is None else dict(progress.state_dict())
    try:
        yield
    except BaseException:
        minimiser.take_numbers(numbers)
        if progress is not None and place is not None:
            progress.load_state_dict(place)
        raise


def _take_numbers(minimiser: Minimiser, saved: Mapping[str, float], what: str) -> None:
    if saved.keys() != minimiser.numbers().keys():
        raise FileFormatError(f"{what} has the settings {', '.join(saved) or 'none'}, expected "
                              f"{', '.join(minimiser.numbers()) or 'none'}", hint=RESTORE)
    try:
        minimiser.take_numbers(saved)
    except AttributeValueError as error:
        raise FileFormatError(f"{what}: {error.message}", hint=RESTORE) from error


def _cells(module: Module, minimiser: Minimiser, generators: Generators | None) -> dict[str, Cell]:
    for what, x, kind in (("module", module, "nn.Module"), ("minimiser", minimiser, "optim.Minimiser")):
        if not callable(getattr(x, "cells", None)):
            raise OperandError(f"{what} is {type(x).__name__}, which has no state", hint=f"give an {kind}")
    keys = {name: g.key for name, g in (generators or {}).items()}
    parts = {"module": module.cells(), "minimiser": minimiser.cells(), "random": keys}
    return {f"{part}/{name}": cell for part, cells in parts.items() for name, cell in cells.items()}


def _stacks(cells: Mapping[str, Cell]) -> list[Stack]:
    return list({id(c._value.stack): c._value.stack for c in cells.values()}.values())


def _describe(stack: Stack) -> dict[str, Any]:
    """A device, and by what its commands ran."""
    spec = stack.device.spec
    return {"id": spec.id, "name": spec.name, "driver": spec.driver, "choices": stack.engine.decider.decisions()}


def _matching(run: TrainingHeader, cells: Mapping[str, Cell]) -> list[tuple[Stack, Mapping[str, Any]]]:
    """The stacks of the cells that the run was on, with what is saved of each."""
    saved = {d["id"]: d for d in run.devices}
    return [(s, saved[s.device.spec.id]) for s in _stacks(cells) if s.device.spec.id in saved]


def _obstacles(run: TrainingHeader, cells: Mapping[str, Cell]) -> list[str]:
    """Reasons why the run cannot go on bit for bit: differences between its devices and backends and those here."""
    if not run.devices:
        return ["it says nothing of devices"]
    matching = _matching(run, cells)
    elsewhere = {s.device.spec.id for s in _stacks(cells)} - {d["id"] for _, d in matching}
    there = ", ".join(d["id"] for d in run.devices)
    reasons = [f"it was on {there}, it is now on {id}" for id in sorted(elsewhere)]
    for stack, saved in matching:
        spec = stack.device.spec
        if (saved["name"], saved["driver"]) != (spec.name, spec.driver):
            reasons.append(f"{spec.id} was {saved['name']} ({saved['driver']}), it is now {spec.name} ({spec.driver})")
        found = stack.engine.decider.obstacles(saved["choices"])
        reasons += found[:SHOWN] + ([f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else [])
    return reasons
