"""Examines one plugin in this very process, which may die of it: the other side of `nnc_plugins.child`."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nnc_plugins.hookspecs import DeviceOffer
from nnc_plugins.manager import Manager
from nnc_plugins.records import PluginRecord, PluginWarning, one_line

if TYPE_CHECKING:
    from nnc_core.base.loopnest import LoopNest
    from nnc_core.device import Device
    from nnc_plugins.child import Extent

COUNT = 1000


class Report:
    """Facts, one JSON object a line; each is in the file before the next step begins, so a crash loses
    none."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")

    def tell(self, **facts: Any) -> None:
        self._file.write(json.dumps(facts) + "\n")
        self._file.flush()


def examine(name: str, report: Report, options: dict[str, Any], extent: Extent | None = None) -> None:
    """Import the plugin, list its devices, use each of them, ask for its own diagnosis; less of it for an `extent`."""
    warnings.simplefilter("ignore", PluginWarning)  # what they say is in the record
    report.tell(step="being imported")
    manager = Manager(options, only=[name]).discover()
    record = max(manager.records, key=lambda r: r.usable, default=None)
    if record is None:
        return report.tell(state="not found", detail=f"no plugin named {name!r} is installed", end=True)
    report.tell(source=record.source, step="adding code and rewrites")
    _extend(manager)
    offers = {}
    if extent != "import":
        report.tell(step="listing its devices")
        offers = manager.offers()
    report.tell(state=record.state, detail=record.remarks)
    if extent is None:
        for offer in offers.values():
            report.tell(device=_use(offer, report))
        report.tell(step="diagnosing itself")
        report.tell(diagnosis=_diagnosis(manager, record))
    report.tell(step="shutting down", end=True)


def _extend(manager: Manager) -> None:
    """Ask the plugin for what it adds besides devices, as core does; mistakes are in the record."""
    from nnc_core.device import Registry
    from nnc_core.extensions import extend

    extend(manager, Registry())


def _diagnosis(manager: Manager, record: PluginRecord) -> list[str]:
    answer = manager.ask(record, "nnc_diagnose", options=manager.options)
    if answer is None:
        return [note for note in record.notes if note.startswith("nnc_diagnose")]
    lines = answer[0]
    if isinstance(lines, str) or not isinstance(lines, Iterable):
        return [f"nnc_diagnose: gave {type(lines).__name__}, expected lines of text"]
    return [str(line) for line in lines]


def _use(offer: DeviceOffer, report: Report) -> dict[str, Any]:
    """Open a device, move numbers through it and run kernels built on the spot."""
    facts: dict[str, Any] = {"id": offer.id, "describe": str(offer.describe), "testing": bool(offer.testing),
                             "uid": str(offer.uid)}
    try:
        report.tell(step=f"opening {offer.id}")
        device = offer.open()
        try:
            facts["spec"] = _json_spec(device)
            fault = _work(device, report) if device.spec.id == offer.id else f"calls itself {device.spec.id}"
        finally:
            report.tell(step=f"closing {offer.id}")
            device.close()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # panics of native bindings too
        fault = one_line(error)
    return {**facts, "state": "failed" if fault else "ok", "detail": fault}


def _json_spec(device: Device) -> dict[str, Any]:
    return {key: sorted(value) if isinstance(value, frozenset) else value
            for key, value in asdict(device.spec).items()}


def _work(device: Device, report: Report) -> str:
    """The fault of the device; "" if there is none."""
    import numpy as np

    if device.spec.kind == "null":  # plans and counts; there is nothing to compare
        return ""
    numbers = np.arange(COUNT, dtype=np.float32)
    result = np.full_like(numbers, np.nan)

    report.tell(step=f"copying to and from {device.spec.id}")
    device.download(_sent(device, numbers), result).wait()
    if not np.array_equal(result, numbers):
        return f"copied {COUNT} floats to the device and back; {_differences(result, numbers)}"

    for task in _tasks():
        report.tell(step=f"building a kernel for {device.spec.id}")
        buffers = [_sent(device, x) for x in (*task.inputs, np.full_like(task.expected, -1))]
        launch = device.compile(task.nest).bind(buffers)
        report.tell(step=f"running a kernel on {device.spec.id}")
        launch()
        device.default_stream.synchronize()
        result = np.full_like(task.expected, -1)
        device.download(buffers[-1], result).wait()
        if not np.array_equal(result, task.expected):
            return f"{task.done} on the device; {_differences(result, task.expected)}"
    return ""


def _sent(device: Device, array: Any) -> Any:
    buffer = device.allocate(array.nbytes)
    device.upload(array, buffer).wait()
    return buffer


def _differences(given: Any, expected: Any) -> str:
    wrong = (given != expected).nonzero()[0]
    first = wrong[0]
    return f"{len(wrong)} are wrong, the first at {first}: {given[first]}, expected {expected[first]}"


class Task(NamedTuple):
    """A loop nest with numbers to run it on, whose results are exact in any order."""

    done: str
    nest: LoopNest
    inputs: tuple[Any, ...]
    expected: Any


def _tasks() -> Iterator[Task]:
    """Kernels that differ in kind: point by point, a reduction whose sizes no tile divides, a gather."""
    import numpy as np

    floats = np.arange(COUNT, dtype=np.float32)
    yield _task(f"doubled {COUNT} floats", "multiply", (floats, np.full_like(floats, 2)), (), floats + floats)
    rows = (np.arange(37 * 1021) % 97).astype(np.float32).reshape(37, 1021)
    yield _task("added the 1021 numbers of each of 37 rows", "sum", (rows,), ((1,), False), rows.sum(1))
    indices = np.arange(257, dtype=np.int32) * 7 % 101
    yield _task("took 257 of 101 floats", "take", (floats[:101], indices), (0, 0), floats[indices])


def _task(done: str, name: str, inputs: tuple[Any, ...], attributes: tuple[Any, ...], expected: Any) -> Task:
    from nnc_core.base.command import Command
    from nnc_core.base.layout import Layout
    from nnc_core.engine.candidates import loop_nest
    from nnc_core.operator import OPERATORS

    layouts = [Layout.packed(x.shape, x.dtype) for x in (*inputs, expected)]
    nest = loop_nest(OPERATORS[name], Command(name, attributes, tuple(layouts[:-1]), (layouts[-1],)))
    assert nest is not None
    return Task(done, nest, inputs, expected)


def main(request: str) -> None:
    """`request` is JSON: name, options, and the path of the report."""
    asked = json.loads(request)
    examine(asked["name"], Report(Path(asked["report"])), asked["options"], asked["extent"])
