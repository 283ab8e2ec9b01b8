"""Library code for products and convolutions: machine code by packed panels, with what follows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from nnc_core.base.command import Command
from nnc_core.base.config import config
from nnc_core.base.dtype import bfloat16, is_complex, is_integer
from nnc_core.base.errors import NotSupportedError
from nnc_core.base.tiling import Tiling
from nnc_core.device import CommandBackend, Kernel
from nnc_core.operator.products.arrange import arranged, operator_of, read_where_written
from nnc_core.operator.products.by_parts import complex_work, product_by_parts, steps_of
from nnc_core.operator.products.convolution import kernel_tiling
from nnc_core.operator.products.instead import suited
from nnc_core.operator.products.matmul import weight_tiling
from nnc_core.operator.products.problem import MatrixProduct
from nnc_core.operator.products.turned import with_turned_matrix
from nnc_cpu.products.checked import checked
from nnc_cpu.products.depthwise import by_elements
from nnc_cpu.products.dots import dots_of, has_bfloat16
from nnc_cpu.products.plan import panel_width

if TYPE_CHECKING:
    from nnc_cpu.products.kernel import ProductCompiler

WORTH_WINDOWS = 1 << 13
"""Multiply-adds of a convolution from which on a call pays."""
SMALL, SMALL_ROWS = 1 << 15, 1 << 13
"""Multiply-adds of a product of matrices below which its loop nest is quicker: with lanes along the columns of the
second factor, and along rows, one after another."""
SMALL_COMPLEX, WORTH_PARTS = 1 << 11, 1 << 6
"""Those of complex numbers below which it is quicker than a call of BLAS, and from which on real products are."""
THIN, LARGE_BESIDE_THIN = 8, 1 << 13
"""Rows or columns that are too few for real products beside a matrix of so many elements, which they read as copies."""
FEW = 4
"""Columns, or steps of a segment, that are too few for tiles of windows."""
FEW_ROWS = 3
MANY = 1 << 16
"""Bytes of weights, as large as sums, that are worth packing when a graph is compiled."""


class PackedProducts(CommandBackend):
    """Products of one operator as machine code."""

    name = "packed"
    fuses = True
    several = True
    packs = True
    exact = True
    """Every bit is that of sums in order."""

    def __init__(self, operator: str) -> None:
        self.operator = operator

    def refuse(self, command: Command) -> str | None:
        if operator_of(command) != self.operator:
            return f"it is made for {self.operator}"
        try:
            return self.reason(_worth_while(command))
        except NotSupportedError as error:
            return error.message

    def reason(self, problem: MatrixProduct) -> str | None:
        """The reason to leave a problem to other code."""
        if problem.dtype == bfloat16 and not config.deterministic and has_bfloat16(_compiler().target):
            return "the processor's instruction for pairs of bfloat16 is quicker"
        return self.otherwise_packed(problem)

    def otherwise_packed(self, problem: MatrixProduct) -> str | None:
        """The reason not to take B as it is packed."""
        known = problem.word == 1 or problem.word == self.word(problem)
        return None if known else "the second factor is packed for other code"

    def word(self, problem: MatrixProduct) -> int:
        """The steps of a word of packed weights; 0 where they would be other elements than those of memory."""
        dots = dots_of(problem, _compiler().target, self.exact)
        size = (problem.b_dtype or problem.dtype).itemsize
        return int(problem.wide == problem.dtype) if dots is None else dots.steps if dots.bytes == size else 0

    def wants(self, command: Command) -> Mapping[int, Tiling]:
        """Weights in panels, where there are many and they are the second factor."""
        problem, b = _worth_while(command), command.inputs[1]
        word, dots = self.word(problem), dots_of(problem, _compiler().target, self.exact)
        if not word or problem.steps * problem.columns * problem.wide.itemsize < MANY:
            return {}
        width = panel_width(problem, _compiler().vector, dots is not None and dots.is_amx)
        if self.operator.startswith("matmul") and len(b.shape) == 2:
            return {1: weight_tiling(bool(command.attributes[1]), width, word)}
        if self.operator not in ("conv", "conv_integer") or problem.batch != (1,) or problem.each:
            return {}
        whole = b.shape[-2] % word == 0 or problem.length == b.shape[-2]
        return {1: kernel_tiling(len(b.shape), width, word)} if whole else {}

    def prepare(self, command: Command) -> Kernel:
        return _compiler().kernel(_worth_while(command), exact=self.exact)

    def inplace_of(self, command: Command, output: int, offered: tuple[int, ...]) -> tuple[int, ...]:
        return read_where_written(command, output)


class PackedMatrices(PackedProducts):
    """Products of matrices."""

    def instead(self, F: Any, inputs: Sequence[Any], command: Command) -> Any:
        if config.deterministic and not is_slow_in_blas(command):
            return None  # a BLAS adds in an order of its own, eagerly as well
        if not config.deterministic and _pays_by_parts(command):
            return product_by_parts(F, inputs, command)
        return with_turned_matrix(F, inputs, command)


class PackedConvolutions(PackedProducts):
    """Convolutions, or gradients of them."""

    def instead(self, F: Any, inputs: Sequence[Any], command: Command) -> Any:
        return suited(F, inputs, command)


class PairedProducts(PackedProducts):
    """Products of bfloat16 by the processor's instruction for pairs, where bits need not be those of sums in order."""

    name = "bfloat16 pairs"
    exact = False

    def reason(self, problem: MatrixProduct) -> str | None:
        if problem.dtype != bfloat16:
            return f"it is made for bfloat16, not {problem.dtype}"
        if config.deterministic:
            return "sums are in order under config.deterministic"
        if not has_bfloat16(_compiler().target):
            return "the processor has no AVX512-BF16"
        return self.otherwise_packed(problem)


