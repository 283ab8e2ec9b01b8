from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from nnc_core.base.errors import DataError
from nnc_core.data import batches, permutation, shift_images, translate_images

SEEDS = st.integers(0, 2**64 - 1)


@given(n=st.integers(0, 300), seed=SEEDS, stream=SEEDS)
def test_permutation_holds_every_number_once_and_is_repeatable(n: int, seed: int, stream: int) -> None:
    order = permutation(n, seed=seed, stream=stream)
    assert order.dtype == np.int64
    np.testing.assert_array_equal(np.sort(order), np.arange(n))
    np.testing.assert_array_equal(order, permutation(n, seed=seed, stream=stream))


def test_permutation_never_changes_between_versions() -> None:
    np.testing.assert_array_equal(permutation(10, seed=1, stream=2), [4, 2, 0, 6, 1, 5, 9, 8, 7, 3])


@given(n=st.integers(1, 300), batch_size=st.integers(1, 50), seed=SEEDS, epoch=st.integers(0, 1000))
def test_batches_cover_every_example_once(n: int, batch_size: int, seed: int, epoch: int) -> None:
    parts = list(batches(n, batch_size, seed=seed, epoch=epoch, drop_last=False))
    assert [len(part) for part in parts[:-1]] == [batch_size] * (len(parts) - 1)
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(n))


@given(batch_size=st.integers(1, 50), full=st.integers(1, 6), rest=st.integers(0, 49), seed=SEEDS)
def test_drop_last_keeps_the_same_full_batches(batch_size: int, full: int, rest: int, seed: int) -> None:
    n = batch_size * full + rest % batch_size
    dropped = list(batches(n, batch_size, seed=seed, epoch=0))
    kept = list(batches(n, batch_size, seed=seed, epoch=0, drop_last=False))
    assert len(dropped) == full
    for one, other in zip(dropped, kept, strict=False):
        np.testing.assert_array_equal(one, other)


def test_epochs_and_seeds_give_different_orders() -> None:
    orders = {tuple(next(batches(50, 50, seed=seed, epoch=epoch))) for seed in range(4) for epoch in range(4)}
    assert len(orders) == 16


@pytest.mark.parametrize("n, size, options", [
    (0, 1, {}), (9, 10, {}), (0, 1, {"drop_last": False}),
    (9, 0, {}), (9, 3, {"seed": -1}), (9, 3, {"epoch": 2**64}),
])
def test_useless_batches_are_an_error_at_the_call(n: int, size: int, options: dict[str, int]) -> None:
    with pytest.raises(DataError):
        batches(n, size, **{"seed": 0, "epoch": 0, **options})  # type: ignore[arg-type]


def moved_by_loops(images: np.ndarray, dy: np.ndarray, dx: np.ndarray) -> np.ndarray:
    moved = np.zeros_like(images)
    count, height, width = images.shape[:3]
    for n in range(count):
        for y in range(height):
            for x in range(width):
                source_y, source_x = y - dy[n], x - dx[n]
                if 0 <= source_y < height and 0 <= source_x < width:
                    moved[n, y, x] = images[n, source_y, source_x]
    return moved


@given(data=st.data(), shape=npst.array_shapes(min_dims=3, max_dims=4, max_side=5),
       dtype=st.sampled_from(["u1", "f4"]))
def test_translation_against_loops(data: st.DataObject, shape: tuple[int, ...], dtype: str) -> None:
    images = np.arange(1, np.prod(shape) + 1).reshape(shape).astype(dtype)
    offsets = st.lists(st.integers(-7, 7), min_size=shape[0], max_size=shape[0])
    dy, dx = np.array(data.draw(offsets)), np.array(data.draw(offsets))
    moved = translate_images(images, dy, dx)
    assert moved.dtype == images.dtype
    np.testing.assert_array_equal(moved, moved_by_loops(images, dy, dx))


@pytest.mark.parametrize("limit", [0, 1, 2])
@pytest.mark.parametrize("channels", [(), (1,), (3,)])
def test_random_shifts_reach_all_of_the_limit_and_no_more(limit: int, channels: tuple[int, ...]) -> None:
    images = np.zeros((600, 9, 9, *channels), np.uint8)
    images[:, 4, 4] = 255
    before = images.copy()
    shifted = shift_images(images, limit, np.random.default_rng(0))
    np.testing.assert_array_equal(images, before)
    places = np.argwhere(shifted.reshape(600, 9, 9, -1)[..., 0])
    np.testing.assert_array_equal(places[:, 0], np.arange(600))
    reached = {(y - 4, x - 4) for _, y, x in places.tolist()}
    assert reached == {(y, x) for y in range(-limit, limit + 1) for x in range(-limit, limit + 1)}
    assert shifted.sum() == images.sum()


def test_random_shifts_repeat_with_the_generator() -> None:
    images = np.random.default_rng(3).integers(0, 256, (20, 28, 28, 1), dtype=np.uint8)
    first, again = (shift_images(images, 2, np.random.default_rng(5)) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert (first != shift_images(images, 2, np.random.default_rng(6))).any()
    assert first.flags.c_contiguous and not np.shares_memory(first, images)


def test_no_images_at_all() -> None:
    none = np.zeros((0, 28, 28, 1), np.uint8)
    assert shift_images(none, 2, np.random.default_rng(0)).shape == none.shape


@pytest.mark.parametrize("dy", [[1], [0.5, 0.5], 1, [[1, 1]]])
def test_wrong_offsets_are_named(dy: object) -> None:
    with pytest.raises(DataError, match=r"dy has shape .* expected 2 integers"):
        translate_images(np.zeros((2, 4, 4)), dy, [0, 0])  # type: ignore[arg-type]


def test_wrong_images_and_limit_are_named() -> None:
    with pytest.raises(DataError, match=r"shape \(28, 28\)"):
        shift_images(np.zeros((28, 28)), 2, np.random.default_rng(0))
    with pytest.raises(DataError, match="limit is -1"):
        shift_images(np.zeros((2, 4, 4)), -1, np.random.default_rng(0))
