# SPDX-License-Identifier: Apache-2.0
"""Plain row-major programs on the VTA simulator: packed, tiled and scheduled by weft.build, compared exactly with
integer NumPy on three configurations."""

import os

import numpy as np
import pytest
from weft.vta import op

import weft
from weft import te

pytestmark = pytest.mark.targets("vta")

CONFIGS = ("sim", "4x8x8", "1x32x32")
SEED = 20261121


def wrap(x, dtype):
    return x.astype(np.int64).astype(np.int32).astype(dtype)


def epilogue(total, bias=None, shift=0, residual=None, relu=False, clip=None, dtype="int8"):
    v = total.astype(np.int64)
    v = v.astype(np.int32).astype(np.int64)
    v = v >> shift
    if bias is not None:
        v = v + bias
    if residual is not None:
        v = v + residual
    v = v.astype(np.int32)
    if relu:
        v = np.maximum(v, 0)
    if clip is not None:
        v = np.clip(v, *clip)
    return v.astype(dtype)


def conv_ref(x, w, stride=1, pad=0, groups=1, dilation=1):
    n, _ci, h, wd = x.shape
    co, cg, kh, kw = w.shape
    x = np.pad(x.astype(np.int64), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    oh = (h + 2 * pad - dilation * (kh - 1) - 1) // stride + 1
    ow = (wd + 2 * pad - dilation * (kw - 1) - 1) // stride + 1
    y = np.zeros((n, co, oh, ow), np.int64)
    og = co // groups
    for g in range(groups):
        for p in range(kh):
            for q in range(kw):
                part = x[
                    :,
                    g * cg : (g + 1) * cg,
                    p * dilation : p * dilation + (oh - 1) * stride + 1 : stride,
                    q * dilation : q * dilation + (ow - 1) * stride + 1 : stride,
                ]
                y[:, g * og : (g + 1) * og] += np.einsum(
                    "ncyx,oc->noyx", part, w[g * og : (g + 1) * og, :, p, q].astype(np.int64)
                )
    return y


def run(func, arrays, out, config, **options):
    """Builds for a configuration, runs on its simulator, returns the result."""
    target = f"vta:{config}"
    module = weft.build(func, target=target)
    device = weft.vta.env(config).device(**options) if options else weft.device(target)
    moved = [weft.asarray(a, device=device) for a in (*arrays, out)]
    module["main"](*moved)
    return moved[-1].numpy(), module


def rand(rng, shape, low=-128, high=127, dtype=np.int8):
    return rng.integers(low, high + 1, shape).astype(dtype)


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize(
    "m,n,k,options",
    [
        (16, 16, 16, {}),
        (1, 256, 64, {"shift": 8}),
        (37, 53, 29, {"shift": 4, "relu": True}),
        (3, 5, 7, {"bias": True, "shift": 3, "clip": (-100, 99)}),
        (64, 48, 130, {"bias": True, "shift": 8, "clip": (0, 127), "transposed": True}),
        (33, 17, 65, {"dtype": "int32"}),
        (7, 19, 300, {"dtype": "int32", "bias": True}),
        (8, 8, 24, {"dtype": "int16", "batch": 5, "shift": 2}),
        (1, 1, 1, {"dtype": "int32"}),
    ],
)
def test_matmul(config, m, n, k, options):
    rng = np.random.default_rng([SEED, m, n, k])
    batch = options.get("batch")
    lead = () if batch is None else (batch,)
    t = options.get("transposed", False)
    a, b = rand(rng, (*lead, m, k)), rand(rng, (*lead, n, k) if t else (*lead, k, n))
    bias = rand(rng, (n,), -(1 << 20), 1 << 20, np.int32) if options.get("bias") else None
    total = a.astype(np.int64) @ (np.swapaxes(b, -1, -2) if t else b).astype(np.int64)
    dtype = options.get("dtype", "int8")
    want = epilogue(
        total,
        bias,
        options.get("shift", 0),
        None,
        options.get("relu", False),
        options.get("clip"),
        dtype,
    )
    arrays = [x for x in (a, b, bias) if x is not None]
    got, _ = run(op.matmul(m, n, k, **options), arrays, np.full((*lead, m, n), 77, dtype), config)
    np.testing.assert_array_equal(got, want)


CONVS = [
    {"n": 1, "ci": 16, "h": 8, "w": 8, "co": 16, "kernel": 3, "pad": 1, "shift": 8},
    {
        "n": 1,
        "ci": 3,
        "h": 9,
        "w": 7,
        "co": 5,
        "kernel": 3,
        "pad": 1,
        "shift": 5,
        "bias": True,
        "relu": True,
    },
    {
        "n": 2,
        "ci": 20,
        "h": 7,
        "w": 9,
        "co": 33,
        "kernel": 3,
        "stride": 2,
        "pad": 1,
        "bias": True,
        "shift": 7,
        "clip": (0, 127),
    },
    {
        "n": 1,
        "ci": 32,
        "h": 14,
        "w": 14,
        "co": 64,
        "kernel": 1,
        "stride": 2,
        "shift": 6,
        "clip": (0, 127),
    },
    {"n": 1, "ci": 6, "h": 11, "w": 10, "co": 4, "kernel": (5, 3), "dilation": 2, "dtype": "int32"},
    {"n": 1, "ci": 32, "h": 6, "w": 6, "co": 64, "kernel": 3, "pad": 1, "groups": 2, "shift": 7},
    {
        "n": 1,
        "ci": 12,
        "h": 5,
        "w": 6,
        "co": 18,
        "kernel": 3,
        "pad": 1,
        "groups": 3,
        "stride": 2,
        "dtype": "int32",
    },
    {
        "n": 1,
        "ci": 8,
        "h": 6,
        "w": 5,
        "co": 8,
        "kernel": 3,
        "pad": 1,
        "groups": 8,
        "dtype": "int32",
    },
    {
        "n": 1,
        "ci": 24,
        "h": 10,
        "w": 9,
        "co": 40,
        "kernel": 3,
        "pad": 1,
        "layout": "NHWC",
        "shift": 7,
        "clip": (-128, 127),
    },
    {
        "n": 1,
        "ci": 16,
        "h": 6,
        "w": 6,
        "co": 16,
        "kernel": 3,
        "pad": 1,
        "bias": True,
        "shift": 8,
        "residual": True,
        "relu": True,
        "clip": (0, 127),
    },
    {"n": 1, "ci": 3, "h": 20, "w": 20, "co": 16, "kernel": 7, "stride": 2, "pad": 3, "shift": 6},
    # Depthwise, by diagonal matrices.
    {
        "n": 1,
        "ci": 32,
        "h": 9,
        "w": 10,
        "co": 32,
        "kernel": 3,
        "pad": 1,
        "stride": 2,
        "groups": 32,
        "bias": True,
        "shift": 7,
        "clip": (0, 96),
    },
    {"n": 1, "ci": 48, "h": 7, "w": 6, "co": 48, "kernel": 3, "groups": 48, "dtype": "int32"},
    {
        "n": 1,
        "ci": 16,
        "h": 6,
        "w": 5,
        "co": 16,
        "kernel": 5,
        "pad": 2,
        "groups": 16,
        "layout": "NHWC",
        "residual": True,
        "shift": 6,
        "relu": True,
    },
]


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("case", range(len(CONVS)))
def test_conv2d(config, case):
    o = dict(CONVS[case])
    rng = np.random.default_rng([SEED, case])
    kh, kw = o["kernel"] if isinstance(o["kernel"], tuple) else (o["kernel"],) * 2
    g = o.get("groups", 1)
    x = rand(rng, (o["n"], o["ci"], o["h"], o["w"]))
    w = rand(rng, (o["co"], o["ci"] // g, kh, kw))
    total = conv_ref(x, w, o.get("stride", 1), o.get("pad", 0), g, o.get("dilation", 1))
    bias = rand(rng, (o["co"],), -3000, 3000, np.int32) if o.get("bias") else None
    residual = rand(rng, total.shape) if o.get("residual") else None
    dtype = o.get("dtype", "int8")
    want = epilogue(
        total,
        None if bias is None else bias[:, None, None],
        o.get("shift", 0),
        residual,
        o.get("relu", False),
        o.get("clip"),
        dtype,
    )
    if o.get("layout") == "NHWC":
        x, w = x.transpose(0, 2, 3, 1).copy(), w.transpose(2, 3, 1, 0).copy()
        want = want.transpose(0, 2, 3, 1)
        residual = None if residual is None else residual.transpose(0, 2, 3, 1).copy()
    arrays = [a for a in (x, w, bias, residual) if a is not None]
    got, _ = run(op.conv2d(**o), arrays, np.full(want.shape, 77, dtype), config)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize(
    "ci,h,w,co,kernel,stride,pad",
    [(16, 4, 4, 16, 4, 2, 1), (5, 3, 4, 7, 3, 2, 1), (6, 5, 5, 3, 3, 1, 0), (4, 3, 3, 8, 5, 3, 2)],
)
def test_conv2d_transpose(config, ci, h, w, co, kernel, stride, pad):
    rng = np.random.default_rng([SEED, ci, kernel])
    x, weights = rand(rng, (1, ci, h, w)), rand(rng, (ci, co, kernel, kernel))
    oh, ow = (h - 1) * stride - 2 * pad + kernel, (w - 1) * stride - 2 * pad + kernel
    full = np.zeros((1, co, oh + 2 * pad, ow + 2 * pad), np.int64)
    for y in range(h):
        for z in range(w):
            full[:, :, y * stride : y * stride + kernel, z * stride : z * stride + kernel] += (
                np.einsum("nc,copq->nopq", x[:, :, y, z].astype(np.int64), weights.astype(np.int64))
            )
    want = epilogue(full[:, :, pad : pad + oh, pad : pad + ow], shift=5, clip=(-128, 127))
    got, _ = run(
        op.conv2d_transpose(1, ci, h, w, co, kernel, stride, pad, shift=5, clip=(-128, 127)),
        [x, weights],
        np.full(want.shape, 77, np.int8),
        config,
    )
    np.testing.assert_array_equal(got, want)


ELEMENTWISE = [
    ("add", ("int32", "int32"), "int8", lambda a, b: a + b),
    ("add32", ("int32", "int32"), "int32", lambda a, b: a + b),
    ("sub", ("int8", "int8"), "int32", lambda a, b: a - b),
    ("affine", ("int8",), "int32", lambda a: (a * 3 + 70000) >> 2),
    ("relu", ("int32",), "int8", lambda a: (a, 0, 127)),
    (
        "leaky",
        ("int32",),
        "int32",
        lambda a: op.maximum(a, a >> 3) if not isinstance(a, np.ndarray) else np.maximum(a, a >> 3),
    ),
    ("mixed", ("int8", "int32", "int8"), "int32", lambda a, b, c: (a + b) * c - (b - a)),
    ("narrow", ("int32",), "int32", lambda a: a.astype("int8").astype("int32") + 1),
]


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("shape", [(16, 32), (3, 5, 7), (4, 2, 4, 8)])
@pytest.mark.parametrize("case", range(len(ELEMENTWISE)))
def test_elementwise(config, shape, case):
    name, inputs, dtype, f = ELEMENTWISE[case]
    rng = np.random.default_rng([SEED, case])
    arrays = [
        rand(rng, shape) if t == "int8" else rand(rng, shape, -(1 << 31), (1 << 31) - 1, np.int32)
        for t in inputs
    ]
    if name == "relu":

        def f(a):
            if isinstance(a, np.ndarray):
                return np.clip(a, 0, 127)
            return op.maximum(op.minimum(a, te.const(127, "int32")), te.const(0, "int32"))

    wide = [a.astype(np.int32) for a in arrays]
    with np.errstate(over="ignore"):
        want = f(*wide).astype(dtype)
    func = op.elementwise(shape, f, inputs, dtype)
    got, _ = run(func, arrays, np.full(shape, 77, dtype), config)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("config", CONFIGS)
def test_pooling(config):
    rng = np.random.default_rng(SEED)
    x = rand(rng, (1, 20, 9, 9))
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-128)
    want = np.max(
        [padded[:, :, p : p + 9 : 2, q : q + 9 : 2] for p in range(3) for q in range(3)], axis=0
    )
    got, _ = run(op.max_pool2d(1, 20, 9, 9, 3, 2, 1), [x], np.zeros(want.shape, np.int8), config)
    np.testing.assert_array_equal(got, want)
    total = x.astype(np.int32).sum((2, 3)) >> 6
    got, _ = run(op.global_sum_pool(1, 20, 9, 9, 6), [x], np.zeros((1, 20), np.int8), config)
    np.testing.assert_array_equal(got, total.astype(np.int8))


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_on_random_configurations(seed, capsys):
    """Random shapes and epilogues; the fast engine, the reference interpreter and NumPy agree, and cycles need no data."""
    rng = np.random.default_rng([SEED, 77, seed])
    config = CONFIGS[seed % 3]
    pick = lambda *options: options[rng.integers(len(options))]
    g = pick(1, 1, 2, 3)
    kernel, stride, pad = pick(1, 2, 3, 5), pick(1, 1, 2, 3), pick(0, 1, 2)
    o = {
        "n": pick(1, 1, 2, 5),
        "ci": g * int(rng.integers(1, 40)),
        "co": g * int(rng.integers(1, 40)),
        "h": int(rng.integers(kernel, 13)),
        "w": int(rng.integers(kernel, 13)),
        "kernel": kernel,
        "stride": stride,
        "pad": pad,
        "groups": g,
        "shift": int(rng.integers(0, 9)),
        "bias": bool(rng.integers(2)),
        "residual": bool(rng.integers(2)),
        "relu": bool(rng.integers(2)),
        "clip": pick(None, (-128, 127), (0, 100)),
        "dtype": pick("int8", "int8", "int32", "int16"),
        "layout": pick("NCHW", "NHWC"),
    }
    print(config, o)
    x, w = (
        rand(rng, (o["n"], o["ci"], o["h"], o["w"])),
        rand(rng, (o["co"], o["ci"] // g, kernel, kernel)),
    )
    total = conv_ref(x, w, stride, pad, g)
    bias = rand(rng, (o["co"],), -(1 << 28), 1 << 28, np.int32) if o["bias"] else None
    residual = rand(rng, total.shape) if o["residual"] else None
    want = epilogue(
        total,
        None if bias is None else bias[:, None, None],
        o["shift"],
        residual,
        o["relu"],
        o["clip"],
        o["dtype"],
    )
    if o["layout"] == "NHWC":
        x, w = x.transpose(0, 2, 3, 1).copy(), w.transpose(2, 3, 1, 0).copy()
        want = want.transpose(0, 2, 3, 1)
        residual = None if residual is None else residual.transpose(0, 2, 3, 1).copy()
    arrays = [a for a in (x, w, bias, residual) if a is not None]
    func, out = op.conv2d(**o), np.full(want.shape, 77, o["dtype"])
    got, module = run(func, arrays, out, config)
    np.testing.assert_array_equal(got, want)
    cycles = []
    for options in ({"engine": "oracle"}, {"mode": "cycles"}):
        device = weft.vta.env(config).device(**options)
        device.clear_stats()
        moved = [weft.asarray(a, device=device) for a in (*arrays, out)]
        module["main"](*moved)
        cycles.append(device.stats()["cycles"])
        if "engine" in options:
            np.testing.assert_array_equal(moved[-1].numpy(), want)
    assert cycles[0] == cycles[1] > 0


def test_strided_and_padded_packed_convolutions_use_no_host_copies():
    for config in CONFIGS:
        env = weft.vta.env(config)
        rng = np.random.default_rng(9)
        ci, co = 2 * env.BLOCK_IN, 3 * env.BLOCK_OUT
        for kernel, stride, pad, h in ((3, 1, 1, 7), (3, 2, 1, 8), (1, 2, 0, 6), (5, 1, 2, 6)):
            func = op.conv2d_packed(
                env, env.BATCH, ci, h, h, co, kernel, stride, pad, bias=True, shift=8, clip=(0, 127)
            )
            net = weft.vta.net.Net(env, None)
            x, w = rand(rng, (env.BATCH, ci, h, h)), rand(rng, (co, ci, kernel, kernel))
            bias = rand(rng, (co,), -99, 99, np.int32)
            want = epilogue(conv_ref(x, w, stride, pad), bias[:, None, None], 8, clip=(0, 127))
            wp = w.reshape(3, env.BLOCK_OUT, 2, env.BLOCK_IN, kernel, kernel).transpose(
                0, 2, 4, 5, 1, 3
            )
            bp = np.broadcast_to(bias.reshape(3, 1, -1), (3, env.BATCH, env.BLOCK_OUT))
            oh = want.shape[2]
            out = np.zeros((1, 3, oh, oh, env.BATCH, env.BLOCK_OUT), np.int8)
            device = weft.device(env.target)
            device.clear_stats()
            got, _ = run(func, [net.pack(x), wp.copy(), bp.copy()], out, config)
            np.testing.assert_array_equal(net.unpack(got, env.BATCH, co), want)
            assert device.stats()["host.launches"] == 0


def test_depthwise_convolutions_use_the_whole_matrix_unit():
    options = {"pad": 1, "groups": 32, "shift": 7}
    rng = np.random.default_rng(SEED)
    x, w = rand(rng, (1, 32, 14, 14)), rand(rng, (32, 1, 3, 3))
    want = epilogue(conv_ref(x, w, 1, 1, 32, 1), None, 7, None, False, None, "int8")
    cycles = []
    for block in (16, 1):
        f = op.conv2d(1, 32, 14, 14, 32, 3, block=block, **options)
        device = weft.device("vta")
        got, _ = run(f, [x, w], np.full(want.shape, 77, "int8"), "sim")
        np.testing.assert_array_equal(got, want)
        module = weft.build(f, target="vta")
        arrays = [weft.asarray(a, device=device) for a in (x, w, want)]
        cycles.append(module.time_evaluator("main", number=1)(*arrays).cycles)
    assert cycles[0] * 4 < cycles[1]


# WEFT_VTA_CONVOLUTIONS=500 runs more of them.
@pytest.mark.parametrize("seed", range(int(os.environ.get("WEFT_VTA_CONVOLUTIONS", "20"))))
def test_random_convolutions_by_default(seed):
    rng = np.random.default_rng([SEED, 7, seed])

    def upto(n):
        return int(rng.integers(1, n + 1))

    config = CONFIGS[seed % 3]
    kernel, dilation, stride, pad = upto(4), upto(3), upto(3), int(rng.integers(5))
    reach, groups = (kernel - 1) * dilation + 1, upto(2)
    h, w = (max(upto(9), reach - 2 * pad) for _ in range(2))
    ci, co = upto(20) * groups, upto(20) * groups
    x, wgt = rand(rng, (1, ci, h, w)), rand(rng, (co, ci // groups, kernel, kernel))
    shift = upto(9)
    want = epilogue(conv_ref(x, wgt, stride, pad, groups, dilation), shift=shift, clip=(-100, 90))
    func = op.conv2d(
        1, ci, h, w, co, kernel, stride, pad, groups, dilation, shift=shift, clip=(-100, 90)
    )
    # What is built runs on the hardware too, as far as its design says.
    got, _ = run(func, [x, wgt], np.full(want.shape, 77, np.int8), config, strict=1)
    np.testing.assert_array_equal(got, want, err_msg=f"{kernel} {dilation} {stride} {pad} {groups}")


@pytest.mark.parametrize(
    "number",
    [32767, 32768, 65535, 65536, 98304, 8388608, 2**31 - 32768, 2**31 - 1]
    + [-32768, -32769, -65536, -98305, -(2**31) + 1, -(2**31)],
)
def test_constants_of_more_than_sixteen_bits(number):
    n = 40
    x = te.placeholder((n,), "int32", "X")
    rng = np.random.default_rng(SEED)
    given = rand(rng, (n,), -1000, 1000, np.int32)
    for name, value, want in (
        ("sum", lambda i: x[i] + number, wrap(given.astype(np.int64) + number, np.int32)),
        ("fill", lambda i: te.const(number, "int32"), np.full(n, number, np.int32)),
    ):
        func = te.create_prim_func([x, te.compute((n,), value, name)])
        got, _ = run(func, [given], np.full(n, 77, np.int32), "sim")
        np.testing.assert_array_equal(got, want, err_msg=name)


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("size", [(1, 1, 1), (5, 7, 3), (16, 8, 8), (33, 9, 6)])
def test_bytes_beside_sums_run_on_the_hardware(config, size):
    """Residuals, pools and sums of int8: the accumulator of the hardware loads words only, so the host widens them."""
    c, h, w = size
    rng = np.random.default_rng(SEED + c)
    x, r = rand(rng, (1, c, h, w)), rand(rng, (1, c, h, w))
    wgt = rand(rng, (c, c, 3, 3))
    func = op.conv2d(1, c, h, w, c, 3, 1, 1, residual=True, shift=6, clip=(-100, 90))
    want = epilogue(conv_ref(x, wgt, 1, 1), residual=r, shift=6, clip=(-100, 90))
    got, module = run(func, [x, wgt, r], np.full(want.shape, 77, np.int8), config, strict=1)
    np.testing.assert_array_equal(got, want)
    assert "acc8" not in module.source()

    func = op.max_pool2d(1, c, h, w, 3, 2, 1)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-128)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))[:, :, ::2, ::2]
    want = windows.max((-1, -2))
    got, _ = run(func, [x], np.full(want.shape, 77, np.int8), config, strict=1)
    np.testing.assert_array_equal(got, want)

    func = op.elementwise((c, h, w), lambda a, b: a + b, ("int8", "int8"))
    got, _ = run(func, [x[0], r[0]], np.full((c, h, w), 77, np.int8), config, strict=1)
    np.testing.assert_array_equal(got, wrap(x[0].astype(np.int64) + r[0], np.int8))
