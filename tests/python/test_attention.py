# SPDX-License-Identifier: Apache-2.0
"""Attention and its gradients against the formula in float64: on the host and as programs of cards run by opencl."""

import math

import numpy as np
import pytest
from cover import cover
from present import present
import weft
from refusal import refused
from weft import _core, nn

F = nn.functional
TOLERANCE = {"float64": 1e-12, "float32": 2e-5, "float16": 4e-3, "bfloat16": 2.5e-2}


def formula(q, k, v, g, mask=None, padding=None, lengths=None, band=None, scale=1.0, keep=None):
    """out, logarithms of sums, gradients of q, k, v."""
    q, k, v, g = (a.astype(np.float64) for a in (q, k, v, g))
    (batch, heads, n, _), (keys, m) = q.shape, k.shape[1:3]
    group = heads // keys
    whole_k, whole_v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    s = np.einsum("bhnd,bhmd->bhnm", q, whole_k) * scale
    seen = np.ones(s.shape, bool)
    if band is not None:
        ahead = np.arange(m)[None] - np.arange(n)[:, None]
        seen &= (ahead >= band[0]) & (ahead <= band[1])
    if padding is not None:
        seen &= padding[:, None, None]
    if lengths is not None:
        seen &= (np.arange(m)[None] < lengths[:, None])[:, None, None]
    if mask is not None and mask.dtype == bool:
        seen &= mask
    elif mask is not None:
        s = s + mask
    s = np.where(seen, s, -np.inf)
    top = s.max(-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0)
    e = np.exp(s - top)
    total = e.sum(-1, keepdims=True)
    with np.errstate(all="ignore"):
        p, sums = np.where(total == 0, 0, e / total), (np.log(total) + top)[..., 0]
    used = p if keep is None else p * keep
    out = used @ whole_v
    change = g @ whole_v.swapaxes(-1, -2) * (1 if keep is None else keep)
    ds = p * (change - (g * out).sum(-1, keepdims=True)) * scale

    def shared(x):
        return x.reshape(batch, keys, group, *x.shape[2:]).sum(2)

    dk, dv = ds.swapaxes(-1, -2) @ q, used.swapaxes(-1, -2) @ g
    return out, sums, ds @ whole_k, shared(dk), shared(dv)


def wide(x):
    x = x.data if isinstance(x, weft.Tensor) else x
    return (x if x.dtype == weft.float64 else x.astype("float32")).numpy().astype(np.float64)


def close(got, want, tolerance, what=""):
    got = wide(got)
    assert got.shape == want.shape and not np.isnan(got).any(), what
    # Where a query sees one key, gradients of scores are differences of equal numbers.
    size = max(np.linalg.norm(want), 0.05 * math.sqrt(max(want.size, 1)))
    assert np.linalg.norm(got - want) <= tolerance * size, what


def draw(rng, device, dtype, lengths, widths):
    """Operands of random shapes and options, with the options for the formula."""
    keys, group, batch = (int(rng.integers(1, top)) for top in (4, 3, 3))
    n, m = (int(rng.choice(lengths)) for _ in range(2))
    width = int(rng.choice(widths))
    value = width if rng.random() < 0.6 else int(rng.choice(widths))
    heads, options = keys * group, {}

    def normal(*shape):
        return rng.standard_normal(shape).astype("float32")

    shapes = (
        (batch, heads, n, width),
        (batch, keys, m, width),
        (batch, keys, m, value),
        (batch, heads, n, value),
    )
    arrays = [weft.asarray(normal(*s)).astype(dtype).to(device) for s in shapes]
    kind = int(rng.integers(4))
    if kind:
        every = [(batch, heads, n, m), (1, 1, n, m), (n, m), (batch, 1, 1, m)]
        shape = every[int(rng.integers(4))]
        mask = rng.random(shape) < 0.8 if kind == 1 else normal(*shape)
        if kind == 3:
            mask[rng.random(shape) < 0.2] = -np.inf
        options["mask"] = mask if kind == 1 else wide(weft.asarray(mask).astype(dtype))
    if rng.random() < 0.3:
        options["padding"] = rng.random((batch, m)) < 0.8
    if rng.random() < 0.3:
        options["lengths"] = rng.integers(0, m + 2, batch).astype("int32")
    if rng.random() < 0.5:
        bands = [(-(2**40), 0), (-10, 0), (-5, 5), (-(2**40), m - n), (3, 20)]
        options["band"] = bands[int(rng.integers(5))]
    options["scale"] = float(rng.choice([1 / math.sqrt(width), 0.3 / math.sqrt(width)]))
    return arrays, options


