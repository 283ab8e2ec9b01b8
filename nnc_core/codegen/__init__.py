"""Turning loop nests into computing, for plugins to share: renderers, expansions and the interpreter.

Imports nothing but `nnc_core.base`.
"""

from nnc_core.codegen.clike import entry_name, render, render_program
from nnc_core.codegen.dialect import C99, OPENCL, Dialect
from nnc_core.codegen.expand import expand
from nnc_core.codegen.expansions import LIBRARY_FUNCTIONS
from nnc_core.codegen.general import AnyNest, GeneralNest, general, specific
from nnc_core.codegen.interpret import interpret
from nnc_core.codegen.ranges import index_type

__all__ = [
    "C99",
    "LIBRARY_FUNCTIONS",
    "OPENCL",
    "AnyNest",
    "Dialect",
    "GeneralNest",
    "entry_name",
    "expand",
    "general",
    "index_type",
    "interpret",
    "render",
    "render_program",
    "specific",
]
