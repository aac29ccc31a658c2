# SPDX-License-Identifier: Apache-2.0
"""What single-line faults once survived: keys of the cache, index widths at 2^31, dropout of one-layer recurrences,
ties in gradients."""

import numpy as np
import pytest
import weft
from weft import script as T


@T.prim_func
def scale(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        with T.block("B"):
            vi = T.axis.remap("S", [i])
            B[vi] = A[vi] * T.float32(3)


@pytest.mark.skipif(not weft.device("c").available, reason="no C compiler")
def test_compiler_and_flags_are_part_of_the_caches_key():
    module = weft.build(scale, target="c")
    x = np.arange(64, dtype=np.float32)

    def run(device):
        a, b = weft.asarray(x, device=device), weft.zeros((64,), dtype="float32", device=device)
        module(a, b)
        return b.numpy()

    assert np.array_equal(run("c"), 3 * x)  # now it is cached
    with pytest.raises(weft.Error) as caught:
        weft.build(scale, target="c:flags=-O2 -fno-such-flag")(
            weft.asarray(x, device="c:flags=-O2 -fno-such-flag"),
            weft.zeros((64,), dtype="float32", device="c:flags=-O2 -fno-such-flag"),
        )
    assert caught.value.code == "c.compiler.refused"


@pytest.mark.parametrize("last, wide", [(2**31 - 1, False), (2**31, True), (2**32 + 5, True)])
def test_indices_are_narrow_only_where_they_fit(last, wide):
    base = last - 3 * 256

    text = f"""
@T.prim_func
def main(A: T.Buffer(({last + 1},), "int8")):
    for b in T.thread_binding(4, thread="blockIdx.x"):
        for t in T.thread_binding(1, thread="threadIdx.x"):
            with T.block("A"):
                vb = T.axis.spatial(4, b)
                A[vb * 256 + {base}] = T.int8(1)
"""
    source = weft.build(T.from_source(text), target="cuda:arch=sm_80").source()
    body = source[source.index("main") :]
    assert ("long" in body) == wide, body


def test_one_layer_recurrences_drop_nothing():
    for layer in (weft.nn.RNN, weft.nn.LSTM, weft.nn.GRU):
        weft.random.seed(1)
        net = layer(3, 5, num_layers=1, dropout=0.9)
        net.train()
        x = weft.Tensor(weft.ones((4, 2, 3)))
        first, again = net(x)[0], net(x)[0]
        net.eval()
        assert np.array_equal(first.numpy(), again.numpy())
        assert np.array_equal(first.numpy(), net(x)[0].numpy())


def test_two_layers_drop_between_them():
    weft.random.seed(1)
    net = weft.nn.LSTM(3, 64, num_layers=2, dropout=0.9)
    x = weft.Tensor(weft.ones((4, 2, 3)))
    assert not np.array_equal(net(x)[0].numpy(), net(x)[0].numpy())


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_ties_give_the_gradient_once(name):
    x = weft.Tensor(weft.asarray([1.0, 2.0, 3.0, -0.0]), requires_grad=True)
    y = weft.Tensor(weft.asarray([1.0, 5.0, 0.0, 0.0]), requires_grad=True)
    getattr(weft, name)(x, y).sum().backward()
    # To the first of equals.
    first = {"maximum": [1, 0, 1, 1], "minimum": [1, 1, 0, 1]}[name]
    assert x.grad.numpy().tolist() == first
    assert y.grad.numpy().tolist() == [1 - g for g in first]
