"""CUDA C for the processor: the same source that NVRTC gets, compiled by the system's C compiler, blocks and threads as
loops.  It tests indexing, tails and arithmetic as written; not the last bits of a GPU's functions."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from nnc_cuda.driver import CompileError

FLAGS = ["-std=c99", "-O1", "-ffp-contract=off", "-fno-fast-math", "-fno-strict-aliasing", "-shared", "-fPIC", "-w"]
KERNEL = re.compile(r'extern "C" __global__ void (\w+)\((.*?)\) \{')
PREAMBLE = """\
#include <math.h>
#include <stdbool.h>
#define __global__
#define __device__
#define __shared__ static
static struct { unsigned x, y, z; } blockIdx, threadIdx, blockDim, gridDim;
"""
RUN = """
int arguments_{name} = {count};
void run_{name}(void **arguments, unsigned blocks, unsigned threads) {{
  gridDim.x = blocks; blockDim.x = threads;
  for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x)
    for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x)
      {name}({arguments});
}}
"""


def compiler() -> str | None:
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


class HostCompiler:
    """Makes shared libraries in which `run_NAME` runs a kernel on a whole grid."""

    identity = "the system's C compiler " + " ".join(FLAGS)

    def compile(self, source: str) -> bytes:
        command = compiler()
        assert command is not None, "ask compiler() first"
        with TemporaryDirectory() as folder:
            file, library = Path(folder, "kernels.c"), Path(folder, "kernels.so")
            file.write_text(for_the_host(source))
            done = subprocess.run([command, *FLAGS, str(file), "-o", str(library), "-lm"], capture_output=True,
                                  text=True, check=False)
            if done.returncode:
                raise CompileError(done.stderr)
            return library.read_bytes()


def for_the_host(source: str) -> str:
    """A program of CUDA C as one of C99."""
    runs = [RUN.format(name=name, count=len(_split(parameters)),
                       arguments=", ".join(_argument(n, text) for n, text in enumerate(_split(parameters))))
            for name, parameters in KERNEL.findall(source)]
    return PREAMBLE + source.replace('extern "C" ', "") + "".join(runs)


def _split(parameters: str) -> list[str]:
    return [one for one in parameters.split(", ") if one]


def _argument(place: int, parameter: str) -> str:
    """The value of a parameter behind the address of one of the arguments."""
    kind = re.sub(r"\w+$", "", parameter)
    return f"*({kind}*)arguments[{place}]"
