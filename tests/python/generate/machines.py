# SPDX-License-Identifier: Apache-2.0
"""Random operations on arrays of simulated machines: operators, shapes (odd, of one element and of none), layouts (transposed,
cut with steps, reversed, broadcast) and element types are drawn. A machine computes what the host computes, or refuses with a
reason that names it."""

import random
import re

import numpy as np
import weft
import weft.nn.functional as F
from weft import linalg

DTYPES = {
    "vta": "int8 int8 int32 int32 int16 uint8 uint16 uint32 bool int64 float32".split(),
    "": "float32 int32 int8 uint8 bool float32 int32 int64 uint32 int16 uint16 uint64 float16 float64".split(),
}
UNARY = """abs acos acosh asin asinh atan atanh bitwise_invert ceil cos cosh erf exp exp2 expm1 floor isfinite isinf isnan log
log10 log1p log2 logical_not negative positive reciprocal relu round rsqrt sigmoid sign signbit sin sinh sqrt square tan tanh
trunc""".split()
BINARY = """add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal
floor_divide greater greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor maximum minimum
multiply not_equal pow remainder subtract""".split()
LAYERS = """elu gelu glu hardshrink hardsigmoid hardswish leaky_relu logsigmoid mish relu6 selu silu softmin softplus softshrink
softsign tanhshrink normalize""".split()
# Operands from 0.1 on, and where roundings beside a step would give another number.
POSITIVE = set(
    "log log10 log1p log2 rsqrt sqrt pow divide reciprocal floor_divide remainder logaddexp prod".split()
)
UNIT = {"acos", "asin", "atanh"}
SHIFTS = {"bitwise_left_shift", "bitwise_right_shift"}
REFUSALS = re.compile(
    r"(qpu|vta|wse)\.(accepts|lower)\.|target\.dtype|stages\.|array\.\w+\.(kernel|device|range)"
)
LARGEST = 500  # elements of a result


def _own(x):
    """Sums of the operand's own type: without it integers add up in 64 bits."""
    return {} if x.dtype == weft.bool else {"dtype": x.dtype}


class Draw:
    """One operation: `operands` as NumPy views, `call` over arrays of a device."""

    def __init__(self, seed, machine):
        self.rng = random.Random(seed)
        self.data = np.random.default_rng(seed)
        self.dtypes = DTYPES.get(machine, DTYPES[""])
        self.dtype = self.rng.choice(self.dtypes)
        self.operands, self.text = [], ""
        kind = self.rng.choices([k for k, _ in KINDS], [w for _, w in KINDS])[0]
        self.call = kind(self)
        self.kind = kind.__name__.strip("_")

    def shape(self, low=0, high=4, limit=LARGEST):
        rng = self.rng
        while True:
            shape = [rng.choice([1, 2, 3, 5, 7, 16, 17, 33]) for _ in range(rng.randint(low, high))]
            if shape and rng.random() < 0.06:
                shape[rng.randrange(len(shape))] = 0
            if np.prod(shape, dtype=int) <= limit:
                return tuple(shape)

    def values(self, name, shape, dtype=None):
        dtype, data = dtype or self.dtype, self.data
        if dtype == "bool":
            return data.random(shape) < 0.5
        if dtype[0] in "iu":
            if name in UNIT:
                return np.zeros(shape, dtype)
            positive = name in POSITIVE | SHIFTS | {"acosh"} or dtype[0] == "u"
            x = data.integers(1, 5, shape)
            return (x if positive else x * data.choice([-1, 1], shape)).astype(dtype)
        if name in UNIT:
            return data.uniform(-0.9, 0.9, shape).astype(dtype)
        x = data.uniform(1.1, 2.9, shape)
        return (x if name in POSITIVE | {"acosh"} else x * data.choice([-1, 1], shape)).astype(
            dtype
        )

    def operand(self, name, shape, dtype=None):
        """A further operand: a view of one of several layouts."""
        rng, shape = self.rng, tuple(shape)
        way = rng.choice(["plain", "plain", "transposed", "cut", "reversed", "broadcast"])
        if not shape:
            way = "plain"
        view = []  # steps from what is stored
        if way == "transposed":
            order = rng.sample(range(len(shape)), len(shape))
            made = self.values(name, [shape[k] for k in order], dtype)
            view = [("transpose", tuple(int(k) for k in np.argsort(order)))]
        elif way == "cut":
            key, whole = [], []
            for n in shape:
                first, step, behind = rng.randint(0, 2), rng.choice([1, 1, 2, 3]), rng.randint(0, 2)
                last = first + max(n - 1, 0) * step + (n > 0)
                whole.append(last + behind)
                key.append(slice(first, last, step))
            made = self.values(name, whole, dtype)
            view = [("index", tuple(key))]
        elif way == "reversed":
            made = self.values(name, shape, dtype)
            view = [("index", tuple(slice(None, None, rng.choice([1, -1])) for _ in shape))]
        elif way == "broadcast":
            k = rng.randrange(len(shape))
            made = self.values(name, [1 if j == k else n for j, n in enumerate(shape)], dtype)
            view = [("broadcast", shape)]
        else:
            made = self.values(name, shape, dtype)
        self.operands.append((made, view))

    def axis(self, shape, none=False):
        return (
            None
            if none and self.rng.random() < 0.3
            else self.rng.randrange(-len(shape), len(shape))
        )

    def axes(self, shape):
        how = self.rng.random()
        if how < 0.2 or not shape:
            return None
        if how < 0.6:
            return self.rng.randrange(-len(shape), len(shape))
        return tuple(self.rng.sample(range(len(shape)), self.rng.randint(1, len(shape))))

    def story(self):
        forms = ", ".join(
            f"{x.dtype}{list(x.shape)}" + "".join(f" {step}" for step in view)
            for x, view in self.operands
        )
        return f"{self.text} of {forms}"


