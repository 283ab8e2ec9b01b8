"""Problems for cuDNN, of which the stand-in and the library itself make plans."""

from __future__ import annotations

from nnc_core.base.dtype import DType, bfloat16, float16, float32, float64
from nnc_cuda.dnn.convolution import _tensor
from nnc_cuda.dnn.interface import Attention, AttentionGradients, Convolution, Problem, TensorPlace, Way
from nnc_cuda.dnn.places import ALIGNED


def convolution(way: Way, dtype: DType, *, last: bool = True, channels: int = 64, outputs: int = 64, groups: int = 1,
                stride: int = 1, dilation: int = 1, axes: int = 2, tf32: bool = False, ending: str = "") -> Convolution:
    """Images of 28 pixels an axis, windows of three; `ending`: which of "added bias relu" follow."""
    pixels = (28,) * axes
    counts = (-(-28 // stride),) * axes
    before = tuple([max((counts[0] - 1) * stride + 2 * dilation + 1 - 28, 0) // 2] * axes)
    after = tuple([max((counts[0] - 1) * stride + 2 * dilation + 1 - 28 - before[0], 0)] * axes)
    y = _tensor(dtype, 8, outputs, counts, last, ALIGNED)
    bias = TensorPlace(dtype, (1, outputs, *(1,) * axes), (outputs, 1, *(outputs,) * axes), ALIGNED)
    return Convolution(
        way, _tensor(dtype, 8, channels, pixels, last, ALIGNED),
        _tensor(dtype, outputs, channels // groups, (3,) * axes, last, ALIGNED), y, (stride,) * axes, before, after,
        (dilation,) * axes, added=y if "added" in ending else None, bias=bias if "bias" in ending else None,
        relu="relu" in ending, tf32=tf32)


def attention(dtype: DType, heads: int, key_heads: int, queries: int, keys: int, features: int,
              causal: bool = False) -> Attention:
    """Arrays as they lie behind projections: (n, rows, heads, features)."""
    def place(count: int, rows: int) -> TensorPlace:
        return TensorPlace(dtype, (2, count, rows, features),
                           (rows * count * features, features, count * features, 1), ALIGNED)

    sums = TensorPlace(float32, (2, heads, queries, 1), (heads * queries, queries, 1, 1), ALIGNED)
    return Attention(place(heads, queries), place(key_heads, keys), place(key_heads, keys), place(heads, queries), sums,
                     features ** -0.5, causal)


def masked(of: Attention, batch: int, heads: int, rows: int) -> Attention:
    """With numbers that are added to scores: of so many batches, heads and queries."""
    keys = of.key.shape[2]
    steps = (heads * rows * keys, rows * keys, keys, 1)
    return of._replace(bias=TensorPlace(float32, (batch, heads, rows, keys), steps, ALIGNED))


def gradients(of: Attention, ordered: bool) -> AttentionGradients:
    """Those of an attention."""
    return AttentionGradients(of.query, of.key, of.value, of.result, of.sums, of.result, of.query, of.key, of.value,
                              of.scale, of.causal, ordered, of.bias)


WAYS: tuple[Way, ...] = ("conv", "conv_input_gradient", "conv_kernel_gradient")
CONVOLUTIONS: dict[str, Convolution] = {
    **{f"{way} {dtype} {'last' if last else 'first'}": convolution(way, dtype, last=last)
       for way in WAYS for dtype in (float32, float16, bfloat16) for last in (True, False)},
    **{f"{way} tf32": convolution(way, float32, tf32=True) for way in WAYS},
    **{f"{way} of stride 2": convolution(way, float16, stride=2) for way in WAYS},
    **{f"{way} dilated": convolution(way, float16, dilation=2) for way in WAYS},
    **{f"{way} in groups": convolution(way, float16, groups=4) for way in WAYS},
    **{f"{way} by depth": convolution(way, float16, groups=64) for way in WAYS},
    **{f"{way} of float64": convolution(way, float64, channels=16, outputs=16) for way in WAYS},
    "three axes": convolution("conv", float16, axes=3, channels=16),
    "odd channels": convolution("conv", float32, channels=5, outputs=7),
    "bias, relu, halves": convolution("conv", float16, ending="bias relu"),
    "residual": convolution("conv", bfloat16, ending="added bias relu"),
    "bias, tf32": convolution("conv", float32, ending="bias", tf32=True),
    "bias, relu, float32": convolution("conv", float32, ending="bias relu", last=False)}
ATTENTIONS: dict[str, Attention] = {
    "heads of 64": attention(float16, 8, 8, 256, 256, 64),
    "causal": attention(bfloat16, 8, 8, 300, 300, 64, causal=True),
    "causal, more keys": attention(float16, 8, 4, 300, 400, 128, causal=True),
    "heads that share keys": attention(bfloat16, 8, 2, 300, 200, 128),
    "a mask for all": masked(attention(float16, 8, 8, 256, 256, 64), 1, 1, 256),
    "a mask of each head": masked(attention(bfloat16, 8, 2, 301, 203, 64), 2, 8, 301),
    "lengths, causal": masked(attention(bfloat16, 8, 4, 301, 301, 128, causal=True), 2, 1, 1)}
GRADIENTS: dict[str, AttentionGradients] = {
    f"{'ordered gradients' if ordered else 'gradients'}, {name}": gradients(of, ordered)
    for name, of in ATTENTIONS.items() for ordered in (True, False)}
PROBLEMS: dict[str, Problem] = {**CONVOLUTIONS, **ATTENTIONS, **GRADIENTS}


def _wrong() -> dict[str, Problem]:
    """Problems that contradict themselves."""
    right, heads = convolution("conv", float16), ATTENTIONS["heads that share keys"]
    x, kernel, y = right.x, right.kernel, right.y
    wider = y._replace(shape=(*y.shape[:-1], y.shape[-1] + 1))
    return {
        "results of another size": right._replace(y=wider),
        "channels that no group has": right._replace(kernel=kernel._replace(shape=(64, 60, 3, 3))),
        "fewer zeros than windows see": right._replace(before=(0, 1)),
        "axes that are missing": right._replace(strides=(1,)),
        "an axis of no length": right._replace(x=x._replace(shape=(0, *x.shape[1:]))),
        "half an element's alignment": right._replace(x=x._replace(alignment=1)),
        "a gradient of another size": convolution("conv_input_gradient", float16)._replace(y=wider),
        "keys of other features": heads._replace(key=heads.key._replace(shape=(*heads.key.shape[:-1], 64))),
        "more values than keys": heads._replace(value=heads.value._replace(shape=(2, 2, 400, 128))),
        "more results than queries": gradients(heads, ordered=True)._replace(
            result=heads.result._replace(shape=(2, 8, 400, 128)))}


WRONG = _wrong()
