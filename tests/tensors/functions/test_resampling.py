"""Images of another size, and blocks of pixels as channels: against plain loops."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image

import nnc_core as nnc
from nnc_core.functions.resample_tables import COORDINATES, METHODS, ROUNDINGS, Rule, checked, table_for
from tests.tensors import gradients
from tests.tensors.cubic import keys
from tests.tensors.faults import fails
from tests.tensors.sliding import in_layout, last
from tests.tensors.ways import agrees_with_eager


def aligned(rule: Rule) -> bool:
    return rule.coordinates == "align_corners"


METHOD_RULES = [Rule(m) for m in METHODS] + [Rule(m, "align_corners") for m in ("nearest", "linear", "cubic")]
each_rule = pytest.mark.parametrize("rule", METHOD_RULES, ids=lambda r: r.method + " aligned" * aligned(r))


def resized(x: Any, size: int, rule: Rule) -> Any:
    """One axis, element by element, from the definitions of NNC (nearest), PyTorch (floor, linear, cubic, area)."""
    length, out = len(x), []
    for i in range(size):
        ratio = (length - 1) / max(size - 1, 1) if aligned(rule) else length / size
        place = i * ratio if aligned(rule) else (i + 0.5) * ratio - 0.5
        if rule.method == "nearest":
            out.append(x[min(int(i * ratio + 0.5 if aligned(rule) else (i + 0.5) * ratio), length - 1)])
        elif rule.method == "nearest_floor":
            out.append(x[math.floor(i * ratio)])
        elif rule.method == "area":
            out.append(np.mean(x[math.floor(i * length / size) : math.ceil((i + 1) * length / size)]))
        elif rule.method == "linear":
            place = max(place, 0)
            low = min(int(place), length - 1)
            high = min(low + 1, length - 1)
            out.append(x[low] * (1 - (place - low)) + x[high] * (place - low))
        else:
            low = math.floor(place)
            out.append(sum(x[min(max(low + k, 0), length - 1)] * keys(place - low - k, rule.coefficient)
                           for k in range(-1, 3)))
    return np.array(out)


def placed(i: int, length: int, size: int, how: str, scale: float | None, region: tuple[float, float]) -> float:
    """Where element i of the result lies among those of x, from the formulas of ONNX's page on Resize."""
    ratio = size / length if scale is None else scale
    wanted = ratio * length
    if how == "align_corners":
        return 0 if wanted == 1 else i * (length - 1) / (wanted - 1)
    if how == "asymmetric":
        return i / ratio
    if how == "tf_crop_and_resize":
        begin, end = region
        step = (end - begin) * (length - 1)
        return begin * (length - 1) + (step / 2 if wanted == 1 else i * step / (wanted - 1))
    if how == "pytorch_half_pixel" and wanted == 1:
        return -0.5
    shift = length / 2 * (1 - size / wanted) if how == "half_pixel_symmetric" else 0
    return shift + (i + 0.5) / ratio - 0.5


def read_at(x: Any, place: float, method: str, rounding: str, exclude: bool, wide: float) -> float:
    """One element, from the definitions of filters; the border is repeated or left out."""
    if method == "nearest":
        low = math.floor(place)
        up = {"floor": False, "ceil": place > low, "round_prefer_floor": place - low > 0.5,
              "round_prefer_ceil": place - low >= 0.5}[rounding]
        return float(x[min(max(low + up, 0), len(x) - 1)])
    total = weight = 0.0
    for k in range(math.floor(place - 2 * wide) - 1, math.ceil(place + 2 * wide) + 2):
        d = abs(k - place) / wide
        w = max(1 - d, 0) if method == "linear" else keys(d, -0.75)
        if 0 <= k < len(x) or not exclude:
            total, weight = total + w * x[min(max(k, 0), len(x) - 1)], weight + w
    return total / weight if weight else 0.0


@pytest.mark.parametrize("how", COORDINATES)
@pytest.mark.parametrize(("length", "size", "scale"), [
    (5, 8, None), (8, 5, None), (4, 1, None), (1, 3, None), (6, 6, 1.0), (7, 4, 0.65), (4, 11, 2.8), (5, 5, 0.7)])
