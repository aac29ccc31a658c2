# SPDX-License-Identifier: Apache-2.0
"""Weights of 8 and 4 bits with scales by groups, and products by groups of rows, beside NumPy."""

import numpy as np
import pytest

import weft
from weft.nn import functional as F


def unpacked(packed, scales, zeros, bits):
    """The weight by NumPy alone, from the description of the format."""
    packed, scales = packed.numpy(), scales.numpy().astype("float64")
    groups, outputs = scales.shape
    if bits == 8:
        steps = packed.reshape(groups, -1, outputs).astype("float64")
    else:
        pairs = packed.reshape(groups, -1, outputs)
        steps = np.concatenate([pairs & 15, pairs >> 4], axis=1).astype("float64") - 8
    if zeros is not None:
        steps = steps - zeros.numpy()[:, None]
    return (steps * scales[:, None]).reshape(-1, outputs)


def random_weight(rng, inputs, outputs, bits, group):
    if bits == 8:
        packed = rng.integers(-128, 128, (inputs, outputs)).astype("int8")
    else:
        packed = rng.integers(0, 256, (inputs // 2, outputs)).astype("uint8")
    scales = rng.uniform(0.01, 0.1, (inputs // group, outputs)).astype("float32")
    zeros = rng.uniform(-2, 2, scales.shape).astype("float32")
    return weft.asarray(packed), weft.asarray(scales), weft.asarray(zeros)


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("rows", [(), (1,), (3,), (2, 3), (9,), (0,)])
@pytest.mark.parametrize("sizes", [(64, 48, 32), (12, 7, 4), (96, 1037, 6), (8, 1, 8)])
def test_values(bits, rows, sizes):
    inputs, outputs, group = sizes
    rng = np.random.default_rng(inputs + len(rows))
    packed, scales, zeros = random_weight(rng, inputs, outputs, bits, group)
    x = rng.standard_normal((*rows, inputs)).astype("float32")
    bias = rng.standard_normal(outputs).astype("float32")
    for z in (None, zeros):
        for b in (None, bias):
            got = F.quantized_linear(
                weft.asarray(x), packed, scales, z, None if b is None else weft.asarray(b), bits
            )
            want = x.astype("float64") @ unpacked(packed, scales, z, bits) + (0 if b is None else b)
            assert got.shape == (*rows, outputs) and got.dtype == weft.float32
            np.testing.assert_allclose(got.numpy(), want, rtol=2e-4, atol=2e-4)
        np.testing.assert_allclose(
            F.dequantize_weight(packed, scales, z, bits).numpy(),
            unpacked(packed, scales, z, bits),
            rtol=1e-6,
        )


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize(
    "rows, sizes, dtype",
    [
        (1, (512, 128, 64), "float32"),
        (7, (1024, 48, 32), "float32"),
        (3, (512, 64, 16), "bfloat16"),
        (2, (768, 16, 96), "float16"),
        (1, (96, 40, 32), "float32"),  # the outputs are no multiple of 16: made float first
        (9, (96, 37, 32), "float32"),
        (20, (128, 24, 64), "bfloat16"),  # the weight becomes bfloat16
    ],
)
def test_cards(rows, sizes, dtype, bits):
    device = weft.device("opencl:0")
    if not device.available:
        pytest.skip(f"no OpenCL device: {device.reason}")
    inputs, outputs, group = sizes
    rng = np.random.default_rng(inputs)
    packed, scales, zeros = random_weight(rng, inputs, outputs, bits, group)
    x = weft.asarray(rng.standard_normal((rows, inputs)).astype("float32")).astype(dtype)
    bias = weft.asarray(rng.standard_normal(outputs).astype("float32"))
    for z, b in ((None, None), (zeros, bias)):
        given = [None if a is None else a.to(device) for a in (x, packed, scales, z, b)]
        made = F.dequantize_weight(*given[1:4], bits)
        np.testing.assert_allclose(
            made.to("cpu").numpy(), unpacked(packed, scales, z, bits), rtol=1e-6, atol=1e-7
        )
        got = F.quantized_linear(*given, bits)
        assert got.device == device and got.shape == (rows, outputs) and got.dtype == x.dtype
        want = x.astype("float64").numpy() @ unpacked(packed, scales, z, bits)
        want = want if b is None else want + b.numpy()
        close = {"float32": 2e-5, "float16": 1e-3, "bfloat16": 8e-3}[dtype] * np.abs(want).max()
        np.testing.assert_allclose(
            got.to("cpu").astype("float64").numpy(), want, atol=close, rtol=0
        )


def test_infinite_inputs_on_cards():
    device = weft.device("opencl:0")
    if not device.available:
        pytest.skip(f"no OpenCL device: {device.reason}")
    packed, scales, _ = random_weight(np.random.default_rng(3), 256, 16, 8, 16)
    x = np.ones((1, 256), "float32")
    x[0, 5] = np.inf
    host = F.quantized_linear(weft.asarray(x), packed, scales).numpy()
    card = F.quantized_linear(*(a.to(device) for a in (weft.asarray(x), packed, scales)))
    np.testing.assert_array_equal(card.to("cpu").numpy(), host)
    assert np.isinf(host).any()


@pytest.mark.parametrize("bits", [8, 4])
def test_rounding(bits):
    rng = np.random.default_rng(1)
    weight = rng.standard_normal((64, 10)).astype("float32")
    weight[:16, 3] = 0
    packed, scales = F.quantize_weight(weft.asarray(weight), bits, 16)
    back = unpacked(packed, scales, None, bits)
    most = np.repeat(scales.numpy(), 16, axis=0)
    assert np.all(np.abs(back - weight) <= most * 0.5001)
    assert np.all(scales.numpy()[0, 3] == 0) and np.all(back[:16, 3] == 0)
    want = np.abs(weight.reshape(4, 16, 10)).max(1) / (127 if bits == 8 else 7)
    np.testing.assert_allclose(scales.numpy(), want, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_types_and_views(dtype):
    rng = np.random.default_rng(2)
    packed, scales, _ = random_weight(rng, 32, 9, 8, 8)
    x = weft.asarray(rng.standard_normal((32, 2)).astype("float32")).astype(dtype)
    got = F.quantized_linear(x.T, packed, scales)  # not contiguous
    want = x.T.astype("float32").numpy() @ unpacked(packed, scales, None, 8)
    assert got.dtype == x.dtype
    np.testing.assert_allclose(got.astype("float32").numpy(), want, rtol=2e-2, atol=2e-2)
    every = weft.asarray(np.repeat(packed.numpy(), 2, axis=0))[::2]
    same = F.quantized_linear(x.T, every, scales)
    np.testing.assert_array_equal(same.astype("float32").numpy(), got.astype("float32").numpy())


def test_values_that_are_not_numbers_stay():
    packed, scales, _ = random_weight(np.random.default_rng(3), 16, 4, 8, 8)
    x = np.ones((1, 16), "float32")
    x[0, 5] = np.nan
    assert np.isnan(F.quantized_linear(weft.asarray(x), packed, scales).numpy()).all()


@pytest.mark.parametrize("bits", [8, 4])
def test_gradients(bits):
    rng = np.random.default_rng(4)
    packed, scales, zeros = random_weight(rng, 16, 5, bits, 8)
    x = weft.Tensor(rng.standard_normal((3, 16)).astype("float32"), requires_grad=True)
    s = weft.Tensor(scales, requires_grad=True)
    z = weft.Tensor(zeros, requires_grad=True)
    b = weft.Tensor(rng.standard_normal(5).astype("float32"), requires_grad=True)
    up = rng.standard_normal((3, 5)).astype("float32")
    (
        F.quantized_linear(x, packed, s, z, b, bits) * weft.Tensor(up, requires_grad=False)
    ).sum().backward()
    weight = unpacked(packed, scales, zeros, bits)
    np.testing.assert_allclose(x.grad.numpy(), up @ weight.T, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(b.grad.numpy(), up.sum(0), rtol=1e-4)
    inner = (x.numpy().T @ up).reshape(2, 8, 5)
    steps = weight.reshape(2, 8, 5) / scales.numpy()[:, None]
    np.testing.assert_allclose(s.grad.numpy(), (inner * steps).sum(1), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(
        z.grad.numpy(), -(inner * scales.numpy()[:, None]).sum(1), rtol=1e-3, atol=1e-3
    )


def test_products_by_groups():
    rng = np.random.default_rng(5)
    x = rng.standard_normal((10, 6)).astype("float32")
    w = rng.standard_normal((4, 6, 3)).astype("float32")
    b = rng.standard_normal((4, 3)).astype("float32")
    counts = [3, 0, 6, 1]
    want = np.concatenate([x[:3] @ w[0] + b[0], x[3:9] @ w[2] + b[2], x[9:] @ w[3] + b[3]])
    for given in (counts, weft.asarray(np.array(counts))):
        got = F.grouped_linear(weft.asarray(x), weft.asarray(w), given, weft.asarray(b))
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-5)
    none = F.grouped_linear(weft.asarray(x[:0]), weft.asarray(w), [0, 0, 0, 0])
    assert none.shape == (0, 3)
    t = weft.Tensor(w, requires_grad=True)
    F.grouped_linear(weft.Tensor(x, requires_grad=False), t, counts).sum().backward()
    np.testing.assert_allclose(t.grad.numpy()[1], 0)
    np.testing.assert_allclose(
        t.grad.numpy()[2], np.repeat(x[3:9].sum(0)[:, None], 3, 1), rtol=1e-5
    )


def test_refusals():
    packed, scales, zeros = random_weight(np.random.default_rng(6), 16, 4, 8, 8)
    x = weft.asarray(np.ones((2, 16), "float32"))
    cases = [
        (
            lambda: F.quantized_linear(x, packed, scales, bits=5),
            weft.ArgumentError,
            "nn.quantized.bits",
            "4 or 8",
        ),
        (
            lambda: F.quantized_linear(x, packed, scales, bits=4),
            weft.DTypeError,
            "nn.quantized.weight",
            "uint8",
        ),
        (
            lambda: F.quantized_linear(x, packed, scales[:, :3]),
            weft.ShapeError,
            "nn.quantized.scales",
            "(2, 3)",
        ),
        (
            lambda: F.quantized_linear(x, packed, scales, zeros[:1]),
            weft.ShapeError,
            "nn.quantized.zeros",
            "(1, 4)",
        ),
        (
            lambda: F.quantized_linear(x[:, :8], packed, scales),
            weft.ShapeError,
            "nn.quantized.inputs",
            "(2, 8)",
        ),
        (lambda: F.quantize_weight(x, 8, 3), weft.ShapeError, "nn.quantized.group", "groups of 3"),
        (lambda: F.quantize_weight(packed), weft.DTypeError, "nn.quantized.weight", "int8"),
        (
            lambda: F.grouped_linear(x, x, [2]),
            weft.ShapeError,
            "nn.grouped_linear.shape",
            "(2, 16)",
        ),
        (
            lambda: F.grouped_linear(x, weft.zeros((1, 16, 2)), [1]),
            weft.ArgumentError,
            "nn.grouped_linear.counts",
            "2 rows",
        ),
    ]
    for step, kind, code, part in cases:
        with pytest.raises(kind) as caught:
            step()
        assert caught.value.code == code and part in str(caught.value)


@pytest.mark.parametrize(
    ("sizes", "want"),
    [((4096, 64, 32, 4, 1024), (16, 128, 4)), ((4096, 64, 32, 8, 1024), (16, 256, 4)), ((4096, 48, 24, 4, 1024), (12, None, 1)), ((256, 64, 32, 4, 1024), None), ((4096, 64, 8, 2, 1024), None)],
)  # fmt: skip
def test_rows_of_a_group_that_a_thread_reads(sizes, want):
    """The most packed rows, up to 16, that divide a group's bytes: 32 numbers of 4 bits are 16 bytes."""
    from weft.nn._quantized_card import form

    inputs, _, size, bits, most = sizes
    found = form(*sizes)
    if want is None:
        assert found is None
        return
    if found is None:  # the rows of a thread do not divide all bytes
        assert inputs * bits // 8 // want[0] % 16
        return
    run, threads, beside = found
    assert run == want[0] and beside == want[2] and threads == (want[1] or threads)
    assert size * bits // 8 % run == 0 and threads * beside <= most
