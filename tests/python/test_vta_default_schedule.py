# SPDX-License-Identifier: Apache-2.0
"""Default schedules in public steps: the workloads of VTA's own tests, built from the steps, equal NumPy, and their
traces, replayed from JSON or executed as Python, give the identical instruction stream."""

import json
import re

import numpy as np
import pytest
from weft.vta import op

import weft
from weft import te

pytestmark = pytest.mark.targets("vta")
CONFIGS = ("sim", "4x8x8", "1x32x32")

# Name: image, channels in and out, kernel, stride (padding is half the kernel).
RESNET = {
    "C2": (56, 64, 64, 3, 1),
    "C3": (56, 64, 128, 3, 2),
    "C4": (56, 64, 128, 1, 2),
    "C5": (28, 128, 128, 3, 1),
    "C6": (28, 128, 256, 3, 2),
    "C7": (28, 128, 256, 1, 2),
    "C8": (14, 256, 256, 3, 1),
    "C9": (14, 256, 512, 3, 2),
    "C10": (14, 256, 512, 1, 2),
    "C11": (7, 512, 512, 3, 1),
}
GROUPED = [(112, 32, 2, 1), (56, 128, 8, 2), (14, 512, 32, 1), (7, 1024, 64, 1)]
TRANSPOSED = [(4, 1024, 512), (8, 512, 256), (16, 256, 128)]


def arrays(shapes, seed):
    rng = np.random.default_rng(seed)
    out = []
    for shape, dtype in shapes:
        high = 128 if dtype == "int8" else 3000
        out.append(rng.integers(-high, high, shape).astype(dtype))
    return out


def run(env, module, inputs, shape):
    device = weft.device(env.target)
    given = [weft.asarray(x, device=device) for x in inputs]
    result = weft.asarray(np.full(shape, 77, np.int8), device=device)
    cycles = module.time_evaluator("main", number=1)(*given, result).cycles
    return result.numpy(), cycles


def check(env, f, inputs, want, **options):
    """Builds from the steps, compares, and compares the streams of the replayed traces."""
    sch = weft.vta.default_schedule(f, env, **options)
    module = weft.build(sch, target=env.target)
    got, cycles = run(env, module, inputs, want.shape)
    np.testing.assert_array_equal(got, want)
    assert want.any() and cycles > 0
    stream = module.source()
    packed = weft.vta.pack(f, env)
    assert weft.ir.structural_equal(packed, sch.start["main"])
    assert "vta." not in str(packed)
    assert weft.build(f, target=env.target).source() == stream or options
    again = weft.Schedule.replay(packed, sch.trace.as_json())
    assert weft.build(again, target=env.target).source() == stream
    text = str(sch.trace.as_python())
    edited = weft.Schedule(packed)
    exec(text, {"sch": edited})  # noqa: S102
    assert edited.script() == sch.script()
    return sch, cycles


def reference(f, inputs, shape):
    """What the unscheduled function gives as C on the host, through no line of the accelerator's."""
    device = weft.device("cpu")
    given = [weft.asarray(x, device=device) for x in inputs]
    result = weft.asarray(np.full(shape, 55, np.int8), device=device)
    weft.build(f, target="cpu")["main"](*given, result)
    return result.numpy()


