# SPDX-License-Identifier: Apache-2.0
"""Functions in which planted faults once stayed unseen."""

import numpy as np
import pytest
import weft
from present import built
from weft import te


def tensor(values, dtype="float64"):
    return weft.Tensor(weft.asarray(np.array(values, dtype)), requires_grad=True)


@pytest.mark.parametrize(
    ("points", "values", "of_values"),
    [
        ([1.0, 3.0, 3.0], [2.0, 5.0, 7.0], [2.0, 0.0, 2.0]),
        ([3.0, 3.0, 4.0], [2.0, 5.0, 7.0], [2.0, 1.0, 1.0]),
        ([3.0], [2.0], [4.0]),
    ],
)
def test_interp_with_points_that_meet_has_finite_gradients(points, values, of_values):
    fp, x = tensor(values), tensor([0.5, 1.0, 3.0, 9.0])
    y = weft.interp(x, np.array(points), fp)
    assert y.tolist() == np.interp(x.tolist(), points, values).tolist()
    y.sum().backward()
    assert x.grad.tolist() == [0.0] * 4
    assert fp.grad.tolist() == of_values


def test_the_first_nan_of_a_window_gets_the_gradient():
    for dtype in ("float32", "float64"):
        x = tensor([[[[1.0, np.nan, np.nan, 2.0], [0.0, 5.0, 5.0, 1.0]]]], dtype)
        weft.nn.functional.max_pool2d(x, (2, 4)).sum().backward()
        assert x.grad.tolist() == [[[[0, 1, 0, 0], [0, 0, 0, 0]]]]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_columns_of_16_bits_times_a_vector(dtype):
    rng = np.random.default_rng(5)
    a, x = rng.integers(-3, 4, (29, 70)), rng.integers(-3, 4, 29)
    got = weft.asarray(a).astype(dtype).T @ weft.asarray(x).astype(dtype)
    assert got.astype("float64").tolist() == (a.T @ x).tolist()


@pytest.mark.parametrize("axis", range(3))
def test_concat_of_turned_arrays(axis):
    rng = np.random.default_rng(6)
    for order in ((1, 2, 0), (2, 0, 1), (0, 2, 1)):
        a, b = (rng.integers(0, 99, (4, 4, 4)) for _ in range(2))
        got = weft.concat([weft.permute_dims(weft.asarray(x), order) for x in (a, b)], axis=axis)
        want = np.concatenate([a.transpose(order), b.transpose(order)], axis)
        assert np.array_equal(got.numpy(), want), order


def test_nan_with_low_bits_stays_nan_in_bfloat16():
    n = 8
    x = te.placeholder((n,), "float32", name="X")
    y = te.compute((n,), lambda i: x[i].astype("bfloat16"), name="Y")
    f = te.create_prim_func([x, y])
    bits = np.array(
        [0x7F800001, 0xFF800001, 0x7F80FFFF, 0x7FC00000, 0x3F800000, 0x7F800000, 1, 0xFF80FFFF],
        "uint32",
    )
    for target in ("cpu", "c"):
        out = weft.zeros((n,), dtype="bfloat16")
        weft.build(f, target=target)["main"](weft.asarray(bits.view("float32")), out)
        got = out.astype("float32").numpy()
        assert np.array_equal(np.isnan(got), np.isnan(bits.view("float32"))), target


@pytest.mark.parametrize("name", ["qpu", "wse:4x4"])
def test_positions_from_both_ends_on_machines(name):
    built(name.partition(":")[0])
    x = weft.asarray(np.arange(6, dtype="float32"), device=name)
    at = weft.asarray(np.array([-1, 2, -6, 0], "int32"), device=name)
    assert x[at].numpy().tolist() == [5, 2, 0, 0]


@pytest.mark.parametrize(
    ("blocks", "threads", "most"), [(70000, 1024, None), (2, 1025, 1024), (2**31, 1, 2**31 - 1)]
)
def test_axes_of_metal_have_their_own_limits(blocks, threads, most):
    built("metal")
    n = blocks * threads
    program = weft.script.from_source(f"""
@T.prim_func
def main(X: T.Buffer(({n},), "float32")):
    for i in T.thread_binding({blocks}, thread="blockIdx.x"):
        for j in T.thread_binding({threads}, thread="threadIdx.x"):
            with T.block("b"):
                v = T.axis.spatial({n}, T.Cast("int64", i) * {threads} + j)
                X[v] = X[v] * T.float32(2)
""")
    if most is None:
        assert "kernel void" in weft.build(program, target="metal").source()
        return
    refused = weft.accepts(program, "metal")
    if refused is None:
        with pytest.raises(weft.Error) as caught:
            weft.build(program, target="metal")
        refused = caught.value
    assert refused.code == "lower.axis.limit" and str(most) in refused.message


@pytest.mark.parametrize("target", ["ref", "cpu", "c", "opencl"])
def test_loops_that_end_beyond_32_bits(target):
    built(target)
    if not weft.device(target).available:
        pytest.skip(weft.device(target).reason)
    first = 2**31 - 8
    program = weft.script.from_source(f"""
@T.prim_func
def main(X: T.Buffer((12,), "int64")):
    for i in T.serial({first}, {first + 12}):
        X[i - {first}] = T.Cast("int64", i)
""")
    x = weft.zeros((12,), dtype="int64", device=target)
    weft.build(program, target=target)["main"](x)
    assert x.numpy().tolist() == [first + i for i in range(12)]


def on(target):
    built(target)
    if not weft.device(target).available:
        pytest.skip(weft.device(target).reason)
    return target


@pytest.mark.parametrize("target", ["ref", "cpu", "c"])
def test_an_empty_sum_under_a_condition_writes_where_it_holds(target):
    program = weft.script.from_source("""
@T.prim_func
def main(X: T.Buffer((8, "n"), "float32"), Y: T.Buffer((8,), "float32"), m: T.int64):
    for i, k in T.grid(8, n):
        with T.block("sum"):
            v, r = T.axis.remap("SR", [i, k])
            T.where(i < m)
            with T.init():
                Y[v] = T.float32(0)
            Y[v] = Y[v] + X[v, r]
""")
    built = weft.build(program, target=on(target))
    for n in (0, 3):
        y = weft.full((8,), 77, dtype="float32", device=target)
        built["main"](weft.ones((8, n), device=target), y, 5)
        assert y.numpy().tolist() == [n] * 5 + [77] * 3


@pytest.mark.parametrize("target", ["cpu", "c", "opencl"])
@pytest.mark.parametrize("compare", ["8 < {v}", "8 <= {v}", "8 > {v}", "8 >= {v}", "{v} < 8", "{v} <= 8", "{v} > 8", "{v} >= 8", "k < {v}", "k >= {v}", "{v} > k", "{v} <= k"])  # fmt: skip
def test_conditions_inside_vectors(target, compare):
    program = weft.script.from_source(f"""
@T.prim_func
def main(Y: T.Buffer((32,), "float32")):
    for i in range(4):
        for k in range(1):
            for j in T.vectorized(8):
                if {compare.format(v="i * 8 + j").replace("k", "k * 8 + 8")}:
                    Y[i * 8 + j] = T.float32(1)
""")
    y = weft.zeros((32,), device=on(target))
    weft.build(program, target=target)["main"](y)
    want = [float(eval(compare.format(v="v").replace("k", "8"), {"v": v})) for v in range(32)]
    assert y.numpy().tolist() == want