def test_coordinates_of_onnx(rng: np.random.Generator, how: str, length: int, size: int, scale: float | None) -> None:
    x = rng.standard_normal(length)
    region = (-0.2, 0.8)
    for method, rounding, exclude in [("linear", None, False), ("cubic", None, False), ("cubic", None, True),
                                      *[("nearest", r, False) for r in ROUNDINGS]]:
        found = nnc.resize(x[:, None], [size], method=method, coordinates=how, rounding=rounding, scale=scale,
                           exclude_outside=exclude, region=[region], fill=7.0, axes=[0]).numpy()[:, 0]
        places = [placed(i, length, size, how, scale, region) for i in range(size)]
        expected = [7.0 if how == "tf_crop_and_resize" and not 0 <= p <= length - 1 else
                    read_at(x, p, method, rounding or "", exclude, 1.0) for p in places]
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9, err_msg=f"{method} {rounding}")


@pytest.mark.parametrize("exclude", [False, True])
@pytest.mark.parametrize("method", ["linear", "cubic"])
def test_antialiasing_may_repeat_the_border(rng: np.random.Generator, method: str, exclude: bool) -> None:
    x = rng.standard_normal(9)
    found = nnc.resize(x, scale=0.4, method=method, coefficient=-0.75, antialias=True, exclude_outside=exclude,
                       axes=[0]).numpy()
    expected = [read_at(x, (i + 0.5) / 0.4 - 0.5, method, "", exclude, 2.5) for i in range(3)]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_axes_in_any_order(rng: np.random.Generator) -> None:
    """Of any rank, the axes of images and channels too."""
    x = rng.standard_normal((3, 4, 5))
    found = nnc.resize(x, (7, 2), axes=(-1, 0))
    np.testing.assert_allclose(found.numpy(), nnc.resize(nnc.resize(x, 7, axes=[2]), 2, axes=[0]).numpy(), rtol=1e-12)
    whole = nnc.resize(nnc.asarray([[1, 2], [3, 4]]), scale=(2, 1), method="nearest", axes=(0, 1))
    np.testing.assert_array_equal(whole.numpy(), [[1, 2], [1, 2], [3, 4], [3, 4]])


def test_methods_named_by_the_number_of_dimensions(rng: np.random.Generator) -> None:
    x = rng.standard_normal((1, 4, 5, 2))
    for name, method in (("bilinear", "linear"), ("bicubic", "cubic")):
        assert (nnc.resize(x, (3, 7), mode=name) == nnc.resize(x, (3, 7), method=method)).all()
        assert (nnc.upsample(x, 2, mode=name) == nnc.upsample(x, 2, method=method)).all()


def test_wrong_ways_to_resize() -> None:
    x = np.zeros((4, 5))
    for words, options in [("twice", {"axes": (0, -2), "size": (2, 2)}), ("size None", {"axes": (0,)}),
                           ("coordinates", {"axes": (0,), "size": 3, "coordinates": "middle"}),
                           ("rounding", {"axes": (0,), "size": 3, "rounding": "up"}),
                           ("scale", {"axes": (0,), "scale": (1.0, 2.0)}), ("greater", {"axes": (0,), "scale": -1}),
                           ("area", {"axes": (0,), "size": 3, "method": "area", "coordinates": "asymmetric"}),
                           ("pairs", {"axes": (0,), "size": 3, "region": [(0, 1), (0, 1)]})]:
        with fails(nnc.errors.AttributeValueError, words, operator="resize"):
            nnc.resize(x, **options)