def tiles(x, rows, columns):
    """[a, b] as [a / rows, b / columns, rows, columns]."""
    a, b = x.shape
    return x.reshape(a // rows, rows, b // columns, columns).transpose(0, 2, 1, 3).copy()


def seed_matmul(env, o, m, n):
    A = te.placeholder((o, n, env.BATCH, env.BLOCK_IN), env.inp_dtype, name="A")
    B = te.placeholder((m, n, env.BLOCK_OUT, env.BLOCK_IN), env.wgt_dtype, name="B")
    A_buf = te.compute(A.shape, lambda *i: A[i], "A_buf")
    B_buf = te.compute(B.shape, lambda *i: B[i], "B_buf")
    ko, ki = te.reduce_axis((0, n), name="ko"), te.reduce_axis((0, env.BLOCK_IN), name="ki")
    C_buf = te.compute(
        (o, m, env.BATCH, env.BLOCK_OUT),
        lambda bo, co, bi, ci: te.sum(
            A_buf[bo, ko, bi, ki].astype("int32") * B_buf[co, ko, ci, ki].astype("int32"),
            axis=[ko, ki],
        ),
        name="C_buf",
    )
    C = te.compute(C_buf.shape, lambda *i: C_buf[i].astype("int8"), name="C")
    return te.create_prim_func([A, B, C])


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize(
    ("o", "m", "n", "threads"), [(1, 4, 4, 1), (1, 16, 16, 1), (4, 4, 2, 1), (8, 4, 2, 2)]
)
def test_products_over_tiles(config, o, m, n, threads):  # T1, T2, T6, T18
    env = weft.vta.env(config)
    a, b = arrays(
        [
            ((o * env.BATCH, n * env.BLOCK_IN), "int8"),
            ((m * env.BLOCK_OUT, n * env.BLOCK_IN), "int8"),
        ],
        o + m + n,
    )
    want = (a.astype(np.int32) @ b.T.astype(np.int32)).astype(np.int8)
    inputs = [tiles(a, env.BATCH, env.BLOCK_IN), tiles(b, env.BLOCK_OUT, env.BLOCK_IN)]
    options = {"threads": threads, "tiles": {"v_bo": 2}} if threads > 1 else {}
    f = seed_matmul(env, o, m, n)
    sch, _ = check(env, f, inputs, tiles(want, env.BATCH, env.BLOCK_OUT), **options)
    text = str(sch.trace.as_python())
    for step in ("set_scope", "cache_read", "dma_copy", "decompose_reduction", "tensorize"):
        assert step in text
    assert ("vthread" in text) == (threads > 1)


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize(("m", "n", "k"), [(128, 128, 128), (16, 1024, 512), (4, 1024, 1024)])
def test_row_major_products(config, m, n, k):  # T11, T12, T13
    env = weft.vta.env(config)
    f = op.matmul(m, n, k, shift=6, clip=(-100, 90))
    a, b = arrays([((m, k), "int8"), ((k, n), "int8")], m + n)
    want = np.clip((a.astype(np.float64) @ b).astype(np.int64) >> 6, -100, 90).astype(np.int8)
    sch, _ = check(env, f, [a, b], want)
    assert "A_packed" in sch.script() or env.BATCH == 1


def test_dense_with_bias():  # T12
    env = weft.vta.env()
    f = op.dense(16, 512, 1008, bias=True, shift=7, relu=True)
    x, w, b = arrays([((16, 512), "int8"), ((1008, 512), "int8"), ((1008,), "int32")], 1)
    total = ((x.astype(np.float64) @ w.T).astype(np.int64) >> 7) + b
    check(env, f, [x, w, b], np.maximum(total, 0).astype(np.int8))


def convolve(x, w, stride, pad, groups=1):
    """Exact int64 sums of NCHW by OIHW, in float64 products per kernel position."""
    n, _, h, wide = x.shape
    o, cg, kh, kw = w.shape
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad))).astype(np.float64)
    oh, ow = (h + 2 * pad - kh) // stride + 1, (wide + 2 * pad - kw) // stride + 1
    out = np.zeros((n, o, oh, ow))
    for g in range(groups):
        xs, ws = x[:, g * cg : (g + 1) * cg], w[g * (o // groups) : (g + 1) * (o // groups)]
        part = out[:, g * (o // groups) : (g + 1) * (o // groups)]
        for p in range(kh):
            for q in range(kw):
                at = xs[
                    :,
                    :,
                    p : p + (oh - 1) * stride + 1 : stride,
                    q : q + (ow - 1) * stride + 1 : stride,
                ]
                part += np.einsum(
                    "ncyx,oc->noyx", at, ws[:, :, p, q].astype(np.float64), optimize=True
                )
    return out.astype(np.int64)


def packed_conv(env, size, ci, co, kernel, stride, groups=1):
    """conv2d_packed with bias and clip, its inputs and what NumPy says."""
    pad = kernel // 2
    f = op.conv2d_packed(
        env,
        env.BATCH,
        ci,
        size,
        size,
        co,
        kernel,
        stride,
        pad,
        groups,
        bias=True,
        shift=8,
        clip=(0, 127),
    )
    B, bi, bo = env.BATCH, env.BLOCK_IN, env.BLOCK_OUT
    x, w, b = arrays(
        [
            ((B, ci, size, size), "int8"),
            ((co, ci // groups, kernel, kernel), "int8"),
            ((co,), "int32"),
        ],
        size + ci,
    )
    total = (convolve(x, w, stride, pad, groups) >> 8) + b[None, :, None, None]
    want = np.clip(total, 0, 127).astype(np.int8)

    def activations(v, block):
        n, c, h, wide = v.shape
        return v.reshape(n // B, B, c // block, block, h, wide).transpose(0, 2, 4, 5, 1, 3).copy()

    weights = w.reshape(co // bo, bo, -1, bi, kernel, kernel).transpose(0, 2, 4, 5, 1, 3).copy()
    bias = np.broadcast_to(b.reshape(co // bo, 1, bo), (co // bo, B, bo)).copy()
    return f, [activations(x, bi), weights, bias], activations(want, bo)


@pytest.mark.parametrize("layer", sorted(RESNET, key=lambda n: int(n[1:])))
def test_layers_of_resnet(layer):  # T15
    env = weft.vta.env()
    f, inputs, want = packed_conv(env, *RESNET[layer])
    check(env, f, inputs, want)


@pytest.mark.parametrize("config", CONFIGS)
def test_convolutions_over_tiles(config):  # T14, and T15 at other configurations
    env = weft.vta.env(config)
    for shape in ((14, 256, 256, 3, 1), (7, 64, 96, 3, 2)):
        check(env, *packed_conv(env, *shape))


@pytest.mark.parametrize(("size", "channels", "groups", "stride"), GROUPED)
def test_grouped_convolutions(size, channels, groups, stride):  # T17
    env = weft.vta.env()
    check(env, *packed_conv(env, size, channels, channels, 3, stride, groups))


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_row_major_convolutions(layout):
    env = weft.vta.env()
    f = op.conv2d(1, 32, 9, 11, 48, 3, pad=1, bias=True, shift=6, relu=True, layout=layout)
    x, w, b = arrays([((1, 32, 9, 11), "int8"), ((48, 32, 3, 3), "int8"), ((48,), "int32")], 4)
    want = np.maximum((convolve(x, w, 1, 1) >> 6) + b[None, :, None, None], 0).astype(np.int8)
    if layout == "NHWC":
        x, w, want = x.transpose(0, 2, 3, 1), w.transpose(2, 3, 1, 0), want.transpose(0, 2, 3, 1)
    check(env, f, [np.ascontiguousarray(x), np.ascontiguousarray(w), b], want)


@pytest.mark.parametrize(("size", "ci", "co"), TRANSPOSED)
def test_transposed_convolutions(size, ci, co):  # T16
    env = weft.vta.env()
    f = op.conv2d_transpose(1, ci, size, size, co, 4, 2, 1, shift=10)
    x, w = arrays([((1, ci, size, size), "int8"), ((ci, co, 4, 4), "int8")], size)
    spread = np.zeros((1, ci, 2 * size - 1, 2 * size - 1), np.int8)
    spread[:, :, ::2, ::2] = x
    flipped = np.ascontiguousarray(w[:, :, ::-1, ::-1].transpose(1, 0, 2, 3))
    check(env, f, [x, w], (convolve(spread, flipped, 1, 2) >> 10).astype(np.int8))


def test_elementwise_chains():  # T3, T7, T8, T9
    env = weft.vta.env()
    shape = (24, 10, env.BATCH, env.BLOCK_OUT)
    maximum, minimum = op.maximum, op.minimum
    cases = {
        "add": (2, lambda a, b: a + b, lambda a, b: a + b),
        "maximum": (2, lambda a, b: maximum(a, b), np.maximum),
        "relu": (
            1,
            lambda a: minimum(maximum(a, te.const(0, "int32")), te.const(127, "int32")),
            lambda a: np.clip(a, 0, 127),
        ),
        "shift_and_scale": (1, lambda a: (a + 17) >> 3, lambda a: (a + 17) >> 3),
        "shift_left": (1, lambda a: a << 2, lambda a: a << 2),
    }
    for seed, (name, (count, ours, theirs)) in enumerate(cases.items()):
        xs = [te.placeholder(shape, "int32", name=f"X{i}") for i in range(count)]
        body = te.compute(shape, lambda *i, xs=xs, f=ours: f(*(x[i] for x in xs)), name=name)
        out = te.compute(shape, lambda *i, body=body: body[i].astype("int8"), name="out")
        data = arrays([(shape, "int32")] * count, seed)
        check(env, te.create_prim_func([*xs, out]), data, theirs(*data).astype(np.int8))


def test_bytes_are_widened_into_a_chain():
    env = weft.vta.env()
    shape = (40, 10, env.BATCH, env.BLOCK_OUT)
    X, Y = (te.placeholder(shape, "int8", name=name) for name in "XY")
    body = te.compute(shape, lambda *i: (X[i].astype("int32") + Y[i].astype("int32")) >> 1, "mean")
    out = te.compute(shape, lambda *i: body[i].astype("int8"), name="out")
    x, y = arrays([(shape, "int8")] * 2, 3)
    want = ((x.astype(np.int32) + y) >> 1).astype(np.int8)
    check(env, te.create_prim_func([X, Y, out]), [x, y], want)


def test_tiles_can_be_given_and_steps_edited():
    env = weft.vta.env()
    f = op.matmul(64, 64, 64, shift=4)
    a, b = arrays([((64, 64), "int8"), ((64, 64), "int8")], 9)
    want = ((a.astype(np.int32) @ b.astype(np.int32)) >> 4).astype(np.int8)
    _, small = check(env, f, [a, b], want, tiles={"v_i0": 8, "v_i1": 1, "v_k": 1})
    sch, large = check(env, f, [a, b], want, tiles={"v_i0": 32, "v_i1": 2, "v_k": 4})
    assert small > large
    text = str(sch.trace.as_python())
    changed = text.replace("factors=[None, 32]", "factors=[None, 16]")
    assert changed != text
    edited = weft.Schedule(weft.vta.pack(f, env))
    exec(changed, {"sch": edited})  # noqa: S102
    got, cycles = run(env, weft.build(edited, target=env.target), [a, b], want.shape)
    np.testing.assert_array_equal(got, want)
    assert cycles not in (small, large)


@pytest.mark.parametrize("packed", [True, False])
def test_residuals_are_widened_on_the_way(packed):
    env = weft.vta.env()
    sizes = (1, 32, 9, 11, 48, 3)
    options = {"pad": 1, "residual": True, "bias": True, "shift": 6, "clip": (-128, 127)}
    f = op.conv2d_packed(env, *sizes, **options) if packed else op.conv2d(*sizes, **options)
    x, w, b, r = arrays(
        [
            ((1, 32, 9, 11), "int8"),
            ((48, 32, 3, 3), "int8"),
            ((48,), "int32"),
            ((1, 48, 9, 11), "int8"),
        ],
        8,
    )
    total = (convolve(x, w, 1, 1) >> 6) + b[None, :, None, None] + r
    want = np.clip(total, -128, 127).astype(np.int8)
    if packed:
        x, r, want = (
            v.reshape(1, 1, -1, 16, 9, 11).transpose(0, 2, 4, 5, 1, 3).copy() for v in (x, r, want)
        )
        w = w.reshape(3, 16, 2, 16, 3, 3).transpose(0, 2, 4, 5, 1, 3).copy()
        b = b.reshape(3, 1, 16)
    check(env, f, [x, w, b, r], want)


def test_bytes_in_the_accumulator_are_copies():
    env = weft.vta.env()
    sch = weft.vta.default_schedule(seed_matmul(env, 1, 2, 2), env)
    sch.cache_write(sch.get_block("C"), 0, "vta.acc")
    with pytest.raises(weft.Error) as refusal:
        weft.build(sch, target=env.target)
    assert refusal.value.code == "vta.lower.dtype"
    assert "is int8 in vta.acc, and is computed" in str(refusal.value)


def symbolic(env):
    n = te.var("n")
    X = te.placeholder((n, 16), "int32", name="X")
    Y = te.compute((n, 16), lambda i, j: X[i, j] + 1, name="Y")
    return te.create_prim_func([X, te.compute((n, 16), lambda *i: Y[i].astype("int8"), name="Z")])


def floating(env):
    X = te.placeholder((16,), "float32", name="X")
    return te.create_prim_func([X, te.compute((16,), lambda i: X[i] + 1.0, name="Y")])


@pytest.mark.parametrize(
    ("f", "options", "code", "reason"),
    [
        (
            lambda env: op.matmul(16, 16, 2048 * 16),
            {"tiles": {"v_k": 2048}},
            "vta.schedule.default",
            'no tiles of "total" fit with those given',
        ),
        (
            lambda env: op.matmul(32, 16, 2048 * 16),
            {"tiles": {"v_k": 1500, "v_i0": 2}},
            "vta.schedule.default",
            "vta.inp: 3000 of 2048 elements of 16 bytes, too many",
        ),
        (
            lambda env: op.matmul(32, 16, 2048 * 16),
            {"tiles": {"v_k": 1500, "v_i0": 1}},
            "vta.schedule.default",
            "vta.wgt: 1500 of 1024 elements of 256 bytes, too many",
        ),
        (
            lambda env: op.matmul(2100, 16, 32),
            {"tiles": {"v_i0": 2100, "v_k": 1}},
            "vta.schedule.default",
            "vta.acc: 2100 of 2048 elements of 64 bytes, too many",
        ),
        (
            lambda env: op.matmul(16, 16, 32),
            {"tiles": {"x": 3}},
            "vta.schedule.default",
            'tiles name "x"',
        ),
        (
            lambda env: op.matmul(16, 16, 32),
            {"tiles": {"v_k": 0}},
            "vta.schedule.default",
            "a tile of 0 whole elements",
        ),
        (
            lambda env: op.matmul(16, 16, 32),
            {"threads": 17},
            "vta.schedule.default",
            "a multiple of 17",
        ),
        (
            lambda env: op.matmul(16, 16, 32),
            {"threads": 0},
            "vta.schedule.default",
            "0 virtual threads",
        ),
        (
            lambda env: op.matmul(16, 16, 32),
            {"tiles": {"v_k": "much"}},
            "vta.option.schedule",
            'tiles["v_k"] is "much"',
        ),
        (symbolic, {}, "vta.accepts.block", "without a constant range"),
        (floating, {}, "vta.accepts.dtype", "float32"),
    ],
)
def test_what_cannot_be_scheduled_is_refused(f, options, code, reason):
    env = weft.vta.env()
    with pytest.raises(weft.Error) as refusal:
        weft.vta.default_schedule(f(env), env, **options)
    assert refusal.value.code == code, refusal.value
    assert reason in str(refusal.value), refusal.value


def test_a_schedule_is_not_scheduled_again():
    env = weft.vta.env()
    sch = weft.vta.default_schedule(op.matmul(16, 16, 32), env)
    with pytest.raises(weft.ScheduleError) as refusal:
        weft.vta.default_schedule(sch.func, env)
    assert refusal.value.code == "vta.schedule.scheduled"
    assert "in the machine's memories already" in str(refusal.value)
    with pytest.raises(weft.Error) as other:
        weft._core.default_schedule(op.matmul(16, 16, 32), "cpu", {})
    assert other.value.code == "target.schedule.steps"
    assert "makes no steps" in str(other.value)
    with pytest.raises(weft.Error) as option:
        weft._core.default_schedule(op.matmul(16, 16, 32), "vta", {"colour": 1})
    assert option.value.code == "vta.option.schedule"
    assert "colour" in str(option.value)


@pytest.mark.parametrize("config", CONFIGS)
def test_tiles_need_not_divide(config):
    """Partial tiles at every edge: the guards of the steps become shorter loops of instructions."""
    env = weft.vta.env(config)
    f = op.conv2d(env.BATCH, 5 * env.BLOCK_IN, 11, 13, 7 * env.BLOCK_OUT, 3, pad=1, shift=7)
    x, w = arrays(
        [
            ((env.BATCH, 5 * env.BLOCK_IN, 11, 13), "int8"),
            ((7 * env.BLOCK_OUT, 5 * env.BLOCK_IN, 3, 3), "int8"),
        ],
        5,
    )
    want = (convolve(x, w, 1, 1) >> 7).astype(np.int8)
    names = re.findall(r"v_\w+", str(f).split('T.block("conv")')[1].split("remap")[0])
    _, out, row, col, deep = names[:5]
    check(env, f, [x, w], want, tiles={out: 3, row: 4, col: 6, deep: 2})


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (5, 7, 9), (33, 17, 65)])
def test_odd_products_and_plain_bias(config, m, n, k):
    env = weft.vta.env(config)
    f = op.matmul(m, n, k, shift=3, bias=True, dtype="int32")
    a, b, c = arrays([((m, k), "int8"), ((k, n), "int8"), ((n,), "int32")], m)
    sch = weft.vta.default_schedule(f, env)
    total = ((a.astype(np.int64) @ b) >> 3) + c
    device = weft.device(env.target)
    given = [weft.asarray(x, device=device) for x in (a, b, c)]
    out = weft.asarray(np.full((m, n), 77, np.int32), device=device)
    weft.build(sch, target=env.target)["main"](*given, out)
    np.testing.assert_array_equal(out.numpy(), total)


def test_packed_functions_run_anywhere():
    """What is packed equals the function on any other target: the interpreter's word."""
    env = weft.vta.env("4x8x8")
    f = op.conv2d(1, 3, 5, 6, 10, 3, pad=1, stride=2, shift=4, bias=True)
    x, w, b = arrays([((1, 3, 5, 6), "int8"), ((10, 3, 3, 3), "int8"), ((10,), "int32")], 2)
    results = []
    for program in (f, weft.vta.pack(f, env)):
        out = weft.asarray(np.full((1, 10, 3, 3), 77, np.int8), device="ref")
        given = [weft.asarray(v, device="ref") for v in (x, w, b)]
        weft.build(program, target="ref")["main"](*given, out)
        results.append(out.numpy())
    want = ((convolve(x, w, 2, 1) >> 4) + b[None, :, None, None]).astype(np.int8)
    for got in results:
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("seed", range(30))
def test_random_operators_equal_the_host(seed):
    """Operators at random, half of them of odd extents: the same numbers as on the host, and the trace replays to the
    identical stream."""
    rng = np.random.default_rng([77, seed])

    def pick(*values):
        return values[rng.integers(len(values))]

    def upto(n):
        return int(rng.integers(1, n + 1))

    env = weft.vta.env(CONFIGS[seed % 3])
    B, bi, bo = env.BATCH, env.BLOCK_IN, env.BLOCK_OUT
    options = {
        "shift": upto(9),
        "relu": bool(pick(0, 1)),
        "clip": pick(None, (-100, 90)),
        "bias": bool(pick(0, 1)),
    }
    kind = pick("matmul", "conv2d", "conv2d_packed", "conv2d_transpose")
    kernel = pick(1, 2, 3, 5)
    window = {"stride": upto(3), "pad": int(rng.integers(kernel)), "residual": bool(pick(0, 1))}
    height, width = 4 + upto(9), 4 + upto(9)
    if kind == "matmul":
        sizes = (upto(9) * B, upto(5) * bo, upto(5) * bi)
        f = op.matmul(*sizes, transposed=bool(pick(0, 1)), batch=pick(None, 2), **options)
    elif kind == "conv2d":
        sizes = (upto(2) * B, upto(3) * bi, height, width, upto(3) * bo, kernel)
        f = op.conv2d(*sizes, layout=pick("NCHW", "NHWC"), **window, **options)
    elif kind == "conv2d_packed":
        groups = pick(1, 2)
        sizes = (upto(2) * B, upto(3) * bi * groups, height, width, upto(3) * bo * groups, kernel)
        f = op.conv2d_packed(env, *sizes, groups=groups, **window, **options)
    else:
        sizes = (B, upto(2) * bi, upto(6), upto(6), upto(2) * bo, pick(2, 3, 4), pick(1, 2))
        f = op.conv2d_transpose(*sizes, pad=pick(0, 1), shift=5)
    shapes = [
        (tuple(int(n) for n in shape.split(",") if n.strip()), dtype)
        for shape, dtype in re.findall(
            r'T\.Buffer\(\(([^)]*)\), "(\w+)"\)', str(f).split("T.func_attr")[0]
        )
    ]
    *inputs, result = arrays(shapes, seed)
    want = reference(f, inputs, result.shape)
    check(env, f, inputs, want)


def test_tiles_that_do_not_divide_cost_no_copies():
    env = weft.vta.env()
    f = op.conv2d_packed(env, 1, 64, 14, 14, 96, 3, pad=1, bias=True, shift=8, clip=(0, 127))
    x, w, b = arrays([((1, 64, 14, 14), "int8"), ((96, 64, 3, 3), "int8"), ((96,), "int32")], 21)
    want = np.clip((convolve(x, w, 1, 1) >> 8) + b[None, :, None, None], 0, 127).astype(np.int8)
    given = [
        x.reshape(1, 1, 4, 16, 14, 14).transpose(0, 2, 4, 5, 1, 3).copy(),
        w.reshape(6, 16, 4, 16, 3, 3).transpose(0, 2, 4, 5, 1, 3).copy(),
        b.reshape(6, 1, 16),
    ]
    want = want.reshape(1, 1, 6, 16, 14, 14).transpose(0, 2, 4, 5, 1, 3).copy()
    elements = 6 * 14 * 14
    for tiles in ({"v_o": 3, "v_y": 7}, {"v_o": 4, "v_y": 14}, {"v_o": 4, "v_y": 5, "v_z": 9}):
        module = weft.build(weft.vta.default_schedule(f, env, tiles=tiles), target=env.target)
        device = weft.device(env.target)
        arguments = [weft.asarray(a, device=device) for a in given]
        result = weft.asarray(np.full(want.shape, 77, np.int8), device=device)
        before = device.stats()
        module["main"](*arguments, result)
        np.testing.assert_array_equal(result.numpy(), want)
        used = {name: device.stats()[name] - before[name] for name in ("uops.alu", "uops.reset")}
        # One reset, and one step each for shift, bias and the two bounds: nothing copies elements.
        assert used == {"uops.alu": 4 * elements, "uops.reset": elements}, (tiles, used)


def test_parameters_of_the_cycle_model_are_options(tmp_path):
    env = weft.vta.env()
    f = op.conv2d_packed(env, 1, 64, 14, 14, 64, 3, pad=1, shift=8)
    module = weft.build(f, target=env.target)

    def cycles(**options):
        device = env.device(mode="cycles", **options)
        shapes = (1, 4, 14, 14, 1, 16), (4, 4, 3, 3, 16, 16), (1, 4, 14, 14, 1, 16)
        given = [weft.zeros(shape, dtype="int8", device=device) for shape in shapes]
        return module.time_evaluator("main", number=1)(*given).cycles

    usual = cycles()
    assert cycles(timing={"latency": 32}) == usual
    slow = cycles(timing={"latency": 500})
    assert slow > usual + 400
    path = tmp_path / "slow.json"
    path.write_text('{"latency": 500}')
    assert cycles(timing=str(path)) == slow
    # Tiles are chosen for the machine that is named.
    path.write_text('{"latency": 2000, "bus_bytes": 2}')
    other = op.conv2d_packed(env, 1, 256, 14, 14, 512, 1, 2, shift=8)
    usually = weft.build(other, target="vta").source()
    assert weft.build(other, target=f"vta:timing={path}").source() != usually
    for wrong, code, reason in (
        ({"latencies": 3}, "vta.timing.key", "latencies"),
        ({"bus_bytes": 0}, "vta.timing.value", "bus_bytes is 0"),
        ([3], "vta.timing.value", "holds [3]"),
    ):
        path.write_text(json.dumps(wrong))
        with pytest.raises(weft.Error) as refusal:
            env.device(timing=str(path))
        assert refusal.value.code == code, refusal.value
        assert reason in str(refusal.value)


def test_a_missing_scope_is_named():
    env = weft.vta.env()
    sch = weft.Schedule(seed_matmul(env, 1, 2, 2))
    sch.set_scope(sch.get_block("A_buf"), 0, env.inp_scope)
    sch.set_scope(sch.get_block("C_buf"), 0, env.acc_scope)
    with pytest.raises(weft.Error) as refusal:
        weft.build(sch, target=env.target)
    assert refusal.value.code == "vta.lower.stages"
    assert 'the one that writes "B_buf", which lies in global memory' in str(refusal.value)
    assert 'sch.set_scope(sch.get_block("B_buf"), 0' in str(refusal.value)


def test_strides_fetch_only_the_rows_that_are_read():
    env = weft.vta.env()
    f, inputs, want = packed_conv(env, 14, 64, 64, 1, 2)
    _, cycles = check(env, f, inputs, want, tiles={"v_o": 4, "v_y": 7, "v_z": 7, "v_c": 4})
    device = weft.device(env.target)
    given = [weft.asarray(a, device=device) for a in (*inputs, want)]
    before = device.stats()["bytes.inp.written"]
    module = weft.build(
        weft.vta.default_schedule(f, env, tiles={"v_o": 4, "v_y": 7, "v_z": 7, "v_c": 4}),
        target=env.target,
    )
    module["main"](*given)
    # 4 channel blocks of 7 rows (not 13) of 13 columns.
    assert device.stats()["bytes.inp.written"] - before == 4 * 7 * 13 * 16
    assert cycles > 0


def test_tiles_that_do_not_fit_name_the_axis_and_tiles_that_do():
    env = weft.vta.env()
    f = weft.vta.op.matmul(1024, 1024, 1024, shift=4)

    def refusal(tiles):
        with pytest.raises(weft.Error) as caught:
            weft.vta.default_schedule(f, env, tiles=tiles)
        assert caught.value.code == "vta.schedule.default"
        return str(caught.value)

    text = refusal({"v_i0": 1024, "v_i1": 8, "v_k": 2})
    found = re.search(r'a tile that fits: (\d+) instead of 1024 of axis "v_i0"', text)
    assert found, text
    weft.vta.default_schedule(f, env, tiles={"v_i0": int(found[1]), "v_i1": 8, "v_k": 2})
    text = refusal({"v_i0": 1024, "v_i1": 64, "v_k": 64})
    found = re.findall(r'(\d+) instead of \d+ of axis "(\w+)"', text)
    assert len(found) == 3, text
    weft.vta.default_schedule(f, env, tiles={axis: int(n) for n, axis in found})
