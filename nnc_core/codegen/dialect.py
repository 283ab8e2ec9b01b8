"""The differences between C99 and OpenCL C, as data; CUDA C is one more `Dialect`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Warp:
    """Neighbouring work items of a group that read each other's variables: all of them have to come where they do."""

    items: int
    down: str  # the {value} of the item that is {distance} further on
    first: str  # the {value} of the first item
    barrier: str  # all items of a warp have come here, and see what the others have written


@dataclass(frozen=True, slots=True)
class Dialect:
    """Spelling of a C-like language.  Words in braces are filled in by the renderer.

    `types` are those of stored elements, by dtype name: float16 and bfloat16 are unsigned integers of 16 bits,
    booleans of 8.  `parameter` is one argument of a kernel ({const}, {type}, {name}); None means that a kernel
    gets `void **arguments`.  `point` is this work item's flat outer point; None means that a kernel loops from
    `begin` to `end`.
    """

    name: str
    types: Mapping[str, str]
    head: str  # {name}, {parameters}
    parameter: str | None
    point: str | None
    preamble: str
    float64_preamble: str = ""  # only where a program uses float64
    function: str = "static inline"  # qualifiers of helper functions
    ordered_loop: str = ""  # before loops that add up floats, for compilers that would change the order
    apart_loop: str = ""  # before loops whose rounds may run at once
    unrolled_loop: str = ""  # before short loops over arrays that are to become variables
    group_of: str = ""  # before kernels that run in groups of {items} work items
    alone: str = ""  # before kernels whose work items are groups by themselves
    items: str = ""  # the number of work items
    group: str = ""  # the number of this work item's group
    item: str = ""  # this work item's number in its group
    local: str = ""  # an array that the items of a group share ({type}, {name}, {count})
    of_device: str = ""  # before what pointers to the device's memory point at
    many_arguments: bool = False  # hundreds of arguments of a kernel are not too many
    pairs: str = ""  # the type of complex numbers of {real}, which take {nbytes}, and macros that make some
    barrier: str = ""  # all items of a group have come here, and see what the others have written
    warp: Warp | None = None  # what groups consist of, in order
    suffixed_math: bool = True  # fmodf beside fmod
    helpers: Mapping[str, str] = field(default_factory=dict)  # other texts of functions, around {0}, that of all
    builtins: frozenset[str] = frozenset()  # functions that the compiler has as __builtin_NAME, and makes vectors of
    long_suffix: str = "LL"
    infinity: str = "INFINITY"
    nan: str = "NAN"


C99 = Dialect(
    name="C99",
    types={
        "bool": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int32_t", "int64": "int64_t",
        "uint8": "uint8_t", "uint16": "uint16_t", "uint32": "uint32_t", "uint64": "uint64_t",
        "float16": "uint16_t", "bfloat16": "uint16_t", "float32": "float", "float64": "double",
    },
    head="void {name}(void **arguments, int64_t begin, int64_t end)",
    parameter=None,
    point=None,
    preamble=(
        "#include <math.h>\n#include <stdbool.h>\n#include <stdint.h>\n#pragma STDC FP_CONTRACT OFF\n"
    ),
)  # fmt: skip
"""`void NAME(void **arguments, int64_t begin, int64_t end)` computes outer points begin to end, in flat order.

Behind the pointers to the arguments of a general nest is one to its numbers, which are int64.
Pointers are aligned to their elements.  Compile without -ffast-math, with -ffp-contract=off (GCC ignores the
pragma) and with -fno-strict-aliasing, since arguments of different dtypes may share memory.
"""

OPENCL = Dialect(
    name="OpenCL C",
    types={
        "bool": "uchar", "int8": "char", "int16": "short", "int32": "int", "int64": "long",
        "uint8": "uchar", "uint16": "ushort", "uint32": "uint", "uint64": "ulong",
        "float16": "ushort", "bfloat16": "ushort", "float32": "float", "float64": "double",
    },
    head="__kernel void {name}({parameters})",
    parameter="__global {const}{type} *{name}",
    point="get_global_id(0)",
    preamble="#pragma OPENCL FP_CONTRACT OFF\n",
    float64_preamble="#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n",
    ordered_loop='_Pragma("clang loop vectorize(disable) interleave(disable)") ',
    apart_loop='_Pragma("clang loop vectorize(assume_safety) unroll(disable)") ',  # Intel's unrolls short ones first
    unrolled_loop='_Pragma("unroll") ',
    group_of="__attribute__((reqd_work_group_size({items}, 1, 1)))\n",
    alone="__attribute__((vec_type_hint(float16), reqd_work_group_size(1, 1, 1)))\n",  # no vectors of work items
    items="get_global_size(0)",
    group="get_group_id(0)",
    item="(int)get_local_id(0)",
    local="__local {type} {name}[{count}];",
    of_device="__global",
    pairs=(
        "typedef {real}2 pair;\n#define PAIR(a, b) ((pair)(a, b))\n"
        "#define PLUS(a, b) ((a) + (b))\n#define SCALED(a, factor) ((a) * (factor))\n"
    ),
    barrier="barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
    suffixed_math=False,
    long_suffix="L",
)  # fmt: skip
"""One work item for each outer point, in one dimension; the range may be rounded up.  The numbers of a general nest are
arguments of type long behind its buffers.

Build with -cl-fp32-correctly-rounded-divide-sqrt where the device has it: without, float32 division is good to
2.5 ULP only.  Intel's CPU compiler adds up the floats of a loop in an order of its own, whatever its options say,
unless a pragma forbids it, which others ignore.  No extension is needed for float16, which is stored as bits and
computed in float32.
"""

OPENCL_LOOPS = replace(
    OPENCL, builtins=frozenset({"fma", "fabs", "floor", "ceil", "trunc", "rint", "sqrt", "copysign"}))
"""OpenCL C for CPUs, whose drivers all compile with Clang: with its builtins, which are exact as well, loops become
vectors; with functions of OpenCL C they do not, and take fifteen times as long."""
