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
    without_a_shape()


def without_a_shape() -> None:
    """Shapes are inferred when a symbol is assigned; a graph is compiled for each that comes."""
    x = nnc.var_arr("x")
    norm = nnc.sqrt(nnc.sum(x * x, axis=-1))
    graph = nnc.make_graph([x], {"norm": norm, "slope": nnc.grad(lambda x: nnc.sum(nnc.tanh(x)))(x)}, "any_shape")
    print(graph)
    compiled = graph.symbolic.compile()
    for host in (np.full((2, 4), 0.5), np.full((3, 1), 2.0), np.full((2, 2, 4), 0.5)):
        nnc.assign(x, host)
        nnc.eval_graph(graph)
        print(f"{x.shape} -> {norm.shape}")
        assert (nnc.unpack_arr(norm) == compiled(x=host)["norm"].numpy()).all()



if __name__ == "__main__":
    main()