def run(arrays, options, device, dtype, **more):
    given = dict(options, **more)
    for name in ("mask", "padding", "lengths"):
        if name in given:
            x = weft.asarray(given[name])
            given[name] = (x.astype(dtype) if x.dtype == weft.float64 else x).to(device)
    q, k, v = (weft.Tensor(x, requires_grad=True) for x in arrays[:3])
    out = _core._attention(q, k, v, **given)
    out.backward(weft.Tensor(arrays[3]))
    return out, q.grad, k.grad, v.grad


def check(arrays, options, device, dtype, what, **more):
    keep = more.pop("keep", None)
    want = formula(*map(wide, arrays), **options, keep=keep)
    for got, expected in zip(run(arrays, options, device, dtype, **more), (want[0], *want[2:])):
        close(got, expected, TOLERANCE[dtype], what)


def cases(count, device, lengths, widths, first=0):
    for seed in range(first, first + count):
        rng = np.random.default_rng(seed)
        dtype = str(rng.choice(list(TOLERANCE)[1 if device != "cpu" else 0 :]))
        arrays, options = draw(rng, weft.device(device), dtype, lengths, widths)
        check(arrays, options, weft.device(device), dtype, (seed, dtype, options))


def test_all_options_on_the_host():
    cases(200, "cpu", [1, 5, 7, 33, 63, 64, 129], [1, 3, 8, 16, 31, 64, 80])


def test_long_sequences_on_the_host_in_parts():
    """More scores than are kept: in parts, which give what the whole gives."""
    cases(4, "cpu", [1000, 1500], [8, 16], first=3)


def test_random_options_on_a_card():
    cases(4, "opencl:0", [1, 7, 40], [3, 16], first=11)


@pytest.mark.parametrize("n, m, width", [(129, 70, 31), (1, 65, 64)])
def test_lengths_of_no_tile_on_a_card(rng, n, m, width):
    shapes = (2, 2, n, width), (2, 1, m, width), (2, 1, m, width), (2, 2, n, width)
    device = present("opencl:0")
    arrays = [weft.asarray(rng.standard_normal(s).astype("float32")).to(device) for s in shapes]
    check(arrays, {"scale": 0.2, "band": (-(2**40), 0)}, device, "float32", "")


