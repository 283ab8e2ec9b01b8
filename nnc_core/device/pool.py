"""Pool of a device: memory that nobody refers to any more is handed out again.

A *block* is memory that the device has reserved.  Whoever allocates gets a buffer of his own on a block, the *claim*:
everything that can reach the memory refers to the claim (arrays, views, exports, launches, work that waits), and when
it is gone the block is idle.  Compiled graphs bind blocks, which stay, and give claims to their callers: so what they
have bound holds for as long as the same blocks come back, and keeps no result alive.
"""

from __future__ import annotations

import gc
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from sys import getrefcount
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from nnc_core.base.errors import DeviceError, DeviceMemoryError
from nnc_core.device.buffer import Buffer

if TYPE_CHECKING:
    from nnc_core.device.device import Device
    from nnc_core.device.stream import Stream

Key: TypeAlias = tuple[int, Any]
"""Number of bytes, and the stream whose work may use the memory next; None is the default stream."""


class MemoryInfo(NamedTuple):
    """Bytes of a device.  `free`: those that can be allocated, `pooled` and `kept` among them, which are given back
    when they are needed; `total`: all; None where the device cannot tell.  `used` are held by buffers, `pooled` are
    idle in the pool, `kept` those of `used` that compiled programs hold for their next run."""

    free: int | None
    total: int | None
    used: int
    pooled: int
    kept: int


class Follower(Protocol):
    """Keeps blocks bound, and forgets those that the pool gives back."""

    def forget(self, blocks: frozenset[int]) -> None:
        """Let go of the buffers with these ids."""


class _Block:
    """Memory of a device.  `link`: a buffer on it of which every claim is made, where the claim's end is known by the
    references to that."""

    __slots__ = ("buffer", "key", "link")

    def __init__(self, buffer: Buffer, key: Key, link: Buffer | None) -> None:
        self.buffer, self.key, self.link = buffer, key, link


class _Claim(weakref.ref[Any]):
    """The buffer that a holder has of a block; `block` is None where the memory goes back to the device."""

    __slots__ = ("block", "id", "nbytes")
    block: _Block | None
    id: int
    nbytes: int


