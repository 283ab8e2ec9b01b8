"""Commands as numbers, for orders to be found: what each waits for, and which blocks of memory it uses."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from nnc_core.engine.scheduling.footprint import Footprint

Order = list[int]
Links = Sequence[Sequence[int]]


class Problem:
    """A block lives from the first command that uses it to the last, whether that makes or reads what is in it: so the
    same problem turned round, with users before what they use, has the same orders, backwards, at the same cost."""

    def __init__(self, footprint: Footprint, before: Links, users: Links) -> None:
        self.footprint, self.before, self.users = footprint, before, users
        self.sizes, self.scratch = footprint.sizes, footprint.scratch
        self.uses = [_uses(footprint, n) for n in range(len(footprint))]
        """The blocks of each command, each once, with how often it uses them; none that has no bytes."""
        self.outstanding = [0] * len(footprint.block)
        self.users_of = [0] * len(footprint.block)
        """For each block the sum of the numbers of its commands, one for each use."""
        for n, uses in enumerate(self.uses):
            for b, k in uses:
                self.outstanding[b] += k
                self.users_of[b] += n * k

    def __len__(self) -> int:
        return len(self.uses)

    def turned(self) -> Problem:
        """The problem backwards: commands use the same blocks."""
        turned = copy(self)
        turned.before, turned.users = self.users, self.before
        return turned


def _uses(footprint: Footprint, n: int) -> tuple[tuple[int, int], ...]:
    sizes, block = footprint.sizes, footprint.block
    used = [b for v in (*footprint.makes[n], *footprint.reads[n]) if sizes[b := block[v]]]
    return tuple([(b, used.count(b)) for b in dict.fromkeys(used)])


class Frontier:
    """The commands that have run so far, and what running another one would change."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.waits = [len(needed) for needed in problem.before]
        self.done = [False] * len(problem)
        self.live = 0
        self._left = list(problem.outstanding)
        self._users_left = list(problem.users_of)

    def ready(self) -> list[int]:
        return [n for n, waits in enumerate(self.waits) if not waits and not self.done[n]]

    def change(self, n: int) -> int:
        """Bytes that live after a command more than before it, if it runs next."""
        p, left, change = self.problem, self._left, 0
        outstanding, sizes = p.outstanding, p.sizes
        for b, k in p.uses[n]:
            uses = left[b]
            if uses == outstanding[b]:
                change += sizes[b]
            if uses == k:
                change -= sizes[b]
        return change

    def needs(self, n: int) -> int:
        """Bytes that live while a command runs, if it runs next: at most, since it may work in place."""
        p, left = self.problem, self._left
        begun = sum([p.sizes[b] for b, _ in p.uses[n] if left[b] == p.outstanding[b]])
        return self.live + begun + p.scratch[n]

    def run(self, n: int) -> list[int]:
        """Run a command; gives those that can run now and could not, or that would change less than before."""
        p, left, users_left, waits, touched = self.problem, self._left, self._users_left, self.waits, list[int]()
        self.live += self.change(n)
        self.done[n] = True
        for b, k in p.uses[n]:
            uses = left[b] = left[b] - k
            users = users_left[b] = users_left[b] - n * k
            if uses == 1 and not waits[users]:
                touched.append(users)
        for m in p.users[n]:
            waits[m] -= 1
            if not waits[m]:
                touched.append(m)
        return touched
