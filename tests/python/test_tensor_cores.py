# SPDX-License-Identifier: Apache-2.0
"""Tensor cores of cuda: schedules of ordinary steps, exact on the interpreter, cubins without a card, right on one."""

import pathlib
import sys

import numpy as np
import pytest
import weft

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "examples/tensorir"))
import tensor_cores  # noqa: E402

SCHEDULES = [
    pytest.param(lambda f, t: tensor_cores.mma(f, (64, 64, 32), (32, 32), 2, t), id="mma"),
    pytest.param(lambda f, t: tensor_cores.mma(f, (128, 64, 16), (64, 64), 1, t), id="mma-1"),
    pytest.param(lambda f, t: tensor_cores.wgmma(f, (64, 64, 64), 64, 3, t), id="wgmma"),
    pytest.param(lambda f, t: tensor_cores.wgmma(f, (64, 128, 64), 128, 1, t, 2), id="wgmma-1"),
]
M, N, K = 128, 128, 192


def operands(dtype, device):
    rng = np.random.default_rng(7)
    pair = (rng.standard_normal(shape, np.float32) for shape in ((M, K), (K, N)))
    return [weft.asarray(x).astype(dtype).to(weft.device(device)) for x in pair]


def check(f, dtype, device):
    A, B = operands(dtype, device)
    C = weft.zeros((M, N), dtype="float32", device=weft.device(device))
    f(A, B, C)
    a, b = (x.to(weft.device("cpu")).astype("float64").numpy() for x in (A, B))
    np.testing.assert_allclose(C.numpy(), a @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("make", SCHEDULES)
def test_the_scheduled_program_computes_the_product(make, dtype):
    sch = make(tensor_cores.product(M, N, K, dtype), dtype)
    check(weft.build(sch, target="ref")["main"], dtype, "ref")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("make", SCHEDULES)
def test_cubins(make, dtype):
    reason = weft.device("cuda").reason
    if "NVRTC" in reason:
        pytest.skip(f"no NVRTC: {reason}")
    text = weft.build(
        make(tensor_cores.product(M, N, K, dtype), dtype), target="cuda:arch=sm_90"
    ).source()
    short = {"float16": "f16", "bfloat16": "bf16"}[dtype]
    assert f".f32.{short}.{short}" in text
    # The accumulators are registers: one thread's part, not the whole tile.
    size = text.split("float C_local[")[1].split("]")[0]
    assert int(size) in (32, 64, 128)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("make", SCHEDULES)
def test_on_a_card(make, dtype):
    device = weft.device("cuda")
    if not device.available:
        pytest.skip(f"no CUDA device: {device.reason}")
    f = weft.build(make(tensor_cores.product(M, N, K, dtype), dtype), target="cuda")["main"]
    check(f, dtype, "cuda")


@pytest.mark.parametrize(
    "arch, make, what",
    [("sm_80", 2, "wgmma"), ("sm_100", 2, "wgmma"), ("sm_75", 1, "mma.m16n8k16")],
)
def test_another_architecture_is_refused(arch, make, what):
    sch = SCHEDULES[make].values[0](tensor_cores.product(M, N, K), "float16")
    with pytest.raises(weft.Error, match=f"uses {what}, which {arch} does not have") as caught:
        weft.build(sch, target=f"cuda:arch={arch}")
    assert caught.value.code == "cuda.instruction.arch"


def test_rows_that_ldmatrix_cannot_read_are_refused():
    """Rows that begin at multiples of 2 bytes: the layout is named, not silently slow or wrong."""
    f = tensor_cores.product(64, 64, 32)
    sch = tensor_cores.mma(f, (64, 64, 16), (64, 64), 1)
    sch.storage_align(sch.get_block("A_shared"), 0, 0, 16, 1)
    with pytest.raises(weft.Error, match='"A_shared".*no multiple of 8') as caught:
        weft.build(sch, target="cuda:arch=sm_90")
    assert caught.value.code == "cuda.instruction.layout"


@pytest.mark.parametrize("axis, what", [(3, "the eighth column"), (4, "the eighth row")])
def test_sums_that_lie_apart_are_refused(axis, what):
    sch = tensor_cores.wgmma(tensor_cores.product(M, N, K), (64, 64, 64), 64, 3)
    source = weft.build(sch, target="cuda:arch=sm_90a").source()
    for name in ("A_shared", "B_shared"):  # the swizzle counts from multiples of 1024 bytes
        assert f"__shared__ __align__(1024) unsigned short {name}[" in source
    sch.storage_align(sch.get_block("C_init"), 0, axis, 16, 1)
    with pytest.raises(
        weft.Error, match=f'"C_local" does not lie.*{what} is 17 elements on'
    ) as caught:
        weft.build(sch, target="cuda:arch=sm_90a")
    assert caught.value.code == "cuda.instruction.layout"


def test_a_tile_of_another_size_is_refused():
    sch = weft.Schedule(tensor_cores.product(64, 64, 32))
    with pytest.raises(weft.ScheduleError, match="does not compute"):
        sch.tensorize(sch.get_loops(sch.get_block("C"))[0], "cuda.mma.m16n32k16.float16")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    "a, b, how",
    [
        ((256, 128), (128, 192), ""),
        ((64, 4096), (4096, 64), ""),
        ((100, 70), (70, 51), ""),
        ((17, 16), (16, 33), ""),
        ((300, 128), (200, 128), "transposed right"),
        ((129, 100), (129, 40), "transposed left"),
        ((3, 2, 65, 64), (64, 80), ""),
        ((3, 1, 65, 72), (2, 72, 96), "broadcast"),
        ((2, 130, 24), (2, 24, 26), "sliced"),
        ((1000, 1000), (1000, 1008), ""),
        ((64, 20000), (20000, 72), ""),
        ((2, 3, 64, 64), (2, 3, 72, 64), "transposed right"),
        ((200, 136), (200, 520), "transposed left"),
    ],
)
def test_eager_products_on_a_card(a, b, how, dtype):
    device = weft.device("cuda")
    if not device.available:
        pytest.skip(f"no CUDA device: {device.reason}")
    rng = np.random.default_rng(5)
    A, B = (
        weft.asarray(rng.standard_normal(s, np.float32)).astype(dtype).to(device) for s in (a, b)
    )
    if how == "transposed right":
        B = weft.matrix_transpose(B)
    if how == "transposed left":
        A = A.T
    if how == "sliced":
        A, B = A[:, ::2, 1:], B[:, 1:, ::-1]
    C = A @ B
    assert C.dtype == getattr(weft, dtype)
    x, y = (t.to(weft.device("cpu")).astype("float64").numpy() for t in (A, B))
    want = x @ y
    got = C.to(weft.device("cpu")).astype("float64").numpy()
    assert got.shape == want.shape
    scale = 2**-8 if dtype == "bfloat16" else 2**-11  # the result is rounded once
    np.testing.assert_allclose(
        got, want, rtol=1.01 * scale, atol=2e-6 * x.shape[-1] * abs(x).max() * abs(y).max()
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    "x, w, stride, padding",
    [
        ((2, 64, 16, 16), (128, 64, 3, 3), 1, 1),
        ((3, 3, 33, 17), (20, 3, 5, 3), (2, 1), (2, 0)),
        ((5, 130, 7, 7), (72, 130, 1, 1), 1, 0),
        ((8, 16, 4, 4), (40, 16, 3, 3), 2, 1),
        ((2, 8, 32, 32), (16, 8, 7, 7), 4, 3),
        ((1, 1, 5, 5), (1, 1, 5, 5), 1, 0),
        ((2, 24, 9, 9), (8, 24, 2, 2), 1, 3),
        ((2, 16, 10, 11), (24, 16, 2, 3), (3, 2), (0, 1)),
        ((2, 16, 11, 9), (24, 16, 4, 5), (2, 3), (1, 2)),
        ((3, 64, 57, 31), (64, 64, 3, 3), 1, 1),
        ((2, 72, 19, 23), (128, 72, 3, 3), 1, 1),
        ((4, 64, 28, 32), (96, 64, 1, 1), 2, 0),
        ((3, 72, 13, 15), (40, 72, 1, 1), (2, 3), 0),
        ((2, 40, 16, 12), (200, 40, 1, 1), (1, 4), 0),
        ((6, 130, 4, 4), (75, 130, 1, 1), 1, 0),
        ((2, 264, 8, 12), (520, 264, 1, 1), 1, 0),
    ],
)
def test_convolutions_on_a_card(x, w, stride, padding, dtype):
    """Forward and both gradients beside float64 on the host, each rounded once."""
    device = weft.device("cuda")
    if not device.available:
        pytest.skip(f"no CUDA device: {device.reason}")
    rng = np.random.default_rng(9)
    host = [weft.asarray(rng.standard_normal(s, np.float32)).astype(dtype) for s in (x, w)]
    mine = [weft.Tensor(t.to(device)) for t in host]
    want = [weft.Tensor(t.astype("float64")) for t in host]
    y, z = (weft.nn.functional.conv2d(*t, stride=stride, padding=padding) for t in (mine, want))
    g = weft.asarray(rng.standard_normal(z.shape, np.float32)).astype(dtype)
    y.backward(g.to(device)), z.backward(g.astype("float64"))
    scale = 2**-8 if dtype == "bfloat16" else 2**-11
    for a, b in ((y, z), (mine[0].grad, want[0].grad), (mine[1].grad, want[1].grad)):
        a, b = a.data.to(weft.device("cpu")).astype("float64").numpy(), b.numpy()
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1.01 * scale, atol=1e-4 * abs(b).max())


@pytest.mark.parametrize("output_padding", [0, 1])
def test_transposed_convolutions_of_one_place_on_a_card(output_padding):
    """Zeros between results: with an extra row and column in whole words, otherwise one by one."""
    device = weft.device("cuda")
    if not device.available:
        pytest.skip(f"no CUDA device: {device.reason}")
    rng = np.random.default_rng(10)
    shapes = ((3, 70, 9, 7), (70, 33, 1, 1))
    host = [weft.asarray(rng.standard_normal(s, np.float32)).astype("bfloat16") for s in shapes]
    options = dict(stride=2, output_padding=output_padding)
    y, z = (
        weft.nn.functional.conv_transpose2d(*(weft.Tensor(t) for t in ts), **options)
        for ts in ([t.to(device) for t in host], [t.astype("float64") for t in host])
    )
    a, b = y.data.to(weft.device("cpu")).astype("float64").numpy(), z.numpy()
    assert a.shape == b.shape
    np.testing.assert_allclose(a, b, rtol=1.01 * 2**-8, atol=1e-4 * abs(b).max())
    assert not a[:, :, 1::2].any() and not a[:, :, :, 1::2].any()