class Pool:
    """Blocks of one device, in use and idle; any thread may claim, and claims end anywhere, in the collector too.

    `limit`: bytes that may be idle; those not used for longest are given back first.  `retired` is called with the
    buffer of each block that becomes idle.
    """

    def __init__(self, limit: int, retired: Callable[[Any], None] | None = None) -> None:
        self.limit, self.retired = limit, retired
        self.given_back = 0
        """Number of times that blocks have gone back to the device."""
        self._idle: dict[Key, dict[int, _Block]] = {}
        self._pooled = self._reserved = 0
        self._blocks: dict[int, _Block] = {}
        self._claims: dict[int, _Claim] = {}
        self._ended: deque[_Claim] = deque()
        self._followers: dict[int, weakref.ref[Follower]] = {}
        self._lock = threading.Lock()

    # ---- claims
    def claim(self, device: Device, nbytes: int, stream: Stream | None = None,
              prefer: Any = None) -> tuple[Buffer, Buffer]:
        """(buffer of a block, the claim on it); both are the same where the memory is not pooled.  The block whose
        buffer is `prefer` is taken if it is idle."""
        key = (nbytes, None if stream is None or stream is device.default_stream else stream)
        block = self._take(key, id(prefer))
        if block is None:
            buffer = self._reserve(device, nbytes)
            if not 0 < nbytes <= self.limit:
                return buffer, self._claimed(buffer, None, nbytes)
            block = _made(device, buffer, key)
            self._blocks[id(buffer)] = block
        source = block.buffer if block.link is None else block.link
        return block.buffer, self._claimed(device.alias(source), block, nbytes)

    def claim_each(self, device: Device, sizes: Sequence[int]) -> list[Buffer]:
        """The claims on a block of each of several sizes, for the default stream."""
        with self._lock:
            if self._ended:
                self._settle()
            blocks = [self._idle_block((nbytes, None), 0) for nbytes in sizes]
        found: list[Any] = []
        for block, nbytes in zip(blocks, sizes):  # noqa: B905 as many, at each call
            if block is None:
                found.append(None)
            else:
                source = block.buffer if block.link is None else block.link
                found.append(self._claimed(device.alias(source), block, nbytes))
        if None in blocks:  # now that those which were idle cannot get lost
            found = [self.claim(device, nbytes)[1] if claim is None else claim
                     for claim, nbytes in zip(found, sizes, strict=True)]
        return found

    def block_of(self, buffer: Any) -> Buffer | None:
        """The buffer of the block on which a buffer is the claim; None for any other."""
        claim = self._claims.get(id(buffer))
        return None if claim is None or claim.block is None else claim.block.buffer

    def is_claim(self, buffer: Any) -> bool:
        """Tell whether the memory is reached through this buffer alone."""
        return id(buffer) in self._claims

    def owns(self, buffer: Any) -> bool:
        """Tell whether this is the buffer of a block."""
        return id(buffer) in self._blocks

    def _claimed(self, buffer: Buffer, block: _Block | None, nbytes: int) -> Buffer:
        try:
            claim = _Claim(buffer, self._end)
        except TypeError as error:
            raise DeviceError(f"memory cannot be pooled: {error}", hint="add __weakref__ to the __slots__") from error
        claim.block, claim.id, claim.nbytes = block, id(buffer), nbytes
        self._claims[claim.id] = claim
        return buffer

    def _end(self, claim: Any) -> None:
        """The holder's buffer is gone.  It runs wherever that happens, so it waits for no lock."""
        self._claims.pop(claim.id, None)
        self._ended.append(claim)
        if self._pooled + claim.nbytes > self.limit:
            self.settle()

    def _take(self, key: Key, prefer: int) -> _Block | None:
        with self._lock:
            if self._ended:
                self._settle()
            return self._idle_block(key, prefer)

    def _idle_block(self, key: Key, prefer: int) -> _Block | None:
        """One that is idle no longer; the lock is held."""
        row = self._idle.pop(key, None)
        if row is None:
            return None
        block = row.pop(prefer, None) or row.popitem()[1]
        if row:
            self._idle[key] = row  # now the last: that used latest
        self._pooled -= key[0]
        return block

    # ---- idle memory
    def settle(self) -> None:
        """See what is idle now, and give back what is too much."""
        while self._ended and self._lock.acquire(blocking=False):
            before = len(self._ended)
            try:
                self._settle()
                gone = [*self._surplus()]
            finally:
                self._lock.release()
            self._forget(gone)
            if len(self._ended) >= before:  # what is left is still seen by somebody
                return

    def _settle(self) -> None:
        for _ in range(len(self._ended)):
            claim = self._ended.popleft()
            block = claim.block
            if block is None:
                self._reserved -= claim.nbytes
            elif block.link is not None and getrefcount(block.link) > _UNCLAIMED:
                self._ended.append(claim)  # the collector says early that something is gone
            else:
                if self.retired is not None:
                    self.retired(block.buffer)
                self._idle.setdefault(block.key, {})[id(block.buffer)] = block
                self._pooled += claim.nbytes

    def _surplus(self) -> Iterator[_Block]:
        """Blocks taken out until half of what may be idle is left, so that it is not done for each of them."""
        if self._pooled > self.limit:
            while self._idle and self._pooled > self.limit // 2:
                yield self._out(next(iter(self._idle)))

    def _out(self, key: Key) -> _Block:
        row = self._idle[key]
        block = row.pop(next(iter(row)))
        if not row:
            del self._idle[key]
        self._pooled -= key[0]
        self._reserved -= key[0]
        del self._blocks[id(block.buffer)]
        return block

    def trim(self) -> int:
        """Give back everything that is idle; the number of bytes."""
        with self._lock:
            self._settle()
            before = self._pooled
            gone = [self._out(next(iter(self._idle))) for _ in range(sum(map(len, self._idle.values())))]
        self._forget(gone)
        return before

    def _forget(self, gone: list[_Block]) -> None:
        if gone:
            self.given_back += 1
            ids = frozenset([id(block.buffer) for block in gone])
            for reference in list(self._followers.values()):  # a tuple is made while the collector may take some out
                follower = reference()
                if follower is not None:
                    follower.forget(ids)

    def follow(self, follower: Follower) -> None:
        """Tell it from now on which blocks are given back."""
        key = id(follower)
        self._followers[key] = weakref.ref(follower, lambda _: self._followers.pop(key, None))

    # ---- memory of the device
    def _reserve(self, device: Device, nbytes: int) -> Buffer:
        """Fresh memory; if there is none, once more without what is idle or waits for the collector."""
        try:
            buffer = device.reserve(nbytes)
        except DeviceMemoryError:
            spec = device.spec
            if nbytes > min(spec.max_allocation or nbytes, spec.memory or nbytes):
                raise
            gc.collect()
            if not device.trim():
                raise
            buffer = device.reserve(nbytes)
        with self._lock:
            self._reserved += nbytes
        return buffer

    @property
    def pooled(self) -> int:
        """Bytes that are idle."""
        self.settle()
        return self._pooled

    @property
    def used(self) -> int:
        """Bytes that buffers hold."""
        self.settle()
        return self._reserved - self._pooled


def _made(device: Device, buffer: Buffer, key: Key) -> _Block:
    """A block of fresh memory.  The collector calls back for what it is about to destroy, but only where it tracks the
    object itself: then a link tells what is really gone."""
    link = device.alias(buffer)
    return _Block(buffer, key, link if gc.is_tracked(link) else None)


def _references_to_a_link() -> int:
    block = _Block(object(), (0, None), object())  # type: ignore[arg-type]
    return getrefcount(block.link)


_UNCLAIMED = _references_to_a_link()
