"""Networks as ONNX files, written by PyTorch in a process of its own: those that read them do without it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks._inference import input_of


@contextmanager
def onnx_file(name: str, batch: int) -> Iterator[str]:
    """The file of a network, while the block runs."""
    with TemporaryDirectory() as folder:
        path = str(Path(folder) / "network.onnx")
        subprocess.run([sys.executable, "-W", "ignore", "-m", "benchmarks._onnx", name, str(batch), path], check=True,
                       stdout=subprocess.DEVNULL)
        yield path


def example(name: str, batch: int) -> Any:
    """The input as the files want it: images' channels first."""
    x = input_of(name, batch)
    return np.ascontiguousarray(x.transpose(0, 3, 1, 2)) if x.ndim == 4 else x


def threads() -> int:
    """What a framework may use."""
    return int(os.environ.get("OMP_NUM_THREADS", "2"))


def main() -> None:
    peer = import_module("benchmarks._inference_torch")
    name, batch, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    peer.torch.onnx.export(peer.exportable(name), (peer.example(name, batch),), path, input_names=["x"],
                           output_names=["y"], dynamo=False)


if __name__ == "__main__":
    main()