def _unary(d):
    d.text = name = d.rng.choice(UNARY)
    d.operand(name, d.shape())
    return getattr(weft, name)


def _layer(d):
    d.text = name = d.rng.choice(LAYERS)
    d.operand(name, [2 * n for n in d.shape(1, 3, 100)])
    return getattr(F, name)


def _binary(d):
    name = d.rng.choice(BINARY)
    shape = d.shape()
    other = [1 if d.rng.random() < 0.2 else n for n in shape][
        d.rng.randint(0, len(shape)) if d.rng.random() < 0.3 else 0 :
    ]
    how = d.rng.random()
    f = getattr(weft, name)
    if how < 0.15:
        number = d.rng.choice([1, 2, 3]) if d.dtype[0] in "iub" else d.rng.choice([0.5, 1.5, 2])
        number = bool(number) if d.dtype == "bool" else number
        d.text = f"{name} with {number}"
        d.operand(name, shape)
        return (lambda x: f(x, number)) if d.rng.random() < 0.7 else (lambda x: f(number, x))
    d.text = name
    mixed = d.dtype if how < 0.85 else d.rng.choice(d.dtypes)
    a, b = (shape, other) if d.rng.random() < 0.5 else (other, shape)
    d.operand(name, a)
    d.operand(name, b, mixed)
    return f


def _where(d):
    shape = d.shape()
    d.text = "where"
    d.operand("where", shape, "bool")
    d.operand("where", shape)
    if d.rng.random() < 0.4:
        number = d.rng.choice([0, 1, 3])
        number = bool(number) if d.dtype == "bool" else number
        return lambda c, x: weft.where(c, x, number)
    d.operand("where", [1 if d.rng.random() < 0.2 else n for n in shape])
    return weft.where


def _cast(d):
    to = d.rng.choice(d.dtypes)
    d.text = f"astype {to}"
    d.operand("cast", d.shape())
    return lambda x: x.astype(to)


