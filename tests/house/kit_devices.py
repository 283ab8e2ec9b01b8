"""Prints the devices to run the conformance kit on, and says on stderr which it leaves out and why."""

from __future__ import annotations

import argparse
import sys

import numpy as np

import nnc_core as nnc

QUICK = ("cpu:0", "strict:0", "opencl:0")
KINDS = ("cpu", "strict", "opencl")


def of_kind(ids: list[str], kind: str) -> list[str]:
    """The devices whose id begins with `kind`; flavours such as strict-views:0 count as strict."""
    return [id for id in ids if id.partition(":")[0].split("-")[0] == kind]


def chosen(ids: list[str], which: str) -> list[str]:
    if which == "quick":
        return [id for id in QUICK if id in ids]
    return [id for kind in KINDS for id in of_kind(ids, kind)]


def failure(device: str) -> str | None:
    """Why `device` cannot add four numbers, or None: a driver that lists a device may be unable to use it."""
    numbers = np.arange(4, dtype=np.float32)
    try:
        with_itself = nnc.asarray(numbers, device=device) + nnc.asarray(numbers, device=device)
        right = np.array_equal(with_itself.numpy(), numbers + numbers)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None if right else "it adds wrongly"


def report(failures: dict[str, str], absent: list[str]) -> None:
    for id, why in failures.items():
        print(f"no conformance kit on {id}: it is listed but cannot compute ({why})", file=sys.stderr)
    for kind in absent:
        if not of_kind(list(failures), kind):
            print(f"no conformance kit on {kind}: no such device is found", file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("which", choices=("quick", "all"))
    parser.add_argument("--need-opencl", action="store_true", help="fail where no OpenCL device works")
    options = parser.parse_args()
    candidates = chosen([spec.id for spec in nnc.devices(all=True)], options.which)
    failures = {id: why for id in candidates if (why := failure(id)) is not None}
    working = [id for id in candidates if id not in failures]
    absent = [kind for kind in KINDS if not of_kind(working, kind)]
    report(failures, absent)
    print(*working, sep="\n")
    needed = ("cpu", "strict", "opencl") if options.need_opencl else ("cpu", "strict")
    return 1 if any(kind in absent or of_kind(list(failures), kind) for kind in needed) else 0


if __name__ == "__main__":
    sys.exit(main())