def gradient_in_one_pass(rng, n, m, width, value, **options):
    """dq of the program that adds it up, dk and dv: results, and those of the formula."""
    card, host = weft.device("opencl:0"), weft.device("cpu")
    batch, heads, keys, scale = 1, 2, 1, 0.25
    shapes = (
        (batch, heads, n, width),
        (batch, keys, m, width),
        (batch, keys, m, value),
        (batch, heads, n, value),
    )
    q, k, v, g = (rng.standard_normal(s).astype("float32") for s in shapes)
    out, sums, *want = formula(q, k, v, g, scale=scale, band=options.get("band"))
    text = _core._attention_program(
        "gradient", "float32", width, value, band="band" in options, rows=2, columns=4
    )
    flat = [
        weft.asarray(x.astype("float32").reshape(-1)).to(card)
        for x in (q, k, v, g, sums, (g * out).sum(-1))
    ]
    results = [weft.zeros((x.size,), device=card) for x in want]
    tiles = -(-m // 32)
    numbers = [tiles * batch * keys, tiles, heads, heads // keys, n, m]
    for length, h, w in ((n, heads, width), (m, keys, width), (m, keys, value), (n, heads, value)):
        numbers += [h * length * w, length * w, w]
    numbers += [max(options["band"][0], -(n + m)), options["band"][1]] if "band" in options else []
    weft.build(_core.parse_func(text), target="opencl:0")(*flat, *results, *numbers, scale)
    return [x.to(host).numpy().reshape(y.shape) for x, y in zip(results, want)], want


@pytest.mark.parametrize("n, m, width, value", [(70, 50, 20, 16), (33, 130, 16, 40), (1, 1, 3, 1)])
@pytest.mark.parametrize("options", [{}, {"band": (-(10**9), 0)}])
def test_all_gradients_in_one_pass_on_a_card(rng, n, m, width, value, options):
    present("opencl:0")
    for got, want in zip(*gradient_in_one_pass(rng, n, m, width, value, **options)):
        close(weft.asarray(got), want, 2e-5)


TILES = [(100, 41, 64, 48, 8, 4, (3, 20)), (70, 90, 16, 32, 4, 4, None), (33, 130, 32, 32, 2, 4, (-(10**6), 0)), (2, 3, 16, 16, 1, 1, None)]  # fmt: skip


@cover("n, m, width, value, rows, columns, band", TILES, "kind", ["forward", "queries", "keys", "gradient"])  # fmt: skip
def test_tiles_that_are_copied_while_others_are_multiplied(
    rng, kind, n, m, width, value, rows, columns, band
):
    card, batch, heads, keys, scale = present("opencl:0"), 2, 4, 2, 0.25
    shapes = (heads, n, width), (keys, m, width), (keys, m, value), (heads, n, value)
    q, k, v, g = (rng.standard_normal((batch, *s)).astype("float32") for s in shapes)
    out, sums, *gradients = formula(q, k, v, g, scale=scale, band=band)
    text = _core._attention_program(kind, "float32", width, value, band=band is not None, rows=rows, columns=columns, queue="in order")  # fmt: skip
    inputs, want = [q, k, v], [out, sums]
    if kind != "forward":
        inputs += [g, sums, (g * out).sum(-1)]
        want = {"queries": gradients[:1], "keys": gradients[1:], "gradient": gradients}[kind]
    inputs = [weft.asarray(x.astype("float32").reshape(-1)).to(card) for x in inputs]
    results = [weft.zeros((x.size,), device=card) for x in want]
    by_keys = kind in ("keys", "gradient")
    tiles = -(-(m if by_keys else n) // (16 * rows))
    numbers = [tiles * batch * (keys if by_keys else heads), tiles, heads, heads // keys, n, m]
    for i, (h, length, w) in enumerate(shapes[: 3 if kind == "forward" else 4]):
        by = 4 if (i in (1, 2)) != by_keys else 1  # what passes counts vectors
        numbers += [h * length * w // by, length * w // by, w // by]
    numbers += list(band or ())
    weft.build(_core.parse_func(text), target="opencl:0")(*inputs, *results, *numbers, scale)
    for got, right in zip(results, want):
        got, none = got.to("cpu").numpy().reshape(right.shape), np.isinf(right)  # sees no key
        assert (got[none] == right[none]).all()
        close(weft.asarray(np.where(none, 0, got)), np.where(none, 0, right), 2e-5)


@pytest.mark.parametrize("kind", ["forward", "keys", "gradient"])
@pytest.mark.parametrize("width, rows, columns", [(64, 8, 4), (128, 4, 4)])
def test_cubins_of_float32(kind, width, rows, columns):
    reason = weft.device("cuda").reason
    if "NVRTC" in reason:
        pytest.skip(f"no NVRTC: {reason}")
    text = _core._attention_program(kind, "float32", width, width, rows=rows, columns=columns, queue="cp.async")  # fmt: skip
    source = weft.build(_core.parse_func(text), target="cuda:arch=sm_90").source()
    assert "weft_copy_16(" in source and "cp.async.wait_group 1;" in source


def test_views_need_no_copies_on_a_card(rng):
    device = present("opencl:0")
    packed = rng.standard_normal((2, 9, 3, 2, 16)).astype("float32")  # batch, time, q k v, heads
    x = weft.asarray(packed).to(device)
    q, k, v = (x[:, :, i].permute(0, 2, 1, 3) for i in range(3))
    g = weft.asarray(rng.standard_normal((2, 2, 16, 9)).astype("float32")).to(device).mT
    check([q, k, v, g], {"scale": 0.25}, device, "float32", "")


@pytest.mark.parametrize("device", ["cpu", "opencl:0"])
def test_dropout_is_the_same_in_the_gradient(rng, device):
    n = m = 24
    at = weft.device(device)
    zeros = weft.Tensor(weft.zeros((1, 2, n, 16), device=at))
    one = np.broadcast_to(np.eye(m, dtype="float32"), (1, 2, m, m))
    eye = weft.Tensor(weft.asarray(np.ascontiguousarray(one)).to(at))
    options = {"scale": 0.25, "dropout": 0.4, "seed": 12345678901234567890}
    keep = np.round(wide(_core._attention(zeros, zeros, eye, **options)) * m * 0.6) / 0.6
    assert set(np.unique(np.round(keep * 0.6))) == {0.0, 1.0}
    assert 0.5 < (keep > 0).mean() < 0.7 and (keep[0, 0] != keep[0, 1]).any()
    arrays = [weft.asarray(rng.standard_normal((1, 2, n, 16)).astype("float32")).to(at) for _ in range(4)]  # fmt: skip
    check(arrays, {"scale": 0.25}, at, "float32", "", keep=keep, dropout=0.4, seed=options["seed"])
    other = _core._attention(zeros, zeros, eye, **dict(options, seed=1))
    assert (np.round(wide(other) * m * 0.6) / 0.6 != keep).any()


@pytest.mark.parametrize("device", ["cpu", "opencl:0"])
@pytest.mark.parametrize("n, m", [(0, 3), (3, 0), (1, 1)])
def test_no_queries_no_keys_one_element(device, n, m):
    at = weft.device(device)
    q = weft.Tensor(weft.ones((1, 2, n, 1), device=at), requires_grad=True)
    k = weft.Tensor(weft.ones((1, 2, m, 1), device=at), requires_grad=True)
    lengths = weft.asarray([1]).to(at)
    for more in ({}, {"lengths": lengths}, {"causal": True}):
        out = F.attention(q, k, k, **more)
        assert wide(out).tolist() == np.full((1, 2, n, 1), float(m > 0)).tolist()
        out.sum().backward()
        assert q.grad.shape == q.shape and k.grad.shape == k.shape
    found = _core._attention_forward(q.data, k.data, k.data)
    assert found[0].shape == (1, 2, n, 1) and found[1].shape == (1, 2, n)
    three = _core._attention_backward(found[0], q.data, k.data, k.data, *found)
    assert [x.shape for x in three] == [q.shape, k.shape, k.shape]


@pytest.mark.parametrize("device", ["cpu", "opencl:0"])
def test_nothing_seen_and_not_a_number(device):
    at = weft.device(device)
    q = weft.Tensor(weft.ones((1, 1, 3, 16), device=at), requires_grad=True)
    nothing = weft.zeros((3, 3), dtype="bool").to(at)
    out = F.scaled_dot_product_attention(q, q, q, attn_mask=nothing)
    out.sum().backward()
    assert wide(out).tolist() == np.zeros((1, 1, 3, 16)).tolist() and not wide(q.grad).any()
    v = np.ones((1, 1, 3, 16), "float32")
    v[0, 0, 2, 5] = np.nan
    x = weft.Tensor(weft.asarray(v).to(at))
    out = wide(F.scaled_dot_product_attention(x, x, weft.Tensor(weft.ones((1, 1, 3, 16), device=at)), is_causal=True))  # fmt: skip
    assert np.isnan(out).any(-1)[0, 0].tolist() == [False, False, True]


def test_axes_and_options_of_torch(rng):
    def check_shapes(*shapes, **options):
        a = [rng.standard_normal(s).astype("float32") for s in shapes]
        got = F.scaled_dot_product_attention(*map(weft.Tensor, a), **options)
        lead = np.broadcast_shapes(*(x.shape[:-3] for x in a))

        def four(x):  # (batch, heads, length, width)
            if x.ndim > 3:
                return np.broadcast_to(x, (*lead, *x.shape[-3:])).reshape(-1, *x.shape[-3:])
            return x.reshape(1, *x.shape) if x.ndim == 3 else x.reshape(1, 1, *x.shape)

        q, k, v = map(four, a)
        band = (-(2**40), 0) if options.get("is_causal") else None
        scale = options.get("scale", 1 / math.sqrt(q.shape[-1]))
        want = formula(q, k, v, np.zeros((*q.shape[:3], v.shape[-1])), band=band, scale=scale)[0]
        close(got, want.reshape(got.shape), 1e-5)

    check_shapes((2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 6), is_causal=True, scale=0.3)
    check_shapes((2, 3, 7, 4), (2, 3, 5, 4), (2, 3, 5, 4), is_causal=True)
    check_shapes((2, 6, 5, 4), (2, 2, 7, 4), (2, 2, 7, 4), enable_gqa=True)
    check_shapes((5, 4), (7, 4), (7, 4))
    check_shapes((3, 5, 4), (3, 7, 4), (3, 7, 4))
    check_shapes((2, 2, 3, 5, 4), (2, 2, 3, 7, 4), (2, 2, 3, 7, 4))
    check_shapes((2, 3, 5, 4), (1, 3, 7, 4), (1, 3, 7, 4))


def test_windows_and_lengths(rng):
    q, k, v = (weft.Tensor(rng.standard_normal((2, 2, n, 8)).astype("float32")) for n in (6, 9, 9))
    ahead = np.arange(9)[None] - np.arange(6)[:, None] - 3
    for options, seen in [
        ({"window": (2, 1)}, (ahead >= -2) & (ahead <= 1)),
        ({"causal": True}, ahead <= 0),
        ({"causal": True, "window": (2, None)}, (ahead <= 0) & (ahead >= -2)),
        ({"lengths": weft.asarray([4, 9])}, np.arange(9) < np.array([4, 9])[:, None, None, None]),
        ({"padding": weft.asarray([[True] * 4 + [False] * 5] * 2)}, np.arange(9) < 4),
    ]:
        want = F.attention(q, k, v, mask=weft.asarray(np.broadcast_to(seen, (2, 2, 6, 9)).copy()))
        close(F.attention(q, k, v, **options), wide(want), 1e-6, options)


def test_a_mask_may_be_learned(rng):
    bias = weft.Tensor(rng.standard_normal((1, 2, 4, 4)).astype("float32"), requires_grad=True)
    q = weft.Tensor(rng.standard_normal((2, 2, 4, 8)).astype("float32"))
    out = F.scaled_dot_product_attention(q, q, q, attn_mask=bias)
    (out * out).sum().backward()
    step, size = 1e-2, np.zeros((1, 2, 4, 4), "float32")
    size[0, 1, 2, 3] = step

    def loss(b):
        y = F.scaled_dot_product_attention(q, q, q, attn_mask=weft.Tensor(b))
        return float((y * y).sum().item())

    b = bias.data.numpy()
    assert abs((loss(b + size) - loss(b - size)) / (2 * step) - wide(bias.grad)[0, 1, 2, 3]) < 2e-3


def test_refusals():
    def refuses(kind, slug, words, f, *arguments, **keywords):
        assert words in str(refused(kind, slug, f, *arguments, **keywords))

    def x(*shape, dtype="float32"):
        return weft.Tensor(weft.ones(shape, dtype=dtype))

    a = x(1, 4, 3, 8)
    sdpa = F.scaled_dot_product_attention
    refuses(weft.ShapeError, "nn.attention.heads", "enable_gqa", sdpa, a, x(1, 2, 3, 8), x(1, 2, 3, 8))  # fmt: skip
    refuses(weft.ShapeError, "nn.attention.shape", "the key heads do not divide", F.attention, a, x(1, 3, 3, 8), x(1, 3, 3, 8))  # fmt: skip
    refuses(weft.ShapeError, "nn.attention.shape", "different widths", F.attention, a, x(1, 4, 3, 7), a)  # fmt: skip
    refuses(weft.ShapeError, "nn.attention.shape", "heads or length", F.attention, a, a, x(1, 4, 2, 8))  # fmt: skip
    refuses(weft.ShapeError, "nn.attention.shape", "their batches differ", F.attention, x(2, 4, 3, 8), x(3, 4, 3, 8), a)  # fmt: skip
    refuses(weft.ShapeError, "nn.attention.shape", "equally many axes", F.attention, a, x(3, 8), a)
    refuses(weft.DTypeError, "nn.attention.type", "float16", F.attention, a, x(1, 4, 3, 8, dtype="float16"), a)  # fmt: skip
    refuses(weft.ShapeError, "nn.attention.mask", "(1, 4, 3, 3)", F.attention, a, a, a, mask=weft.ones((2, 4, 3, 3)))  # fmt: skip
    refuses(weft.DTypeError, "nn.attention.type", "int64", F.attention, a, a, a, mask=weft.ones((3, 3), dtype="int64"))  # fmt: skip
    refuses(weft.ShapeError, "nn.attention.shape", "lengths (batch,)", F.attention, a, a, a, lengths=weft.asarray([1, 2]))  # fmt: skip
    refuses(weft.ArgumentError, "nn.dropout.p", "1.5", F.attention, a, a, a, dropout=1.5)
    q = weft.Tensor(weft.ones((1, 1, 3, 16), device="opencl:0"), requires_grad=True)
    out = F.attention(q, q, q, dropout=0.5)
    refuses(weft.ArgumentError, "nn.attention.second", "dropout", lambda: _core.gradients([out], [q], True))  # fmt: skip
