"""What an OpenCL driver itself reaches: multiply-adds of vectors in registers, and copies of a buffer."""

from __future__ import annotations

from collections.abc import Callable

import pyopencl as cl

from nnc_opencl.stream import OpenCLStream

Function = Callable[[], object]
SUMS, STEPS = 20, 1 << 17
"""Vectors that the peak is measured with, and multiply-adds of each."""
PEAK = """
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void peak(__global float *x) {{
  const float16 a = x[0], b = x[1];
  {sums}
  for (int n = 0; n < {steps}; ++n) {{ {folds} }}
  vstore16({total}, get_global_id(0), x);
}}
"""


def peak_of(stream: OpenCLStream) -> tuple[Function, float]:
    """A function that keeps all cores busy with multiply-adds, and the number of its operations."""
    names = [f"c{n}" for n in range(SUMS)]
    source = PEAK.format(sums=" ".join([f"float16 {c} = {n};" for n, c in enumerate(names)]), steps=STEPS,
                         folds=" ".join([f"{c} = fma(a, b, {c});" for c in names]), total=" + ".join(names))
    kernel = cl.Kernel(cl.Program(stream.context, source).build(), "peak")
    [cores] = [d.max_compute_units for d in stream.context.devices]
    memory = cl.Buffer(stream.context, cl.mem_flags.READ_WRITE, 64 * cores)
    kernel.set_args(memory)

    def run() -> None:
        cl.enqueue_nd_range_kernel(stream.queue, kernel, (cores,), (1,))
        stream.queue.finish()

    return run, 2.0 * 16 * SUMS * STEPS * cores


def copy_of(stream: OpenCLStream, elements: int) -> tuple[Function, float]:
    """A function that has the driver copy so many floats from buffer to buffer, and the bytes read and written."""
    nbytes = 4 * elements
    source, target = [cl.Buffer(stream.context, cl.mem_flags.READ_WRITE, nbytes) for _ in range(2)]
    for buffer in (source, target):
        cl.enqueue_fill_buffer(stream.queue, buffer, b"\0\0\0\0", 0, nbytes)

    def run() -> None:
        cl.enqueue_copy(stream.queue, target, source, byte_count=nbytes)
        stream.queue.finish()

    return run, 2.0 * nbytes
