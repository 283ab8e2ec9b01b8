"""Products by AMX: the processor multiplies and adds tiles of 16 rows of 64 bytes as wholes.

A row of a tile of A has 16 words of neighbouring steps, one of B the words of 16 columns, which is how panels have them
already; a tile of sums is 16 rows of 16 columns.  Four of these, of two tiles each of A and B, fill the eight
registers that there are.  Sums of integers are exact; those of bfloat16 add pairs, without fused multiply-add, and
take numbers below the normal ones for zeros, as words do (`dots.py`).  The instructions are those of the Intel
Architecture Instruction Set Extensions Programming Reference, chapter 3.
"""

from __future__ import annotations

from nnc_cpu.llvm.ir import FunctionWriter, Register, integer
from nnc_cpu.products.kind import Kind
from nnc_cpu.products.writing import Signature, function_text, loaded, moved, parameters, product, smaller, store, total

ROWS = 16
"""Rows of a tile, and words of a row."""
CONFIGURATION = "amx_configuration"
_A, _B = 4, 6
"""The first register of A's tiles, and of B's; sums are before them."""
SIGNATURE: Signature = (
    ("a", "ptr"), ("a_step", "i64"), ("words", "i64"), ("b", "ptr"), ("b_step", "i64"), ("rest", "ptr"),
    ("sums", "ptr"), ("fresh", "i1"))  # fmt: skip
"""`words` of each row; `a_step` and `b_step`: words from a row of A, and of B, to the next; `rest`: the last rows of B
where they are no whole tile, with zeros behind them; `sums`: where these are kept between blocks of steps, `fresh`:
there are none yet.  Behind the words of a row of A there are zeros to the end of the tile."""
REST: Signature = (("b", "ptr"), ("words", "i64"), ("b_step", "i64"), ("rest", "ptr"))


def configuration_text() -> str:
    """The shape of all eight registers: `ROWS` rows of 64 bytes."""
    size = [1, *[0] * 15, *[64, 0] * 8, *[0] * 16, *[ROWS] * 8, *[0] * 8]
    return f"@{CONFIGURATION} = internal constant [64 x i8] [{', '.join([f'i8 {x}' for x in size])}], align 64\n"


class AmxTileWriter:
    """Writes the function that goes through some steps of the sums of a tile of a kind, with so many vectors."""

    def __init__(self, kind: Kind, vectors: int, declared: dict[str, None]) -> None:
        assert kind.dots is not None
        self.kind, self.vectors, self.high = kind, vectors, kind.rows // ROWS
        self.instruction = kind.dots.instruction
        self.function = FunctionWriter(declared)
        self.a, self.a_step, self.words, self.b, self.b_step, self.rest, self.sums, self.fresh = parameters(SIGNATURE)

    def text(self, name: str) -> str:
        f, pairs = self.function, self.vectors // 2
        self.whole = f.let(f"and {self.words}, {-ROWS}", "i64")
        with f.loop(integer(0), integer(2 * pairs), 2) as vector:
            self.columns(vector, 2)
        if self.vectors % 2:
            self.columns(integer(2 * pairs), 1)
        return function_text(f, name, SIGNATURE)

    def columns(self, vector: Register, wide: int) -> None:
        """All rows of one or two neighbouring vectors of columns."""
        f, width = self.function, integer(4 * self.kind.width)
        first = product(f, vector, integer(ROWS))
        b, rest, sums = (moved(f, x, "i32", first) for x in (self.b, self.rest, self.sums))
        places = [(m, n) for m in range(self.high) for n in range(wide)]
        kept = {(m, n): moved(f, sums, "i32", integer(m * ROWS * self.kind.width + n * ROWS)) for m, n in places}
        with f.where(self.fresh):
            for m, n in places:
                f.call_void("llvm.x86.tilezero", self.sum(m, n))
        with f.where(f.let(f"xor {self.fresh}, true", "i1")):
            for m, n in places:
                self.load(self.sum(m, n), kept[m, n], width)
        a_bytes, b_bytes = (product(f, x, integer(4)) for x in (self.a_step, self.b_step))
        with f.loop(integer(0), self.whole, ROWS) as word:
            self.step(word, a_bytes, moved(f, b, "i32", product(f, word, self.b_step)), b_bytes, wide)
        with f.where(f.let(f"icmp slt {self.whole}, {self.words.name}", "i1")):
            self.step(self.whole, a_bytes, rest, width, wide)
        for m, n in places:
            f.call_void("llvm.x86.tilestored64", self.sum(m, n), kept[m, n], width)

    def step(self, word: Register, a_bytes: Register, b: Register, b_bytes: Register, wide: int) -> None:
        """The products of one tile of words."""
        f = self.function
        for m in range(self.high):
            start = total(f, word, product(f, self.a_step, integer(m * ROWS)))
            self.load(integer(_A + m, 8), moved(f, self.a, "i32", start), a_bytes)
            for n in range(wide):
                if m == 0:
                    self.load(integer(_B + n, 8), moved(f, b, "i32", integer(n * ROWS)), b_bytes)
                f.call_void(self.instruction, self.sum(m, n), integer(_A + m, 8), integer(_B + n, 8))

    def sum(self, m: int, n: int) -> Register:
        """The register of the sums of a tile."""
        return integer(2 * m + n, 8)

    def load(self, register: Register, place: Register, step: Register) -> None:
        self.function.call_void("llvm.x86.tileloadd64", register, place, step)


def rest_text(name: str, vectors: int, width: int, declared: dict[str, None]) -> str:
    """The function that copies the last words of a panel, if they are no whole tile, and puts zeros behind them."""
    f = FunctionWriter(declared)
    b, words, step, rest = parameters(REST)
    whole = f.let(f"and {words}, {-ROWS}", "i64")
    last = f.let(f"sub {words}, 1", "i64")
    with f.where(f.let(f"icmp slt {whole}, {words.name}", "i1")), f.loop(integer(0), integer(ROWS)) as row:
        word = total(f, whole, row)
        inside = f.let(f"icmp slt {word}, {words.name}", "i1")
        source = moved(f, b, "i32", product(f, smaller(f, word, last), step))
        target = moved(f, rest, "i32", product(f, row, integer(width)))
        for v in range(vectors):
            there = loaded(f, moved(f, source, "i32", integer(v), ROWS), "i32", ROWS, 4, None)
            value = f.let(f"select {inside}, {there}, {there._replace(name='zeroinitializer')}", "i32", ROWS)
            store(f, value, moved(f, target, "i32", integer(v), ROWS), 4, None)
    return function_text(f, name, REST)