class PairedConvolutions(PairedProducts, PackedConvolutions):
    """Convolutions of bfloat16, or gradients of them, by the same instruction."""


def _compiler() -> ProductCompiler:
    """Loaded late: LLVM takes a tenth of a second."""
    found: ProductCompiler = import_module("nnc_cpu.products.kernel").compiler()
    return found


@lru_cache(maxsize=1024)
def _worth_while(command: Command) -> MatrixProduct:
    """The problem of a command; NotSupportedError where there is no code for it, or where other code is as quick."""
    problem = problem_of(command)
    if problem.work < (_small(problem) if operator_of(command).startswith("matmul") else WORTH_WINDOWS):
        raise NotSupportedError("it is too small to pay")
    if _is_narrow(problem):
        raise NotSupportedError("it would mostly multiply lanes that are not there")
    along_memory = problem.columns == 1 or (problem.rows == 1 and problem.b.column != 1)
    if problem.windows is None and along_memory and not is_integer(problem.dtype):
        raise NotSupportedError("libraries add such products in an order that is quicker")
    return problem


def _small(problem: MatrixProduct) -> int:
    """The multiply-adds below which a product of matrices is left to its loop nest."""
    return SMALL if problem.b.column == 1 < problem.columns else SMALL_ROWS


def _is_narrow(problem: MatrixProduct) -> bool:
    """True where tiles of windows have fewer lanes to fill than a loop nest finds."""
    if problem.windows is None or problem.each:
        return False
    if problem.left == "columns":
        return problem.rows < FEW_ROWS or problem.columns < FEW
    return problem.columns == 1 and problem.length < FEW and not problem.parts


def nest_is_quicker(command: Command) -> bool:
    """Tell whether a convolution is left to its loop nest, which joins what is around it and needs no Python."""
    try:
        problem = problem_of(command)
    except NotSupportedError:
        return False
    return problem.work < WORTH_WINDOWS or _is_narrow(problem)


def _pays_by_parts(command: Command) -> bool:
    """Tell whether a product of complex matrices is quicker as one of real ones, which machine code has."""
    if not is_complex(command.output.dtype) or complex_work(command) < WORTH_PARTS:
        return False
    *_, rows, columns = command.output.shape
    return min(rows, columns) >= THIN or max(rows, columns) * steps_of(command) < LARGE_BESIDE_THIN


def is_slow_in_blas(command: Command) -> bool:
    """Tell whether a product of matrices is left to its loop nest: of integers, which no BLAS has, or of few floats."""
    if is_integer(command.output.dtype):
        return True
    if is_complex(command.output.dtype):
        return complex_work(command) < SMALL_COMPLEX
    try:
        problem = problem_of(command)
    except NotSupportedError:
        return False
    return problem.work < _small(problem)


def problem_of(command: Command) -> MatrixProduct:
    """The problem of a command; NotSupportedError where there is no code for it."""
    problem = checked(by_elements(arranged(command, pools=True)))
    if problem.each and problem.wide != problem.dtype:
        raise NotSupportedError(f"no depthwise convolutions of {problem.dtype}")
    return problem
