"""CUDA C as a dialect of the renderer of loop nests."""

from __future__ import annotations

from nnc_core.codegen import Dialect, Warp


def _by_instruction(name: str, result: str, given: str, instruction: str, least: int) -> str:
    """A conversion as one instruction from a compute capability on, beside the one that is written out."""
    constraints = {"float": "f", "{ushort}": "h"}
    return (f"#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= {least}\n"
            f"{{function}} {result} {name}({given} x) {{{{\n"
            f"  {result} converted;\n"
            f'  asm("{instruction} %0, %1;" : "={constraints[result]}"(converted) : "{constraints[given]}"(x));\n'
            "  return converted;\n}}\n#else\n{0}#endif\n")


CONVERSIONS = {
    "nnc_float16_value": ("float", "{ushort}", "cvt.f32.f16", 530),
    "nnc_float16_bits": ("{ushort}", "float", "cvt.rn.f16.f32", 530),
    "nnc_bfloat16_bits": ("{ushort}", "float", "cvt.rn.bf16.f32", 800),
}  # fmt: skip
"""Conversions of halves that GPUs have: results, what is given, instructions, least compute capabilities."""

CUDA = Dialect(
    name="CUDA C",
    types={
        "bool": "unsigned char", "int8": "signed char", "int16": "short", "int32": "int", "int64": "long long",
        "uint8": "unsigned char", "uint16": "unsigned short", "uint32": "unsigned int", "uint64": "unsigned long long",
        "float16": "unsigned short", "bfloat16": "unsigned short", "float32": "float", "float64": "double",
    },
    head='extern "C" __global__ void {name}({parameters})',
    parameter="{const}{type} *{name}",
    point="((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x)",
    preamble=(
        "#ifndef INFINITY\n"
        "#define INFINITY __int_as_float(0x7f800000)\n"
        "#define NAN __int_as_float(0x7fc00000)\n"
        "#endif\n"
    ),
    function="static __device__ inline",
    unrolled_loop='_Pragma("unroll") ',
    items="((unsigned long long)gridDim.x * blockDim.x)",
    group="blockIdx.x",
    item="(int)threadIdx.x",
    local="__shared__ {type} {name}[{count}];",
    many_arguments=True,
    pairs=(
        "typedef struct __align__({nbytes}) {{ {real} x, y; }} pair;\n"
        "static __device__ inline pair PAIR({real} x, {real} y) {{ pair z; z.x = x; z.y = y; return z; }}\n"
        "static __device__ inline pair PLUS(pair a, pair b) {{ return PAIR(a.x + b.x, a.y + b.y); }}\n"
        "static __device__ inline pair SCALED(pair a, {real} by) {{ return PAIR(a.x * by, a.y * by); }}\n"
    ),
    barrier="__syncthreads();",
    warp=Warp(
        items=32,
        down="__shfl_down_sync(0xffffffff, {value}, {distance})",
        first="__shfl_sync(0xffffffff, {value}, 0)",
        barrier="__syncwarp();",
    ),
    helpers={name: _by_instruction(name, *how) for name, how in CONVERSIONS.items()},
)  # fmt: skip
"""One thread for each outer point, in one dimension; the grid may be rounded up.  Groups of work items are blocks.  The
numbers of a general nest are arguments of type long long behind its pointers.

Compile without contraction (--fmad=false); division and square root of NVRTC are rounded correctly unless it is told
otherwise.  float16 and bfloat16 are stored as bits and computed in float32; GPUs convert them by one instruction.
"""
