"""Mask R-CNN: its parts against formulas and NumPy, its losses, and that a small one learns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn, optim
from nnc_core.base.errors import ShapeError
from nnc_core.nn import zoo
from nnc_core.nn.zoo.detection.anchors import RATIOS, anchors_of
from nnc_core.nn.zoo.detection.boxes import OF_ANCHORS, OF_REGIONS, clipped, decoded, encoded
from nnc_core.nn.zoo.detection.heads import pooled, region_levels
from nnc_core.nn.zoo.detection.losses import mask_loss, proposal_losses, region_losses
from nnc_core.nn.zoo.detection.proposals import Found, ProposalSettings, proposed
from nnc_core.nn.zoo.detection.pyramid import FeaturePyramid, freeze_batch_norm
from nnc_core.nn.zoo.resnet import Bottleneck, ResNet

pytestmark = pytest.mark.filterwarnings("ignore:.* has no kernel on strict")

Array = Any


def some_boxes(rng: np.random.Generator, *shape: int, size: float = 64) -> Array:
    low = rng.uniform(0, size / 2, (*shape, 2))
    return np.concatenate([low, low + rng.uniform(4, size / 2, (*shape, 2))], axis=-1).astype(np.float32)


def small(classes: int = 3, layout: str = "NHWC") -> zoo.MaskRCNN:
    nnc.manual_seed(0)
    backbone = ResNet(Bottleneck, (1, 1, 1, 1), 1, width=2, layout=layout)
    return zoo.MaskRCNN(backbone, classes, features=4, hidden=8, proposals=zoo.ProposalSettings(20, 12),
                        detections=zoo.DetectionSettings(5, 15, 0.0), layout=layout)


# ---- boxes
@pytest.mark.parametrize("weights", [OF_ANCHORS, OF_REGIONS])
def test_boxes_come_back_from_their_differences(weights: Any, rng: np.random.Generator) -> None:
    boxes, references = (nnc.asarray(some_boxes(rng, 3, 5)) for _ in range(2))
    back = decoded(encoded(boxes, references, weights), references, weights)
    np.testing.assert_allclose(back.numpy(), boxes.numpy(), rtol=1e-4, atol=1e-3)


def test_differences_by_hand() -> None:
    box, reference = nnc.asarray([[10.0, 20.0, 30.0, 60.0]]), nnc.asarray([[0.0, 0.0, 10.0, 20.0]])
    found = encoded(box, reference, OF_REGIONS).numpy()
    np.testing.assert_allclose(found, [[15.0, 15.0, 5 * np.log(2), 5 * np.log(2)]], rtol=1e-6)


def test_boxes_that_would_grow_without_bounds_are_held() -> None:
    unit = nnc.asarray([[0.0, 0.0, 1.0, 1.0]])
    box = decoded(nnc.asarray([[0.0, 0.0, 1e4, 1e4]]), unit, OF_ANCHORS).numpy()
    np.testing.assert_allclose(box[:, 2:] - box[:, :2], 1000 / 16, rtol=1e-4)


def test_clipped_boxes_lie_in_the_image() -> None:
    box = clipped(nnc.asarray([[-3.0, 5.0, 70.0, 90.0]]), 32, 48).numpy()
    np.testing.assert_array_equal(box, [[0, 5, 48, 32]])


def test_anchors_by_formula() -> None:
    found = anchors_of((2, 3), stride=8, size=32)
    assert found.shape == (2 * 3 * len(RATIOS), 4)
    for i, box in enumerate(found):
        row, column, ratio = i // 9, i // 3 % 3, RATIOS[i % 3]
        half = np.round(np.array([32 / np.sqrt(ratio), 32 * np.sqrt(ratio)]) / 2)
        np.testing.assert_array_equal((box[:2] + box[2:]) / 2, [8 * column, 8 * row])
        np.testing.assert_array_equal(box[2:] - box[:2], 2 * half)


# ---- the pyramid
def test_constant_normalisation_keeps_names_and_values() -> None:
    network = ResNet(Bottleneck, (1, 1), 3, width=2)
    x = nnc.asarray(np.random.default_rng(0).normal(size=(2, 16, 16, 3)).astype(np.float32))
    network(x)  # moves the moments
    expected, names = network.eval()(x).numpy(), set(network.cells())
    trained = set(network.named_parameters())
    freeze_batch_norm(network)
    state = network.state_dict()
    np.testing.assert_array_equal(network.train()(x).numpy(), expected)
    assert set(network.cells()) == names
    assert trained - set(network.named_parameters()) == {n for n in trained if n.endswith((".scale", ".1.bias"))}
    assert all(np.array_equal(a, state[name]) for name, a in network.state_dict().items())


def test_a_pyramid_adds_what_is_above() -> None:
    pyramid = FeaturePyramid((2, 3), 4)
    features = [nnc.ones((1, 4, 4, 2)), nnc.ones((1, 2, 2, 3))]
    low, high, highest = pyramid(features)
    assert [x.shape for x in (low, high, highest)] == [(1, 4, 4, 4), (1, 2, 2, 4), (1, 1, 1, 4)]
    inner = [layer(x) for layer, x in zip(pyramid.inner, features, strict=True)]
    above = nnc.upsample(inner[1], 2)
    np.testing.assert_allclose(low.numpy(), pyramid.outer[0](inner[0] + above).numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(highest.numpy(), high.numpy()[:, ::2, ::2])


def test_regions_are_read_from_the_level_of_their_size(rng: np.random.Generator) -> None:
    sides = np.array([10, 112, 223, 224, 448, 2000.0])
    boxes = np.stack([0 * sides, 0 * sides, sides, sides], axis=1).astype(np.float32)
    levels = region_levels(nnc.asarray(boxes), 4).numpy()
    np.testing.assert_array_equal(levels, [0, 1, 1, 2, 3, 3])
    maps = [nnc.asarray(rng.normal(size=(2, 64 >> k, 64 >> k, 2)).astype(np.float32)) for k in range(4)]
    given = nnc.asarray(np.stack([boxes[:3] / 8, boxes[3:] / 8]))
    found = pooled(maps, (4, 8, 16, 32), given, 3, "NHWC").numpy()
    chosen = region_levels(nnc.reshape(given, (-1, 4)), 4).numpy().astype(int)
    for i, level in enumerate(chosen):
        image = maps[level][i // 3 : i // 3 + 1]
        alone = nnc.roi_align(image, given[i // 3, i % 3 : i % 3 + 1], 3, scale=1 / (4 << int(level)), sampling_ratio=2)
        np.testing.assert_allclose(found[i], alone.numpy()[0], rtol=1e-5, atol=1e-6)


# ---- proposals
def overlap(a: Array, b: Array) -> float:
    low, high = np.maximum(a[:2], b[:2]), np.minimum(a[2:], b[2:])
    common = float(np.prod(np.maximum(high - low, 0)))
    return common / float(np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - common)


def proposals_by_hand(logits: list[Array], anchors: list[Array], settings: ProposalSettings) -> Array:
    """Without differences: anchors of all levels, best first, unless a better one of the level overlaps."""
    rows = [(logit, level, box) for level, (row, boxes) in enumerate(zip(logits, anchors, strict=True))
            for logit, box in sorted(zip(row, boxes, strict=True), key=lambda p: -p[0])[: settings.candidates]]
    kept: list[tuple[int, Array]] = []
    for _, level, box in sorted(rows, key=lambda row: -row[0]):
        if all(level != other or overlap(box, better) <= settings.overlap for other, better in kept):
            kept.append((level, box))
    return np.array([box for _, box in kept[: settings.proposals]])


def test_proposals_against_loops(rng: np.random.Generator) -> None:
    anchors = [some_boxes(rng, n) for n in (30, 12)]
    logits = [rng.normal(size=(2, len(a))).astype(np.float32) for a in anchors]
    found = Found([nnc.asarray(x) for x in logits], [nnc.zeros((2, len(a), 4)) for a in anchors])
    settings = ProposalSettings(10, 8, 0.3)
    boxes, there = proposed(found, [nnc.asarray(a) for a in anchors], (1000, 1000), settings, 1)
    expected = proposals_by_hand([x[1] for x in logits], anchors, settings)
    assert boxes.shape == (8, 4)
    assert int(there.numpy().sum()) == len(expected)
    np.testing.assert_allclose(boxes.numpy()[: len(expected)], expected, rtol=1e-5, atol=1e-4)
    np.testing.assert_array_equal(boxes.numpy()[len(expected) :], 0)


def test_boxes_outside_of_the_image_are_no_proposals() -> None:
    found = Found([nnc.asarray([[2.0, 1.0]])], [nnc.zeros((1, 2, 4))])
    anchors = [nnc.asarray([[100.0, 0.0, 120.0, 9.0], [1.0, 2.0, 5.0, 6.0]])]
    boxes, there = proposed(found, anchors, (10, 10), ProposalSettings(), 0)
    np.testing.assert_array_equal(boxes.numpy(), [[1, 2, 5, 6], [0, 0, 0, 0]])
    np.testing.assert_array_equal(there.numpy(), [True, False])


# ---- losses
def smooth(d: Array) -> Array:
    size = np.abs(d)
    return np.where(size < 1 / 9, 4.5 * d * d, size - 1 / 18).sum(-1)


def random_targets(rng: np.random.Generator, anchors: int, regions: int = 4, masks: int = 2, side: int = 28,
                   batch: int = 1) -> zoo.Targets:
    labels = np.array([[1, 2, 0, -1] * (regions // 4)] * batch)
    return zoo.Targets(
        nnc.asarray(rng.integers(-1, 2, (batch, anchors))), nnc.asarray(some_boxes(rng, batch, anchors)),
        nnc.asarray(some_boxes(rng, batch, regions)), nnc.asarray(labels),
        nnc.asarray(some_boxes(rng, batch, regions)),
        nnc.asarray(rng.integers(0, 2, (batch, masks, side, side)).astype(np.float32)))  # fmt: skip


def test_losses_of_proposals_by_hand(rng: np.random.Generator) -> None:
    targets, anchors = random_targets(rng, 6), some_boxes(rng, 6)
    logits, differences = rng.normal(size=(1, 6)), rng.normal(size=(1, 6, 4))
    found = proposal_losses(nnc.asarray(logits.astype(np.float32)), nnc.asarray(differences.astype(np.float32)),
                            nnc.asarray(anchors), targets)
    labels = targets.anchor_labels.numpy()[0]
    counted, wanted = labels >= 0, labels == 1
    assert 0 < wanted.sum() < counted.sum() < 6
    p = 1 / (1 + np.exp(-logits[0]))
    objectness = -np.where(wanted, np.log(p), np.log(1 - p))[counted].mean()
    aims = encoded(targets.anchor_boxes[0], nnc.asarray(anchors), OF_ANCHORS).numpy()
    boxes = smooth(differences[0] - aims)[wanted].sum() / counted.sum()
    np.testing.assert_allclose([x.numpy() for x in found], [objectness, boxes], rtol=1e-4)


def test_losses_of_regions_by_hand(rng: np.random.Generator) -> None:
    targets = random_targets(rng, 3)
    logits, differences = rng.normal(size=(4, 3)), rng.normal(size=(4, 3, 4))
    found = region_losses(nnc.asarray(logits.astype(np.float32)), nnc.asarray(differences.astype(np.float32)), targets)
    logarithms = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    classes = -(logarithms[0, 1] + logarithms[1, 2] + logarithms[2, 0]) / 3
    aims = encoded(targets.boxes[0], targets.regions[0], OF_REGIONS).numpy()
    boxes = (smooth(differences[0, 1] - aims[0]) + smooth(differences[1, 2] - aims[1])) / 3
    np.testing.assert_allclose([x.numpy() for x in found], [classes, boxes], rtol=1e-4)


@pytest.mark.parametrize("axis", [1, 3])
def test_loss_of_masks_by_hand(axis: int, rng: np.random.Generator) -> None:
    targets = random_targets(rng, 3, masks=3, side=4)
    logits = rng.normal(size=(3, 3, 4, 4))
    own = np.stack([logits[0, 1], logits[1, 2]])
    wanted = targets.masks.numpy()[0, :2]
    p = 1 / (1 + np.exp(-own))
    expected = -np.where(wanted == 1, np.log(p), np.log(1 - p)).mean()
    given = np.moveaxis(logits, 1, axis).astype(np.float32)
    np.testing.assert_allclose(mask_loss(nnc.asarray(given), targets, axis).numpy(), expected, rtol=1e-4)


def test_losses_of_nothing_are_zero() -> None:
    nothing = zoo.Targets(nnc.full((1, 3), -1), nnc.zeros((1, 3, 4)), nnc.zeros((1, 4, 4)), nnc.full((1, 4), -1),
                          nnc.zeros((1, 4, 4)), nnc.zeros((1, 2, 4, 4)))
    first = proposal_losses(nnc.ones((1, 3)), nnc.ones((1, 3, 4)), nnc.zeros((3, 4)), nothing)
    second = region_losses(nnc.ones((4, 3)), nnc.ones((4, 3, 4)), nothing)
    assert [float(x) for x in (*first, *second, mask_loss(nnc.ones((2, 4, 4, 3)), nothing, 3))] == [0.0] * 5


# ---- the whole
def images(batch: int = 1, height: int = 64, width: int = 96) -> nnc.Tensor:
    rng = np.random.default_rng(0)
    return nnc.asarray(rng.normal(size=(batch, height, width, 3)).astype(np.float32))


def test_detections_are_the_same_in_all_modes_and_for_each_image_alone() -> None:
    network, x = small().eval(), images(2)
    eager, compiled = network(x), nnc.jit(network)(x)
    assert [d.shape for d in eager] == [(2, 5, 4), (2, 5), (2, 5), (2, 5, 28, 28)]
    for a, b in zip(eager, compiled, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-3)
    for k in range(2):
        for a, b in zip(eager, network(x[k : k + 1]), strict=True):
            np.testing.assert_allclose(a.numpy()[k], b.numpy()[0], rtol=1e-4, atol=1e-3)


def test_detections_are_sorted_and_within_the_image() -> None:
    boxes, scores, labels, masks = (d.numpy()[0] for d in small().eval()(images()))
    found = labels > 0
    assert found.any()
    assert np.all(np.diff(scores) <= 0)
    assert np.array_equal(found, scores > 0)
    assert boxes.min() >= 0
    assert boxes[:, [0, 2]].max() <= 96
    assert boxes[:, [1, 3]].max() <= 64
    assert labels.max() <= 2
    assert masks.min() >= 0
    assert masks.max() <= 1


def test_layouts_have_the_same_shapes() -> None:
    x = nnc.asarray(images().numpy().transpose(0, 3, 1, 2))
    found = small(layout="NCHW").eval()(x)
    assert [d.shape for d in found] == [(1, 5, 4), (1, 5), (1, 5), (1, 5, 28, 28)]


def test_images_of_a_wrong_size() -> None:
    with pytest.raises(ShapeError, match=r"60 x 96, expected multiples of 32"):
        small()(images(height=60))


def test_proposals_carry_no_gradient() -> None:
    network = small()
    regions, there = network.propose(images())
    assert regions.shape == (1, 12, 4)
    assert there.numpy().any()
    _, grads = nn.value_and_grad(network, lambda x: nnc.sum(network.propose(x)[0]))(images())
    assert not any(np.any(g.numpy()) for g in grads.values())


def test_a_small_one_learns_alike_eagerly_and_compiled() -> None:
    x = images()
    rng = np.random.default_rng(1)
    targets = random_targets(rng, sum(int(a.shape[0]) for a in small().anchors(x)))
    runs = []
    for eager in (True, False):
        network = small()
        minimiser = optim.SGD(network.named_parameters(), learning_rate=0.01, momentum=0.9)
        loss = nn.value_and_grad(network, lambda *batch, net=network: net.losses(x, zoo.Targets(*batch)).sum)
        step = optim.make_step(loss, minimiser, eager=eager)
        runs.append([float(step(*targets).item()) for _ in range(4)])
    np.testing.assert_allclose(runs[0], runs[1], rtol=1e-5)
    assert runs[0][-1] < runs[0][0]