def _reduce(d):
    name = d.rng.choice(
        "sum prod max min mean all any var std logsumexp count_nonzero argmax argmin".split()
    )
    shape = d.shape(0 if name not in ("argmax", "argmin") else 1)
    options = {"axis": d.axes(shape), "keepdims": d.rng.random() < 0.3}
    if name in ("argmax", "argmin"):
        options["axis"] = d.axis(shape, True)
    if name in ("var", "std") and d.rng.random() < 0.4:
        options["correction"] = 1
    d.text = f"{name} {options}"
    d.operand(name, shape)
    f = getattr(weft, name)
    own = name in ("sum", "prod") and d.rng.random() < 0.8
    return lambda x: f(x, **options, **(_own(x) if own else {}))


def _scan(d):
    name = d.rng.choice(
        "cumulative_sum cumulative_prod sort argsort softmax log_softmax diff flip roll".split()
    )
    shape = d.shape(1, 3, 200)
    axis = d.axis(shape)
    d.text = f"{name} along {axis}"
    d.operand("prod" if name == "cumulative_prod" else name, shape)
    if name.startswith("cumulative"):
        return lambda x: getattr(weft, name)(x, axis=axis, **_own(x))
    if name in ("sort", "argsort"):
        down = d.rng.random() < 0.4
        d.text += f" descending={down}"
        return lambda x: getattr(weft, name)(x, axis=axis, descending=down)
    if name == "roll":
        by = d.rng.randint(-9, 9)
        return lambda x: weft.roll(x, by, axis=axis)
    return lambda x: getattr(weft, name)(x, axis=axis)


def _product(d):
    how = d.rng.choice(
        "matmul matmul batched vector rows vecdot tensordot einsum outer linear".split()
    )
    m, n, k = (d.rng.choice([1, 2, 3, 5, 8, 16, 17, 33]) for _ in range(3))
    if d.rng.random() < 0.05:
        k = 0
    d.text = how
    b = d.rng.choice([1, 2, 3])
    if how == "matmul":
        d.operand(how, (m, k)), d.operand(how, (k, n))
        return weft.matmul
    if how == "batched":
        d.operand(how, (b, m, k)), d.operand(how, d.rng.choice([(b, k, n), (k, n), (1, k, n)]))
        return weft.matmul
    if how == "vector":
        d.operand(how, (m, k)), d.operand(how, (k,))
        return weft.matmul
    if how == "rows":
        d.operand(how, (k,)), d.operand(how, (k, n))
        return weft.matmul
    if how == "vecdot":
        d.operand(how, (m, k)), d.operand(how, (m, k))
        return weft.vecdot
    if how == "tensordot":
        d.operand(how, (b, m, k)), d.operand(how, (m, k, n))
        return lambda x, y: weft.tensordot(x, y, axes=([1, 2], [0, 1]))
    if how == "einsum":
        d.operand(how, (b, m, k)), d.operand(how, (n, k))
        return lambda x, y: weft.einsum("bmk,nk->bnm", x, y)
    if how == "outer":
        d.operand(how, (m,)), d.operand(how, (n,))
        return linalg.outer
    d.operand(how, (b, m, k)), d.operand(how, (n, k)), d.operand(how, (n,))
    return F.linear


