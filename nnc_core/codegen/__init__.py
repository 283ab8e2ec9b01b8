"""Turning loop nests into computing, for plugins to share: renderers, expansions and the interpreter.

Imports nothing but `nnc_core.base`.
"""

from nnc_core.codegen.clike import CLikeKernel, entry_name, kernel_names, program_of, render, render_program
from nnc_core.codegen.clike_columns import is_by_columns
from nnc_core.codegen.clike_groups import GroupsWriter
from nnc_core.codegen.clike_runs import RunsWriter
from nnc_core.codegen.clike_two_pass import results_size
from nnc_core.codegen.dialect import C99, OPENCL, OPENCL_LOOPS, Dialect, Warp
from nnc_core.codegen.expand import expand
from nnc_core.codegen.expansions import LIBRARY_FUNCTIONS
from nnc_core.codegen.general import AnyNest, GeneralNest, general, specific
from nnc_core.codegen.interpret import interpret
from nnc_core.codegen.ranges import index_type
from nnc_core.codegen.writers import plain_writers, writers_for_groups, writers_for_loops

__all__ = [
    "C99",
    "LIBRARY_FUNCTIONS",
    "OPENCL",
    "OPENCL_LOOPS",
    "AnyNest",
    "CLikeKernel",
    "Dialect",
    "GeneralNest",
    "GroupsWriter",
    "RunsWriter",
    "Warp",
    "entry_name",
    "expand",
    "general",
    "index_type",
    "interpret",
    "is_by_columns",
    "kernel_names",
    "plain_writers",
    "program_of",
    "render",
    "render_program",
    "results_size",
    "specific",
    "writers_for_groups",
    "writers_for_loops",
]
