"""Examines one plugin in this very process, which may die of it: the child's side of `nnc_plugins.doctor`."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nnc_plugins.hookspecs import DeviceOffer
from nnc_plugins.manager import Manager
from nnc_plugins.records import PluginRecord, PluginWarning, one_line

if TYPE_CHECKING:
    from nnc_core.base.loopnest import LoopNest
    from nnc_core.device import Device

COUNT = 1000


class Report:
    """Facts, one JSON object a line; each is in the file before the next step begins, so a crash loses
    none."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")

    def tell(self, **facts: Any) -> None:
        self._file.write(json.dumps(facts) + "\n")
        self._file.flush()


def examine(name: str, report: Report, options: dict[str, Any]) -> None:
    """Import the plugin, list its devices, use each of them, ask for its own diagnosis."""
    warnings.simplefilter("ignore", PluginWarning)  # what they say is in the record
    report.tell(step="being imported")
    manager = Manager(options, only=[name]).discover()
    record = max(manager.records, key=lambda r: r.usable, default=None)
    if record is None:
        return report.tell(state="not found", detail=f"no plugin named {name!r} is installed", end=True)
    report.tell(source=record.source, step="listing its devices")
    offers = _offers(manager)
    report.tell(state=record.state, detail=record.remarks)
    for offer in offers.values():
        report.tell(device=_use(offer, report))
    report.tell(step="diagnosing itself")
    report.tell(diagnosis=_diagnosis(manager, record))
    report.tell(step="shutting down", end=True)


def _offers(manager: Manager) -> dict[str, DeviceOffer]:
    """The devices that the plugin offers, asked for with its other hooks as core does; mistakes are in the record."""
    from nnc_core.device import Registry
    from nnc_core.extensions import extend

    extend(manager, Registry())
    return manager.offers()


def _diagnosis(manager: Manager, record: PluginRecord) -> list[str]:
    answer = manager.ask(record, "nnc_diagnose", options=manager.options)
    if answer is None:
        return [note for note in record.notes if note.startswith("nnc_diagnose")]
    lines = answer[0]
    if isinstance(lines, str) or not isinstance(lines, Iterable):
        return [f"nnc_diagnose: gave {type(lines).__name__}, expected lines of text"]
    return [str(line) for line in lines]


def _use(offer: DeviceOffer, report: Report) -> dict[str, Any]:
    """Open a device, move numbers through it and run a kernel built on the spot."""
    facts: dict[str, Any] = {"id": offer.id, "describe": str(offer.describe), "testing": bool(offer.testing),
                             "uid": str(offer.uid)}
    try:
        report.tell(step=f"opening {offer.id}")
        device = offer.open()
        try:
            facts["spec"] = _json_spec(device)
            fault = _work(device, report)
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
    source, target = device.allocate(numbers.nbytes), device.allocate(numbers.nbytes)

    report.tell(step=f"copying to and from {device.spec.id}")
    device.upload(numbers, source).wait()
    device.download(source, result).wait()
    if not np.array_equal(result, numbers):
        return f"copied {COUNT} floats to the device and back; {_differences(result, numbers)}"

    report.tell(step=f"building a kernel for {device.spec.id}")
    launch = device.compile(doubling_nest()).bind([source, target])
    report.tell(step=f"running a kernel on {device.spec.id}")
    launch()
    device.default_stream.synchronize()
    device.download(target, result).wait()
    if not np.array_equal(result, numbers + numbers):
        return f"doubled {COUNT} floats on the device; {_differences(result, numbers + numbers)}"
    return ""


def _differences(given: Any, expected: Any) -> str:
    wrong = (given != expected).nonzero()[0]
    first = wrong[0]
    return f"{len(wrong)} are wrong, the first at {first}: {given[first]}, expected {expected[first]}"


def doubling_nest() -> LoopNest:
    """y[i] = x[i] + x[i]: the smallest kernel that reads, computes and writes."""
    from nnc_core.base.dtype import float32
    from nnc_core.base.loopnest import Access, Argument, Instruction, LoopNest, Stage, Subscript

    each = (Subscript(0, ((0, 1),), 1, extent=COUNT),)
    body = (
        Instruction("load", float32, access=Access(0, 0, each)),
        Instruction("add", float32, (0, 0)),
        Instruction("store", float32, (1,), access=Access(1, 0, each)),
    )
    arguments = (Argument(float32, written=False), Argument(float32, written=True))
    return LoopNest("nnc_doctor", arguments, (COUNT,), (Stage((), body),))


def main(request: str) -> None:
    """`request` is JSON: name, options, and the path of the report."""
    asked = json.loads(request)
    examine(asked["name"], Report(Path(asked["report"])), asked["options"])
