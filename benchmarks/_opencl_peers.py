"""OpenCL beside peers, each in a process of its own: PyTorch's convolutions, tinygrad's LeNet on the same driver."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from threading import Timer

from benchmarks._measure import least
from benchmarks._opencl_works import CONVOLUTION, GRADIENTS, LENET, Work
from benchmarks._runner import runner
from nnc_opencl.icd import intel_library

PATIENCE = 120.0
"""Seconds after which a peer is stopped."""
ROUNDS, SECONDS = 5, 0.3
"""Rounds in turn, and how long a peer steps in each."""


def beside(name: str, peer: str, work: str, ours: Callable[[], object],
           environment: Mapping[str, str] | None = None) -> list[str]:
    """Milliseconds of ours and theirs in turn; a peer that does not come to its end is said to."""
    module, _, _ = peer.partition(" ")
    if find_spec(module) is None:
        return [name, "", f"{module} is not installed", ""]
    best = [float("inf"), float("inf")]
    with runner("benchmarks._peer", peer, work, environment=environment) as theirs:
        timer = Timer(PATIENCE, theirs.process.kill)
        timer.start()
        try:
            if theirs.ready is None:
                return [name, "", f"{module} did not come to its end: {theirs.end()}", ""]
            for _ in range(ROUNDS):
                best[0] = min(best[0], least({"ours": ours}, repeats=3, calls=1)["ours"])
                best[1] = min(best[1], theirs.asked(seconds=SECONDS)["step"])
            theirs.end()
        except RuntimeError as error:
            return [name, "", str(error), ""]
        finally:
            timer.cancel()
    return [name, f"{best[0] * 1e3:.2f}", f"{best[1] * 1e3:.2f}", f"{best[1] / best[0]:.2f}"]


def beside_torch(ours: Mapping[str, Work]) -> list[list[str]]:
    """Convolutions, channels last."""
    return [beside(name, "torch channels_last", name, ours[name].run) for name in (CONVOLUTION, GRADIENTS)]


def beside_tinygrad(step: Callable[[], object]) -> list[list[str]]:
    """LeNet by Adagrad, both on Intel's driver where pip has installed that."""
    return [beside(LENET, "tinygrad", "lenet training", step, {"DEV": "CL", **intels_driver()})]


def intels_driver() -> dict[str, str]:
    """The variables by which a process finds the loader of Intel's wheel, that the driver, and the driver its parts."""
    library = intel_library()
    if library is None:
        return {}
    folders = [str(library.parent), *os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)]
    return {"OCL_ICD_FILENAMES": str(library), "LD_LIBRARY_PATH": os.pathsep.join(filter(None, folders))}
