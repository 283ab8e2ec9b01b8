"""Owl's way: symbols are assigned, graphs evaluated, and only what an assignment invalidates is evaluated again."""

from __future__ import annotations

import numpy as np

import nnc_core as nnc


def main() -> None:
    a = nnc.var_arr("a", shape=(2, 2))
    b = nnc.var_elt("b")
    c = nnc.const_elt(3.0)
    product = a * c
    y = nnc.sum(product + b)

    nnc.assign(a, np.ones((2, 2)))
    nnc.assign(b, 2.0)
    nnc.eval_elt([y])
    print(f"sum(3a + b) = {nnc.unpack_elt(y)}")
    assert nnc.unpack_elt(y) == 20

    nnc.assign(b, 0.5)  # a * c stays valid, only the sum is computed anew
    nnc.eval_elt([y])
    print(f"with another b: {nnc.unpack_elt(y)}")
    assert nnc.unpack_elt(y) == 14
    assert (nnc.unpack_arr(product) == 3).all()

    graph = nnc.make_graph([a, b], [y], "example")
    print(graph)
    nnc.eval_graph(graph)


if __name__ == "__main__":
    main()
