"""The source of a kind of attention: tiles of products with constant sizes, and what the kernels' text leaves open."""

from __future__ import annotations

from collections.abc import Iterator

from nnc_core.base.dtype import boolean, float64
from nnc_core.codegen import OPENCL
from nnc_core.codegen.clike_helpers import Helpers
from nnc_core.codegen.clike_scalars import Scalars
from nnc_core.operator.attention_problem import AXES
from nnc_opencl.attention.kind import BlockedKind
from nnc_opencl.attention.text import AHEAD, BACK, LAY_MASK, REST, SCORES, SHARED, SUMS, TILE

ROWS = range(12, 7, -1)
"""Rows of tiles on CPUs, with two vectors."""
FEW_ROWS = 2
"""Rows and columns of the tiles of an item that shares a panel with others."""


def attention_source(kind: BlockedKind) -> str:
    """The program."""
    preamble = OPENCL.preamble + (OPENCL.float64_preamble if kind.dtype == float64 else "")
    return "\n".join([preamble, *macros(kind), SHARED, LAY_MASK if kind.mask else "", *tiles(kind),
                      BACK if kind.back else AHEAD])


def macros(kind: BlockedKind) -> Iterator[str]:
    """Constants, and other words that the text leaves open."""
    scalars = Scalars(Helpers(OPENCL))
    real, lanes = scalars.held(kind.dtype), kind.lanes
    whole = "long" if kind.dtype == float64 else "int"
    yield f"typedef {real} real;"
    yield f"typedef {real if lanes == 1 else real + str(lanes)} vector;"
    yield f"typedef {whole if lanes == 1 else whole + str(lanes)} wholes;"
    constants = {"LANES": lanes, "WIDTH": kind.width, "VECTORS": kind.width // lanes, "BLOCK": kind.block,
                 "ITEMS": kind.items, "SPAN": span(kind) * lanes, "TILES": kind.width // lanes // span(kind),
                 "FEATURES": kind.features, "VALUE_FEATURES": kind.value_features,
                 "HIDES": int(kind.causal or kind.mask is not None),
                 "SCALE": f"({scalars.literal(kind.scale, kind.dtype)})"}
    for name, (row, column) in zip(kind.matrices, kind.steps, strict=True):
        constants |= {f"{name.upper()}_ROW": f"{row}L", f"{name.upper()}_COLUMN": f"{column}L"}
    yield from (f"#define {name} {value}" for name, value in constants.items())
    yield f"#define VLOAD(p) {f'vload{lanes}(0, p)' if lanes > 1 else '(*(p))'}"
    yield f"#define VSTORE(x, p) {f'vstore{lanes}(x, 0, p)' if lanes > 1 else '(*(p) = (x))'}"
    yield f"#define NUMBERING (wholes)({', '.join(map(str, range(lanes)))})"
    yield "#define BARRIER " + ("barrier(CLK_LOCAL_MEM_FENCE);" if kind.grouped else "")
    before = OPENCL.alone if kind.items == 1 else OPENCL.group_of.format(items=kind.items)
    yield f"#define KERNEL {before.strip()} __kernel"
    yield from seeing(kind)
    yield from places(kind)


def seeing(kind: BlockedKind) -> Iterator[str]:
    """Macros that say which scores count."""
    if kind.mask is not None:
        added = "((x) ? (real)0 : -INFINITY)" if kind.mask == boolean else "(x)"
        yield f"typedef {OPENCL.types[kind.mask.name]} masked;"
        yield f"#define ADDED(x) {added}"
        yield "#define MASK(at, across, lanes, along, rows) lay_mask(at, across, lanes, along, rows, bias, item);"
        yield ("#define MASKED(x) { const vector more = VLOAD(bias + n * LANES); "
               "x = more == HIDDEN ? HIDDEN : x + more; }")
    else:
        yield "#define MASK(at, across, lanes, along, rows)"
        yield "#define MASKED(x)"
    yield "#define SEE(x, order, edge, crossing)" + (
        " if (crossing) x = NUMBERING + (wholes)(v * LANES) order (wholes)clamp((long)(edge), -1L, (long)WIDTH)"
        " ? x : HIDDEN" if kind.causal else "")
    yield "#define LAST_KEY " + ("min(keys, first + count + offset)" if kind.causal else "keys")
    yield "#define FIRST_QUERY " + ("(max(first - offset, 0L) / BLOCK * BLOCK)" if kind.causal else "0")
    yield ("#define WHOLE(lane) (HIDES ? total[lane] == 0 ? (real)1 : total[lane] : "
           "highest[lane] == -INFINITY ? (real)NAN : total[lane])")


