"""CUDA C for the processor: the same source that NVRTC gets, compiled by the system's C compiler, blocks and threads as
loops.  It tests indexing, tails and arithmetic as written; not the last bits of a GPU's functions."""

from __future__ import annotations

import re
import shutil
import subprocess
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory

from nnc_cuda.driver import CompileError

FLAGS = ["-std=gnu99", "-O1", "-ffp-contract=off", "-fno-fast-math", "-fno-strict-aliasing", "-shared", "-fPIC", "-w",
         "-U_FORTIFY_SOURCE"]
KERNEL = re.compile(r'extern "C" __global__ void (\w+)\((.*?)\) \{')
PREAMBLE = """\
#include <math.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#define __global__
#define __device__
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define min(a, b) ((a) < (b) ? (a) : (b))
static struct { unsigned x, y, z; } blockIdx, threadIdx, blockDim, gridDim;
enum { NNC_STACK = 1 << 16, NNC_THREADS = 1024 };
static ucontext_t nnc_fresh;
static jmp_buf nnc_scheduler, *nnc_threads; /* jumps, since contexts are switched by calls of the system */
static char *nnc_stacks;
static char nnc_done[NNC_THREADS], nnc_begun[NNC_THREADS];
static void (*nnc_body)(void);
static void __attribute__((noinline)) __syncthreads(void) {
  const unsigned me = threadIdx.x;
  if (!_setjmp(nnc_threads[me])) _longjmp(nnc_scheduler, 1);
  threadIdx.x = me;
}
#define __syncwarp() __syncthreads()
/* Threads of a warp show each other values in a table; who reads one that is not at the same shuffle gets no number. */
static struct { char value[8]; unsigned turn; int line; } nnc_shown[NNC_THREADS];
static void nnc_exchange(unsigned mask, void *value, size_t size, unsigned lane, int line) {
  const unsigned me = threadIdx.x, from = lane < 32 && me - me % 32 + lane < blockDim.x ? me - me % 32 + lane : me;
  const unsigned turn = ++nnc_shown[me].turn;
  nnc_shown[me].line = line;
  memcpy(nnc_shown[me].value, value, size);
  __syncthreads();
  if (nnc_shown[from].turn != turn || nnc_shown[from].line != line || mask != 0xffffffff) memset(value, 0xff, size);
  else memcpy(value, nnc_shown[from].value, size);
  __syncthreads();
}
#define NNC_EXCHANGED(mask, given, lane) \\
  ({ __typeof__(given) nnc_one = (given); nnc_exchange(mask, &nnc_one, sizeof nnc_one, lane, __LINE__); nnc_one; })
#define __shfl_down_sync(mask, given, distance) NNC_EXCHANGED(mask, given, threadIdx.x % 32 + (distance))
#define __shfl_sync(mask, given, lane) NNC_EXCHANGED(mask, given, (lane) % 32)
/* A thread runs the same kernel in one block after the other. */
static void nnc_begin(void) {
  for (;;) {
    nnc_body();
    nnc_done[threadIdx.x] = 1;
    __syncthreads();
  }
}
/* Of one launch alone: processes keep hundreds of libraries, and stacks that were used are megabytes. */
static void nnc_begin_launch(void) {
  nnc_threads = malloc(blockDim.x * sizeof *nnc_threads);
  nnc_stacks = malloc((size_t)blockDim.x * NNC_STACK);
  memset(nnc_begun, 0, sizeof nnc_begun);
}
static void nnc_end_launch(void) {
  free(nnc_threads);
  free(nnc_stacks);
}
static void __attribute__((noinline)) nnc_resume(unsigned t) {
  threadIdx.x = t;
  if (_setjmp(nnc_scheduler)) return;
  if (nnc_begun[t]) _longjmp(nnc_threads[t], 1);
  nnc_begun[t] = 1;
  getcontext(&nnc_fresh);
  nnc_fresh.uc_stack.ss_sp = nnc_stacks + (size_t)t * NNC_STACK;
  nnc_fresh.uc_stack.ss_size = NNC_STACK;
  makecontext(&nnc_fresh, nnc_begin, 0);
  setcontext(&nnc_fresh);
}
/* The threads of a block as coroutines: each runs to the next barrier, then the next one does. */
static void nnc_block(void (*body)(void)) {
  nnc_body = body;
  for (unsigned t = 0; t < blockDim.x; ++t) nnc_done[t] = nnc_shown[t].turn = 0;
  for (int left = 1; left;) {
    left = 0;
    for (unsigned n = 0; n < blockDim.x; ++n) {
      const unsigned t = blockDim.x - 1 - n; /* not in the order in which they would be right by chance */
      if (nnc_done[t]) continue;
      nnc_resume(t);
      left |= !nnc_done[t];
    }
  }
}
"""
RUN = """
int arguments_{name} = {count};
static void **nnc_arguments_{name};
static void nnc_run_{name}(void) {{ void **arguments = nnc_arguments_{name}; {name}({arguments}); }}
void run_{name}(void **arguments, unsigned blocks, unsigned threads) {{
  gridDim.x = blocks; blockDim.x = threads; nnc_arguments_{name} = arguments;
  {threads}
}}
"""
BLOCKS = "for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x)"
APART = BLOCKS + " for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x) nnc_run_{name}();"
TOGETHER = "nnc_begin_launch(); " + BLOCKS + " nnc_block(nnc_run_{name}); nnc_end_launch();"


def compiler() -> str | None:
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


class HostCompiler:
    """Makes shared libraries in which `run_NAME` runs a kernel on a whole grid."""

    identity = f"the system's C compiler {' '.join(FLAGS)} {PREAMBLE} {RUN}"

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
    heads = [*KERNEL.finditer(source)]
    ends = [head.start() for head in heads[1:]]
    runs = [_run(*head.groups(), source[head.end() : end]) for head, end in zip_longest(heads, ends)]
    return PREAMBLE + source.replace('extern "C" ', "") + "".join(runs)


def _run(name: str, parameters: str, body: str) -> str:
    """The function that runs a kernel on a grid: threads meet at barriers and shuffles if it has some."""
    given = _split(parameters)
    threads = (TOGETHER if re.search("__(sync|shfl)", body) else APART).format(name=name)
    return RUN.format(name=name, count=len(given), threads=threads,
                      arguments=", ".join([_argument(n, text) for n, text in enumerate(given)]))


def _split(parameters: str) -> list[str]:
    return [one for one in parameters.split(", ") if one]


def _argument(place: int, parameter: str) -> str:
    """The value of a parameter behind the address of one of the arguments."""
    kind = re.sub(r"\w+$", "", parameter)
    return f"*({kind}*)arguments[{place}]"