@each_rule
@pytest.mark.parametrize(("length", "size"), [(5, 8), (8, 5), (4, 8), (9, 3), (7, 1), (1, 4), (6, 6), (3, 200)])
def test_one_axis(rng: np.random.Generator, rule: Rule, length: int, size: int) -> None:
    x = rng.standard_normal(length)
    found = nnc.resize(x[None, :, None], size, method=rule.method, align_corners=aligned(rule))
    np.testing.assert_allclose(found.numpy()[0, :, 0], resized(x, size, rule), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW", "CHWN", "NCDHW"])
def test_every_axis_in_every_layout(rng: np.random.Generator, device: str, layout: str) -> None:
    rank = len(layout) - 2
    x = rng.standard_normal((2, 4, 5, 3, 2) if rank == 3 else (2, 4, 5, 3)).astype(np.float32)
    size = (3, 7, 4)[:rank]
    found = nnc.resize(nnc.asarray(in_layout(x, layout)), size, layout=layout)
    expected = x
    for axis, n in enumerate(size, 1):
        expected = np.apply_along_axis(resized, axis, expected, n, Rule("linear"))
    np.testing.assert_allclose(last(found, layout), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("method", "filter"), [
    ("linear", Image.Resampling.BILINEAR), ("cubic", Image.Resampling.BICUBIC)])  # fmt: skip
@pytest.mark.parametrize("size", [(4, 5), (17, 9), (13, 3), (1, 1)])
def test_antialiasing_is_pillows(rng: np.random.Generator, method: str, filter: Any, size: tuple[int, int]) -> None:
    x = rng.uniform(0, 1, (13, 11)).astype(np.float32)
    expected = np.asarray(Image.fromarray(x).resize((size[1], size[0]), filter))
    found = nnc.resize(x[None, :, :, None], size, method=method, antialias=True).numpy()[0, :, :, 0]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_repeating(device: str) -> None:
    """What NNC and Owl call upsampling, of any dtype."""
    x = nnc.asarray(np.arange(6).reshape(1, 2, 3, 1))
    found = nnc.upsample(x, (3, 2))
    assert found.dtype == nnc.int64
    np.testing.assert_array_equal(found.numpy()[0, :, :, 0], np.repeat(np.repeat(x.numpy()[0, :, :, 0], 3, 0), 2, 1))
    aligned = nnc.resize(x, (3, 5), method="nearest", align_corners=True)
    np.testing.assert_array_equal(aligned.numpy()[0, :, :, 0], [[0, 1, 1, 2, 2], [3, 4, 4, 5, 5], [3, 4, 4, 5, 5]])


def test_scales_need_not_be_whole(rng: np.random.Generator) -> None:
    x = rng.standard_normal((1, 5, 7, 2))
    found = nnc.upsample(x, (1.5, 0.5), method="linear")
    assert found.shape == (1, 7, 3, 2)
    np.testing.assert_array_equal(found.numpy(), nnc.resize(x, (7, 3)).numpy())
    assert nnc.upsample(x, 2.0, method="cubic").shape == (1, 10, 14, 2)


def test_sizes_may_be_names() -> None:
    """Repeating needs no table."""
    x = nnc.var_arr("x", (nnc.Dim("n"), nnc.Dim("height"), 3, 1))
    graph = nnc.make_graph([x], [nnc.upsample(x, 2)], "doubled")
    assert str(next(iter(graph.outputs.values())).spec) == "float32[n,2*height,6,1]"


NAMED: list[dict[str, Any]] = [
    {"method": "nearest"}, {"method": "nearest", "coordinates": "asymmetric", "rounding": "ceil"},
    {"method": "nearest", "coordinates": "pytorch_half_pixel", "rounding": "round_prefer_floor"},
    {"method": "linear"}, {"method": "linear", "align_corners": True}, {"method": "linear", "exclude_outside": True},
    {"method": "cubic"}, {"method": "cubic", "coordinates": "asymmetric", "exclude_outside": True},
    {"method": "area"}, {"method": "linear", "antialias": True},
    {"method": "linear", "antialias": True, "exclude_outside": False}, {"method": "cubic", "antialias": True},
    {"method": "cubic", "antialias": True, "exclude_outside": False, "coordinates": "asymmetric"},
    {"method": "linear", "coordinates": "tf_crop_and_resize", "region": [(-0.2, 0.8), (0.3, 1.4)], "fill": 7.0},
    {"method": "nearest", "coordinates": "tf_crop_and_resize", "region": [(0.1, 0.6), (1.0, 0.0)]},
]  # fmt: skip


@pytest.mark.parametrize("options", NAMED)
def test_names_are_resized_to_names(rng: np.random.Generator, options: dict[str, Any]) -> None:
    names = [nnc.Dim(n) for n in ("height", "width", "rows", "columns")]
    x, other = nnc.var_arr("x", (2, *names[:2], 3)), nnc.var_arr("other", tuple(names[2:]))
    y = nnc.resize(x, other.shape, **options) + nnc.max(other)
    run = nnc.export({"x": x, "other": other}, {"y": y}).compile()
    for old, new in (((5, 7), (9, 8)), ((9, 4), (3, 4)), ((6, 1), (1, 5))):
        images = rng.standard_normal((2, *old, 3)).astype(np.float32)
        found = run(x=images, other=np.zeros(new, np.float32))["y"].numpy()
        np.testing.assert_allclose(found, nnc.resize(images, new, **options).numpy(), rtol=1e-5, atol=1e-5)


SCALED: list[dict[str, Any]] = [
    {"method": "nearest"}, {"method": "linear"}, {"method": "cubic"}, {"method": "linear", "antialias": True},
    {"method": "cubic", "antialias": True, "exclude_outside": False},
    *({"method": "linear", "coordinates": name} for name in ("align_corners", "half_pixel_symmetric", "asymmetric",
                                                             "pytorch_half_pixel", "tf_crop_and_resize")),
]  # fmt: skip


@pytest.mark.parametrize("options", SCALED)
def test_names_are_scaled(rng: np.random.Generator, options: dict[str, Any]) -> None:
    x = nnc.var_arr("x", (1, nnc.Dim("height"), nnc.Dim("width"), 1))
    options = {**options, "scale": (1.5, 0.75)}
    run = nnc.export({"x": x}, {"y": nnc.resize(x, **options)}).compile()
    for size in ((5, 9), (2, 4)):
        images = rng.standard_normal((1, *size, 1)).astype(np.float32)
        found = run(x=images)["y"].numpy()
        np.testing.assert_allclose(found, nnc.resize(images, **options).numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("coordinates", ["pytorch_half_pixel", "align_corners", "half_pixel"])
def test_names_are_scaled_to_one(coordinates: str) -> None:
    """Of a single result the place is a rule of its own."""
    x = nnc.var_arr("x", (1, nnc.Dim("width"), 1))
    options: dict[str, Any] = {"method": "linear", "coordinates": coordinates, "scale": 0.25}
    images = np.array([[[1.0], [2], [4], [8]]], np.float32)
    found = nnc.export({"x": x}, {"y": nnc.resize(x, **options)}).compile()(x=images)["y"].numpy()
    np.testing.assert_array_equal(found, nnc.resize(images, **options).numpy())
    assert found.item() == (3 if coordinates == "half_pixel" else 1)


def test_what_weighs_nothing_is_not_read() -> None:
    """An infinity stays where it is, by names too."""
    x = nnc.var_arr("x", (1, nnc.Dim("height"), 8, 1))
    images = np.zeros((1, 12, 8, 1), np.float32)
    images[0, 0] = np.inf
    for method in ("area", "linear"):
        options: dict[str, Any] = {"method": method, "antialias": method == "linear"}
        found = nnc.export({"x": x}, {"y": nnc.resize(x, (4, 4), **options)}).compile()(x=images)["y"].numpy()
        np.testing.assert_array_equal(found, nnc.resize(images, (4, 4), **options).numpy())
        assert np.isfinite(found[0, 2:]).all()


def test_gradients_of_names_resized(rng: np.random.Generator) -> None:
    gradient = nnc.grad(lambda v: nnc.sum(nnc.square(nnc.resize(v, (7, 6), method="cubic"))))
    x = nnc.var_arr("x", (1, nnc.Dim("height"), 4, 1))
    images = rng.standard_normal((1, 5, 4, 1)).astype(np.float32)
    found = nnc.export({"x": x}, {"g": gradient(x)}, capture="constant").compile()(x=images)["g"]
    np.testing.assert_allclose(found.numpy(), gradient(nnc.asarray(images)).numpy(), rtol=1e-4, atol=1e-4)


@each_rule
def test_tables_reach_every_row(rule: Rule) -> None:
    """A row that reads an element lies within the reach of that element, so that gradients miss nothing."""
    for length, size in itertools.product(range(1, 12), range(1, 25)):
        table = table_for(length, size, checked(rule))
        numerator, denominator, offset, count = table.reach
        rows, columns = np.nonzero(table.indices >= 0)
        away = rows - (table.indices[rows, columns].astype(int) * numerator + offset) // denominator
        assert away.min() >= 0 and away.max() < count
        np.testing.assert_allclose(table.weights.sum(1), 1, rtol=1e-12)
        assert count <= min(size, 4 * -(-size // length) + 4), "and the reach is no longer than it has to be"


def test_infinities_stay_where_they_are() -> None:
    x = np.array([0.0, np.inf, 1.0, 2.0, 3.0])[None, :, None]
    found = nnc.resize(x, 9, align_corners=True).numpy()[0, :, 0]
    np.testing.assert_array_equal(found[[0, 1, 2, 3, 4]], [0, np.inf, np.inf, np.inf, 1])
    assert np.isfinite(found[4:]).all()


def test_gradients_of_resizing(rng: np.random.Generator, device: str) -> None:
    x = rng.standard_normal((1, 4, 5, 1))
    gradients.check(lambda v: nnc.resize(v, (7, 3), method="cubic"), x)
    gradients.check(lambda v: nnc.resize(v, (3, 3), antialias=True), x)
    gradients.check(lambda v: nnc.upsample(v, 2), x, second=False)
    gradients.check(lambda v: nnc.resize(v, (5, 9), method="nearest"), x, second=False)
    gradients.check(lambda v: nnc.resize(v, scale=(1, 0.6, 1.3, 2), axes=range(4), coordinates="asymmetric",
                                         method="cubic", exclude_outside=True), x, second=False)
    gradients.check(lambda v: nnc.resize(v, (3, 6), axes=(1, 2), coordinates="tf_crop_and_resize",
                                         region=((-0.1, 0.7), (0.2, 1.3)), fill=2.0), x, second=False)


@pytest.mark.parametrize("mode", ["deferred", "compiled", "vmap"])
def test_other_ways_to_run(rng: np.random.Generator, mode: str) -> None:
    x = rng.standard_normal((2, 4, 5, 3)).astype(np.float32)

    def f(v: Any) -> Any:
        y = nnc.resize(nnc.upsample(v, 2), (5, 4))
        return nnc.resize(y, scale=(1.7, 1), axes=(1, 2), coordinates="asymmetric", rounding="ceil", method="nearest")

    agrees_with_eager(mode, f, x, rtol=1e-5, atol=1e-6)


# ---- blocks
@pytest.mark.parametrize("mode", ["DCR", "CRD"])
@pytest.mark.parametrize(("layout", "block"), [("NHWC", (2, 3)), ("NCHW", (2, 3)), ("NWC", (3,)), ("NCDHW", (1, 2, 2)),
                                               ("CHWN", (2, 2))])
def test_blocks_of_pixels_as_channels(rng: np.random.Generator, layout: str, block: tuple[int, ...], mode: str) -> None:
    size = (4, 6, 2)[: len(block)]
    x = rng.standard_normal((2, *[n * b for n, b in zip(size, block, strict=True)], 3)).astype(np.float32)
    expected = np.zeros((2, *size, 3 * math.prod(block)), np.float32)
    for at in np.ndindex(*x.shape):
        n, *place, c = at
        within = np.ravel_multi_index([p % b for p, b in zip(place, block, strict=True)], block)
        channel = within * 3 + c if mode == "DCR" else c * math.prod(block) + within
        expected[(n, *[p // b for p, b in zip(place, block, strict=True)], channel)] = x[at]
    deep = nnc.space_to_depth(in_layout(x, layout), block, mode=mode, layout=layout)
    np.testing.assert_array_equal(last(deep, layout), expected)
    back = nnc.depth_to_space(deep, block, mode=mode, layout=layout)
    np.testing.assert_array_equal(last(back, layout), x)


X = np.ones((1, 4, 4, 2), np.float32)
ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], tuple[str, ...], str]] = {
    "method": (lambda: nnc.resize(X, 2, method="lanczos"), ValueError, ("'lanczos'", "'linear'"), "resize"),
    "antialias": (lambda: nnc.resize(X, 2, method="area", antialias=True), ValueError, ("antialias", "'area'"),
                  "resize"),
    "two places": (lambda: nnc.resize(X, 2, align_corners=True, coordinates="asymmetric"), ValueError,
                   ("align_corners=True and coordinates='asymmetric'", "one of them"), "resize"),
    "align": (lambda: nnc.resize(X, 2, method="area", align_corners=True), ValueError, ("align_corners",), "resize"),
    "size": (lambda: nnc.resize(X, (2, 2, 2)), ValueError, ("size (2, 2, 2)", "2 of them"), "resize"),
    "nothing": (lambda: nnc.resize(X, 0), ValueError, ("4 elements to 0",), "resize"),
    "integers": (lambda: nnc.resize(X.astype(np.int32), 3), TypeError, ("'linear' needs floating", "int32"), "resize"),
    "scale": (lambda: nnc.upsample(X, 0), ValueError, ("scale 0", "greater than 0"), "upsample"),
    "no scale": (lambda: nnc.resize(X, scale=float("inf")), ValueError, ("scale inf", "finite"), "resize"),
    "channels": (lambda: nnc.depth_to_space(X, 2), ValueError, ("2 channels of float32[1,4,4,2]", "4 elements"),
                 "depth_to_space"),
    "pixels": (lambda: nnc.space_to_depth(X, 3), ValueError, ("no multiples of a block (3, 3)",), "space_to_depth"),
    "mode": (lambda: nnc.depth_to_space(X, 1, mode="RDC"), ValueError, ("'RDC'",), "depth_to_space"),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS.values(), ids=ERRORS)
def test_one_clear_error(case: Any) -> None:
    f, kind, said, operator = case
    with fails(kind, *said, operator=operator):
        f()


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "resize": lambda x: nnc.resize(x, (7, 3)), "nearest": lambda x: nnc.resize(x, (7, 3), method="nearest"),
    "grid": lambda x: nnc.grid_sample(x, nnc.affine_grid(x[:, :2, :3, 0], (3, 2))),
    "adaptive": lambda x: nnc.adaptive_max_pool(x, 3, with_indices=True)[0],
    "unpool": lambda x: nnc.max_unpool(*nnc.max_pool2d(x, 2, with_indices=True), (4, 5)),
    "regions": lambda x: nnc.roi_align(x[:1], x[0, :2, :4, 1], 2), "suppressed": lambda x: nnc.nms(
        x[0, :, :4, 0], x[0, :, 4, 0], 0.5, padded=True),
}  # fmt: skip


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_what_a_function_makes_beside_its_operands_is_part_of_the_graph(rng: np.random.Generator, f: Any) -> None:
    """Tables and counters are constants of an exported graph, not arrays from outside."""
    images = rng.uniform(0, 1, (2, 4, 5, 2)).astype(np.float32)
    expected = f(nnc.asarray(images)).numpy()
    x = nnc.var_arr("x", images.shape)
    y = f(x)
    graph = nnc.export({"x": x}, {"y": y})
    np.testing.assert_allclose(graph.compile()(x=images)["y"].numpy(), expected, rtol=1e-5, atol=1e-6)
    nnc.assign(x, images)
    nnc.eval_arr([y])
    np.testing.assert_allclose(nnc.unpack_arr(y), expected, rtol=1e-5, atol=1e-6)
    with nnc.deferred():
        given = nnc.asarray(images)
        y = f(given)
    graph = nnc.export({"x": given}, {"y": y})
    np.testing.assert_allclose(graph.compile()(x=images)["y"].numpy(), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(nnc.jit(f)(nnc.asarray(images)).numpy(), expected, rtol=1e-5, atol=1e-6)
