"""Networks in PyTorch that mirror ours: the same parts in the same order of definition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from benchmarks._inference import CLASSES, FEATURES, HEADS, HIDDEN, drawn, input_of

torch: Any = import_module("torch")
nn, F = torch.nn, torch.nn.functional


def conv_norm(inputs: int, outputs: int, size: int, stride: int = 1, groups: int = 1, activation: Any = None) -> Any:
    conv = nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), *([] if activation is None else [activation(inplace=True)]))


class Residual(nn.Module):  # type: ignore[misc,name-defined]
    """The sum of a body and a shortcut, and what follows it."""

    def __init__(self, body: Any, shortcut: Any, activation: Any) -> None:
        super().__init__()
        self.body, self.shortcut, self.activation = body, shortcut, activation

    def forward(self, x: Any) -> Any:
        return self.activation(self.body(x) + self.shortcut(x))


def bottleneck(inputs: int, width: int, stride: int) -> Any:
    body = nn.Sequential(conv_norm(inputs, width, 1, activation=nn.ReLU),
                         conv_norm(width, width, 3, stride, activation=nn.ReLU), conv_norm(width, 4 * width, 1))
    same = inputs == 4 * width
    return Residual(body, nn.Identity() if same else conv_norm(inputs, 4 * width, 1, stride), nn.ReLU(inplace=True))


def resnet50() -> Any:
    layers, inputs = [conv_norm(3, 64, 7, 2, activation=nn.ReLU), nn.MaxPool2d(3, 2, 1)], 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for i in range(blocks):
            layers.append(bottleneck(inputs, 64 * 2**stage, 2 if stage and not i else 1))
            inputs = 256 * 2**stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, CLASSES))


def inverted(inputs: int, outputs: int, expansion: int, stride: int) -> Any:
    inner = inputs * expansion
    first = [conv_norm(inputs, inner, 1, activation=nn.ReLU6)] if expansion != 1 else []
    body = nn.Sequential(*first, conv_norm(inner, inner, 3, stride, inner, nn.ReLU6), conv_norm(inner, outputs, 1))
    return Residual(body, nn.Identity(), nn.Identity()) if stride == 1 and inputs == outputs else body


def mobilenet() -> Any:
    layers, inputs = [conv_norm(3, 32, 3, 2, activation=nn.ReLU6)], 32
    for expansion, outputs, blocks, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
                                               (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for i in range(blocks):
            layers.append(inverted(inputs, outputs, expansion, 1 if i else stride))
            inputs = outputs
    return nn.Sequential(*layers, conv_norm(inputs, 1280, 1, activation=nn.ReLU6), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Linear(1280, CLASSES))


BUILT: dict[str, Callable[[], Any]] = {
    "resnet50": resnet50,
    "mobilenet": mobilenet,
    "encoder block": lambda: nn.TransformerEncoderLayer(FEATURES, HEADS, HIDDEN, activation="gelu", batch_first=True),
}


def network(name: str) -> Any:
    """A network with the weights that all frameworks have."""
    module = BUILT[name]().eval()
    with torch.no_grad():
        for number, slot in enumerate(slots(module)):
            slot.copy_(torch.from_numpy(drawn(number, tuple(slot.shape))))
    return module


def slots(module: Any) -> Iterator[Any]:
    """Weights in our order, seen in our order of axes: inputs before outputs."""
    if isinstance(module, nn.TransformerEncoderLayer):
        yield from slots_of_encoder(module)
        return
    for x in module.parameters():
        yield x.permute(2, 3, 1, 0) if x.ndim == 4 else x.T if x.ndim == 2 else x
    for x in module.buffers():
        if x.is_floating_point():
            yield x


def slots_of_encoder(layer: Any) -> Iterator[Any]:
    attention, n = layer.self_attn, FEATURES
    projections = [(attention.in_proj_weight[k * n:][:n], attention.in_proj_bias[k * n:][:n]) for k in range(3)]
    linear = [(part.weight, part.bias) for part in (layer.linear1, layer.linear2)]
    for weight, bias in (*linear, *projections, (attention.out_proj.weight, attention.out_proj.bias)):
        yield weight.T
        yield bias
    for norm in (layer.norm1, layer.norm2):
        yield norm.weight
        yield norm.bias


class WrittenOut(nn.Module):  # type: ignore[misc,name-defined]
    """An encoder block by elementary operators, as the exporter to ONNX wants it."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Any) -> Any:
        layer, attention = self.layer, self.layer.self_attn
        projected = F.linear(x, attention.in_proj_weight, attention.in_proj_bias)
        heads = projected.view(*x.shape[:2], 3 * HEADS, FEATURES // HEADS).transpose(1, 2)
        y = F.scaled_dot_product_attention(*heads.chunk(3, 1)).transpose(1, 2).reshape(x.shape)
        x = layer.norm1(x + attention.out_proj(y))
        return layer.norm2(x + layer.linear2(F.gelu(layer.linear1(x))))


def exportable(name: str) -> Any:
    """A network that the exporter to ONNX takes."""
    made = network(name)
    return WrittenOut(made) if isinstance(made, nn.TransformerEncoderLayer) else made


def example(name: str, batch: int) -> Any:
    """The input that all frameworks have, with images' channels first."""
    x = torch.from_numpy(input_of(name, batch))
    return x.permute(0, 3, 1, 2).contiguous() if x.ndim == 4 else x