def _windows(d):
    rng = d.rng
    channels, groups = rng.choice([(1, 1), (2, 1), (3, 1), (4, 2), (4, 4)])
    out = groups * rng.randint(1, 3)
    h, w, kh, kw = rng.randint(3, 9), rng.randint(3, 9), rng.randint(1, 3), rng.randint(1, 3)
    options = {"stride": rng.randint(1, 3), "padding": rng.randint(0, 1 if min(kh, kw) > 1 else 0)}
    how = rng.choice(
        [
            "conv2d",
            "conv2d",
            "conv1d",
            "conv_transpose2d",
            "max_pool2d",
            "avg_pool2d",
            "adaptive_avg_pool2d",
        ]
    )
    b = rng.randint(1, 2)
    d.text = f"{how} {options}, groups {groups}"
    if how == "conv2d":
        options["dilation"] = rng.randint(1, 2)
        options["padding"] = rng.randint(0, 3)
        d.text = f"{how} {options}, groups {groups}"
        (
            d.operand(how, (b, channels, h + 3, w + 3)),
            d.operand(how, (out, channels // groups, kh, kw)),
        )
        d.operand(how, (out,))
        return lambda x, y, z: F.conv2d(x, y, z, groups=groups, **options)
    if how == "conv1d":
        d.operand(how, (b, channels, h + 3)), d.operand(how, (out, channels // groups, kh))
        return lambda x, y: F.conv1d(x, y, groups=groups, **options)
    if how == "conv_transpose2d":
        d.operand(how, (b, channels, h, w)), d.operand(how, (channels, out // groups, kh, kw))
        return lambda x, y: F.conv_transpose2d(x, y, groups=groups, **options)
    d.operand(how, (b, channels, h, w))
    if how == "adaptive_avg_pool2d":
        return lambda x: F.adaptive_avg_pool2d(x, (kh, kw))
    return lambda x: getattr(F, how)(x, (kh, kw), **options)


def _shape(d):
    rng = d.rng
    name = rng.choice(
        "reshape permute broadcast squeeze concat stack pad tile repeat tril triu meshgrid unstack diagonal trace".split()
    )
    shape = d.shape(2 if name in ("tril", "triu", "diagonal", "trace") else 1, 3, 150)
    d.text = name
    if name in ("concat", "stack"):
        axis = d.axis(shape)
        count = rng.randint(1, 3)
        for _ in range(count):
            other = list(shape)
            if name == "concat":
                other[axis] = rng.choice([0, 1, 2, 5])
            d.operand(name, other)
        return lambda *xs: getattr(weft, name)(list(xs), axis=axis)
    if name == "meshgrid":
        d.operand(name, (rng.randint(0, 5),)), d.operand(name, (rng.randint(1, 5),))
        which = rng.randint(0, 1)
        return lambda x, y: weft.meshgrid(x, y)[which].copy()
    d.operand(name, shape)
    if name == "reshape":
        return lambda x: weft.reshape(x, (x.size,)).copy()
    if name == "permute":
        order = rng.sample(range(len(shape)), len(shape))
        return lambda x: weft.permute_dims(x, tuple(order)).copy()
    if name == "broadcast":
        count = rng.randint(1, 3)
        return lambda x: weft.broadcast_to(x, (count, *x.shape)).copy()
    if name == "squeeze":
        return lambda x: weft.squeeze(weft.expand_dims(x, axis=1), axis=1) == x
    if name == "pad":
        width = [(rng.randint(0, 3), rng.randint(0, 3)) for _ in shape]
        return lambda x: weft.pad(x, tuple(width))
    if name == "tile":
        times = tuple(rng.randint(0, 3) for _ in range(rng.randint(1, 3)))
        d.text += f" {times}"
        return lambda x: weft.tile(x, times)
    if name == "repeat":
        axis, times = d.axis(shape), rng.randint(0, 3)
        return lambda x: weft.repeat(x, times, axis=axis)
    if name in ("tril", "triu"):
        k = rng.randint(-3, 3)
        return lambda x: getattr(weft, name)(x, k=k)
    if name == "unstack":
        axis = d.axis(shape)
        return lambda x: weft.stack(
            [*weft.unstack(x, axis=axis)[::-1], x.sum(axis=axis, **_own(x))[...].astype(x.dtype)]
        )
    offset = rng.randint(-1, 1)
    if name == "diagonal":
        return lambda x: linalg.diagonal(x, offset=offset).copy()
    return lambda x: linalg.trace(x, offset=offset, **_own(x))


def _positions(d, count, extent):
    values = d.data.integers(-extent, extent, count) if extent else np.zeros(0, "int64")
    d.operands.append(
        (
            values.astype(
                d.rng.choice(["int64", "int32", "int64", "uint8"])
                if (values >= 0).all()
                else "int64"
            ),
            [],
        )
    )


def _index(d):
    rng = d.rng
    name = rng.choice(
        "view assign mask assign_mask take take_along assign_rows two topk searchsorted unique nonzero scatter isin embedding one_hot".split()
    )
    shape = d.shape(1, 3, 150)
    while name in ("take", "take_along", "assign_rows", "two", "embedding") and 0 in shape:
        shape = d.shape(1, 3, 150)
    d.text = name
    key = tuple(
        rng.choice(
            [
                slice(None),
                slice(None, None, -1),
                slice(rng.randint(0, 2), None, rng.choice([1, 2])),
                slice(0, n // 2),
            ]
        )
        for n in shape
    )
    if name in ("view", "assign"):
        d.text += f" {key}"
        d.operand(name, shape)
        if name == "view":
            return lambda x: x[key].copy()
        number = rng.choice([0, 1])
        if rng.random() < 0.5:
            return lambda x: _assigned(x, key, bool(number) if x.dtype == weft.bool else number)
        d.operand(
            name,
            np.zeros(shape)[key].shape,
            d.dtype if rng.random() < 0.7 else rng.choice(d.dtypes),
        )
        return lambda x, y: _assigned(x, key, y)
    if name in ("mask", "assign_mask"):
        part = shape[: rng.randint(1, len(shape))]
        d.operand(name, shape), d.operand(name, part, "bool")
        if name == "mask":
            return lambda x, m: x[m]
        return lambda x, m: _assigned(x, m, weft.zeros((), dtype=x.dtype, device=x.device))
    axis = d.axis(shape)
    if name == "take":
        d.operand(name, shape), _positions(d, rng.randint(0, 6), shape[axis])
        return lambda x, i: weft.take(x, i, axis=axis)
    if name == "take_along":
        other = list(shape)
        other[axis] = rng.randint(1, 4)
        d.operand(name, shape), _positions(d, other, shape[axis])
        return lambda x, i: weft.take_along_axis(x, i, axis=axis)
    if name == "assign_rows":
        count = rng.randint(1, min(3, shape[0]))
        rows = np.array(rng.sample(range(shape[0]), count), "int64")
        d.operand(name, shape), d.operands.append((rows, [])), d.operand(name, (count, *shape[1:]))
        return lambda x, i, y: _assigned(x, i, y)
    if name == "two":
        d.operand(name, shape)
        _positions(d, (3,), shape[0])
        if len(shape) == 1:
            return lambda x, i: x[i]
        _positions(d, (2, 3), shape[1])
        return lambda x, i, j: x[i, j]
    if name == "topk":
        k = rng.randint(0, shape[axis])
        d.operand(name, shape)
        return lambda x: weft.topk(x, k, axis=axis)[0]
    if name == "searchsorted":
        d.operand(name, (rng.randint(0, 20),)), d.operand(name, d.shape(1, 2, 60))
        side = rng.choice(["left", "right"])
        return lambda x, y: weft.searchsorted(weft.sort(x), y, side=side)
    if name == "unique":
        d.operand(name, shape)
        which = rng.randint(0, 2)
        return lambda x: (
            weft.unique_values(x),
            weft.unique_counts(x)[1],
            weft.unique_inverse(x)[1],
        )[which]
    if name == "nonzero":
        d.operand(name, shape)
        return lambda x: weft.nonzero(x)[-1]
    if name == "scatter":
        count = rng.randint(1, 4)
        d.operand(name, (2, 5)), d.operand(name, (2, count))
        places = np.array([rng.sample(range(5), count) for _ in range(2)])
        d.operands.append((places, []))
        return lambda x, y, i: weft.scatter(x, 1, i, y)
    if name == "isin":
        d.operand(name, shape), d.operand(name, (rng.randint(0, 7),))
        return weft.isin
    if name == "embedding":
        d.operand(name, (5, shape[0]))
        d.operands.append((d.data.integers(0, 5, d.shape(0, 2, 20)), []))
        return lambda x, i: F.embedding(i, x)
    d.operands.append((d.data.integers(0, 4, d.shape(0, 2, 30)), []))
    return lambda i: F.one_hot(i, 4)


def _norm(d):
    name = d.rng.choice(
        "layer_norm rms_norm batch_norm group_norm cross_entropy mse_loss l1_loss attention vector_norm".split()
    )
    d.text = name
    b, c, n = d.rng.choice([1, 2, 5]), d.rng.choice([2, 4]), d.rng.choice([1, 3, 16, 17])
    if name == "layer_norm":
        d.operand(name, (b, c, n)), d.operand(name, (n,)), d.operand(name, (n,))
        return lambda x, w, v: F.layer_norm(x, (n,), w, v)
    if name == "rms_norm":
        d.operand(name, (b, c, n)), d.operand(name, (n,))
        return lambda x, w: F.rms_norm(x, (n,), w)
    if name == "batch_norm":
        d.operand(name, (b, c, n)), d.operand(name, (c,)), d.operand("sqrt", (c,))
        return lambda x, m, v: F.batch_norm(x, m, v)
    if name == "group_norm":
        d.operand(name, (b, c, n))
        return lambda x: F.group_norm(x, 2)
    if name == "cross_entropy":
        d.operand(name, (b, n)), d.operands.append((d.data.integers(0, n, (b,)), []))
        return F.cross_entropy
    if name in ("mse_loss", "l1_loss"):
        d.operand(name, (b, n)), d.operand(name, (b, n))
        return getattr(F, name)
    if name == "attention":
        for _ in range(3):
            d.operand(name, (1, c, n, 4))
        causal = d.rng.random() < 0.5
        return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    d.operand(name, (b, n))
    return lambda x: linalg.vector_norm(x, axis=1)


def _assigned(x, where, value):
    x = x.copy()
    x[where] = value
    return x


KINDS = [(_unary, 3), (_layer, 1), (_binary, 5), (_where, 1), (_cast, 2), (_reduce, 4), (_scan, 3), (_product, 3), (_windows, 2),
         (_shape, 3), (_index, 4), (_norm, 1)]  # fmt: skip


def _place(x, view, device):
    """The view of the array on the device."""
    out = weft.asarray(np.asarray(x), device=device)
    for how, what in view:
        if how == "transpose":
            out = weft.permute_dims(out, what)
        elif how == "broadcast":
            out = weft.broadcast_to(out, what)
        else:
            out = out[what]
    return out


def outcome(seed, device):
    """ "host" where the host refuses, True for a right result, a refusal, or what is wrong."""
    draw = Draw(seed, device.split(":")[0])
    try:
        with np.errstate(all="ignore"):
            want = draw.call(*(_place(x, w, "cpu") for x, w in draw.operands)).numpy()
    except weft.Error:
        return draw, "host"
    held = [_place(x, w, device) for x, w in draw.operands]
    try:
        out = draw.call(*held)
        got = out.numpy()
    except weft.Error as refusal:
        good = REFUSALS.match(refusal.code) and device.split(":")[0] in str(refusal)
        return draw, refusal if good else f"refused without a reason: {refusal.code}: {refusal}"
    except Exception as error:  # noqa: BLE001
        return draw, f"{type(error).__name__}: {error}"
    if str(out.device) != device:
        return draw, f"computed on {out.device}"
    if (got.shape, got.dtype) != (want.shape, want.dtype):
        return draw, f"{got.dtype}{got.shape} for {want.dtype}{want.shape}"
    narrow = any(x.dtype == np.float16 for x, _ in draw.operands) or want.dtype == np.float16
    near = 2e-2 if narrow else 3e-4
    with np.errstate(all="ignore"):
        if want.dtype.kind == "f" and not np.isfinite(want).all() and not weft_has_nan(device):
            return draw, True
        if not np.allclose(got, want, rtol=near, atol=near, equal_nan=True):
            return draw, f"got {got.ravel()[:8]}, not {want.ravel()[:8]}"
    if any(
        not np.array_equal(h.numpy(), _place(x, view, "cpu").numpy())
        for h, (x, view) in zip(held, draw.operands)
    ):
        return draw, "an operand changed"
    return draw, True


def weft_has_nan(device):
    return not device.startswith("qpu")


def story(seed, device):
    """None, or what is wrong."""
    draw, found = outcome(seed, device)
    return (
        f"seed {seed}, {device}: {draw.story()}: {found}"
        if isinstance(found, str) and found != "host"
        else None
    )