def places(kind: BlockedKind) -> Iterator[str]:
    """Macros that find the arrays' parts that a group works on."""
    inputs = kind.arrays[: kind.arrays.index("of_query" if kind.back else "result")]
    parameters = [f"__global {'const ' if name in inputs else ''}{'masked' if name == 'mask' else 'real'} *{name}"
                  for name in kind.arrays]
    parameters += ["__global const long *numbers", "const long size", "const long step"]
    yield f"#define PARAMETERS {', '.join(parameters)}"
    bias = "__local real bias[BLOCK * WIDTH];" if kind.mask is not None else ""
    declared = " ".join([f"const long {name} = numbers[{n}];" for n, name in enumerate(kind.numbers)])
    yield f"#define NUMBERS {bias} {declared}"
    yield ("#define PANEL(length) long rest = get_group_id(0); const long panels = (length + WIDTH - 1) / WIDTH; "
           "const long first = rest % panels * WIDTH; rest /= panels; "
           "const int count = (int)min((long)WIDTH, length - first);")
    axes = [f"const long place{n} = rest % axis{n}; rest /= axis{n};" for n in range(AXES - 1, 0, -1)]
    moved = [f"{name} += {name}_offset + " + " + ".join(
        [f"{'rest' if n == 0 else f'place{n}'} * {name}_axis{n}" for n in range(AXES)]) + ";" for name in kind.arrays]
    yield f"#define PLACES {' '.join([*axes, *moved])}"


# ---- tiles
def span(kind: BlockedKind) -> int:
    """Vectors that a tile is wide."""
    return min(FEW_ROWS, kind.width // kind.lanes)


def tiles(kind: BlockedKind) -> Iterator[str]:
    """The products that a kind needs."""
    steps = dict(zip(kind.matrices, kind.steps, strict=True))
    with_panels = ("query", "cotangent", "key", "value") if kind.back else ("key",)
    with_weights = ("query", "cotangent", "key") if kind.back else ("value",)
    for name in with_panels:
        row, column = steps[name]
        height = FEW_ROWS if kind.grouped else ROWS[0]
        for part, rows in (("rows", height), ("row", 1)):
            yield tile(kind, f"{part}_of_{name}", rows, (row, column), added=False)
        yield SCORES % {"name": name, "height": height, "step": row, "steps": kind.matrices[name]}
    for name in with_weights:
        row, column = steps[name]
        length = kind.matrices[name]
        height = 2 * FEW_ROWS if kind.grouped else rows_of(length)
        whole, rest = length // height, length % height
        if whole:
            yield tile(kind, f"features_of_{name}", height, (column, row), added=True)
        if rest:
            yield tile(kind, f"rest_of_{name}", rest, (column, row), added=True)
        yield sums(name, whole, height, rest, column)


def rows_of(features: int) -> int:
    """Rows of tiles on CPUs that leave the fewest over."""
    return min(ROWS, key=lambda n: -(-features // n) * (n + 1))


def sums(name: str, whole: int, height: int, rest: int, step: int) -> str:
    """The function that goes through all features: so many whole tiles, and one of the `rest`."""
    last = REST % {"name": name, "row": whole * height, "step": step} if rest else ""
    text = SUMS % {"name": name, "tiles": whole, "height": height, "step": step, "rest": last}
    return text if whole else text.replace(f"features_of_{name}", f"rest_of_{name}")


def tile(kind: BlockedKind, name: str, rows: int, steps: tuple[int, int], added: bool) -> str:
    """A function: rows of an array, with elements this far apart from row to row and from step to step, times a
    panel."""
    row, step = steps
    vectors = range(span(kind))
    each = [(i, j) for i in range(rows) for j in vectors]
    place = "ROW(c, {0}) + {1} * LANES"
    begin = [f"c{i}_{j} = " + (f"VLOAD({place.format(i, j)})" if added else "0") for i, j in each]
    loads = [f"const vector b{j} = VLOAD(ROW(b, k) + {j} * LANES);" for j in vectors]
    folds = []
    for i in range(rows):
        taken = " ".join([f"c{i}_{j} = fma(factor, b{j}, c{i}_{j});" for j in vectors])
        folds.append(f"{{ const vector factor = (vector)(a[{i * row}L + k * {step}L]); {taken} }}")
    stores = [f"VSTORE(c{i}_{j}, {place.format(i, j)});" for i, j in each]
    return TILE % {"name": name, "comment": f"{rows} rows.", "begin": ", ".join(begin), "loads": " ".join(loads),
                   "folds": "\n    ".join(folds), "stores": " ".join(stores)}
