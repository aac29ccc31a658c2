# SPDX-License-Identifier: Apache-2.0
"""Programs of te with windows, at odd shapes, for beside_tvm.py: `PROGRAMS`, names to (make(te), reference of NumPy arrays, options).

Options: `tolerance` in units of the largest result (0: exact), `below` (integers that are indices), `size` of a symbol, `fixed` inputs.
"""

import numpy as np

PROGRAMS = {}


def add(name, **options):
    def keep(function):
        make, reference = function()
        PROGRAMS[name] = make, reference, options
        return function

    return keep


def axes(te, *extents):
    return [te.reduce_axis((0, e), name=f"r{k}") for k, e in enumerate(extents)]


def windows(x, *sizes, step=1, dilation=1):
    """Windows along the last axes, which become axes of their own."""
    n = len(sizes)
    spans = tuple((a - 1) * dilation + 1 for a in sizes)
    w = np.lib.stride_tricks.sliding_window_view(x, spans, axis=tuple(range(x.ndim - n, x.ndim)))
    return w[
        (slice(None),) * (x.ndim - n)
        + (slice(None, None, step),) * n
        + (slice(None, None, dilation),) * n
    ]


def pad4(te, x, h, w, p, dtype="float32", name="pad"):
    n, c = x.shape[0], x.shape[1]
    return te.compute(
        (n, c, h + 2 * p, w + 2 * p),
        lambda b, f, i, j: te.if_then_else(
            te.all(i >= p, i < h + p, j >= p, j < w + p), x[b, f, i - p, j - p], te.const(0, dtype)
        ),
        name=name,
    )


def conv_t_ref(x, w, s):
    n, _, h, wd = x.shape
    _, co, k, _ = w.shape
    out = np.zeros((n, co, (h - 1) * s + k, (wd - 1) * s + k), np.float64)
    for p in range(k):
        for q in range(k):
            out[:, :, p : p + (h - 1) * s + 1 : s, q : q + (wd - 1) * s + 1 : s] += np.einsum(
                "nchw,co->nohw", x, w[:, :, p, q]
            )
    return out


@add("transposed conv, stage 1x37>29 15x17 k4 s2")
def program_1():
    ci, co, h, w, k, s = 37, 29, 15, 17, 4, 2
    oh, ow = (h - 1) * s + k, (w - 1) * s + k

    def make(te):
        x, wt = te.placeholder((1, ci, h, w), name="X"), te.placeholder((ci, co, k, k), name="W")
        gap = te.compute(
            (1, ci, oh + k - 1, ow + k - 1),
            lambda b, c, i, j: te.if_then_else(
                te.all(
                    i >= k - 1,
                    j >= k - 1,
                    i - (k - 1) < (h - 1) * s + 1,
                    j - (k - 1) < (w - 1) * s + 1,
                    (i - (k - 1)) % s == 0,
                    (j - (k - 1)) % s == 0,
                ),
                x[b, c, (i - (k - 1)) // s, (j - (k - 1)) // s],
                te.const(0.0, "float32"),
            ),
            name="D",
        )
        c, p, q = axes(te, ci, k, k)
        return [
            x,
            wt,
            te.compute(
                (1, co, oh, ow),
                lambda b, o, i, j: te.sum(
                    gap[b, c, i + p, j + q] * wt[c, o, k - 1 - p, k - 1 - q], axis=[c, p, q]
                ),
                name="Y",
            ),
        ]

    return make, lambda x, w: conv_t_ref(x, w, s)


@add("transposed conv, condition 1x37>29 15x17 k3 s2")
def program_2():
    ci, co, h, w, k, s = 37, 29, 15, 17, 3, 2
    oh, ow = (h - 1) * s + k, (w - 1) * s + k

    def make(te):
        x, wt = te.placeholder((1, ci, h, w), name="X"), te.placeholder((ci, co, k, k), name="W")
        c, p, q = axes(te, ci, k, k)

        def val(b, o, i, j):
            ok = te.all(
                i - p >= 0,
                j - q >= 0,
                (i - p) % s == 0,
                (j - q) % s == 0,
                (i - p) // s < h,
                (j - q) // s < w,
            )
            return te.sum(
                te.if_then_else(ok, x[b, c, (i - p) // s, (j - q) // s], te.const(0.0, "float32"))
                * wt[c, o, p, q],
                axis=[c, p, q],
            )

        return [x, wt, te.compute((1, co, oh, ow), val, name="Y")]

    return make, lambda x, w: conv_t_ref(x, w, s)


def depthwise(layout, n, c, h, w, k, s):
    ih, iw = (h - 1) * s + k, (w - 1) * s + k

    def make(te):
        if layout == "nchw":
            x, wt = te.placeholder((n, c, ih, iw), name="X"), te.placeholder((c, k, k), name="W")
            p, q = axes(te, k, k)
            return [
                x,
                wt,
                te.compute(
                    (n, c, h, w),
                    lambda b, f, i, j: te.sum(
                        x[b, f, i * s + p, j * s + q] * wt[f, p, q], axis=[p, q]
                    ),
                    name="Y",
                ),
            ]
        x, wt = te.placeholder((n, ih, iw, c), name="X"), te.placeholder((k, k, c), name="W")
        p, q = axes(te, k, k)
        return [
            x,
            wt,
            te.compute(
                (n, h, w, c),
                lambda b, i, j, f: te.sum(x[b, i * s + p, j * s + q, f] * wt[p, q, f], axis=[p, q]),
                name="Y",
            ),
        ]

    def ref(x, w):
        if layout == "nhwc":
            x, w = x.transpose(0, 3, 1, 2), w.transpose(2, 0, 1)
        y = np.einsum("bcijpq,cpq->bcij", windows(x, k, k, step=s), w)
        return y if layout == "nchw" else y.transpose(0, 2, 3, 1)

    return make, ref


add("depthwise nchw 1x75 27x29 k3")(lambda: depthwise("nchw", 1, 75, 27, 29, 3, 1))
add("depthwise nchw 2x75 14x15 k5 s2")(lambda: depthwise("nchw", 2, 75, 14, 15, 5, 2))
add("depthwise nhwc 1x75 27x29 k3 s2")(lambda: depthwise("nhwc", 1, 75, 27, 29, 3, 2))


@add("dilated conv pad 1x41>35 29x31 k3 d2")
def program_3():
    n, ci, co, h, w, k, d = 1, 41, 35, 29, 31, 3, 2

    def make(te):
        x, wt = te.placeholder((n, ci, h, w), name="X"), te.placeholder((co, ci, k, k), name="W")
        xp = pad4(te, x, h, w, d)
        c, p, q = axes(te, ci, k, k)
        return [
            x,
            wt,
            te.compute(
                (n, co, h, w),
                lambda b, o, i, j: te.sum(
                    xp[b, c, i + p * d, j + q * d] * wt[o, c, p, q], axis=[c, p, q]
                ),
                name="Y",
            ),
        ]

    return make, lambda x, w: np.einsum(
        "bcijpq,ocpq->boij",
        windows(np.pad(x, ((0, 0), (0, 0), (d, d), (d, d))), k, k, dilation=d),
        w,
        optimize=True,
    )


@add("grouped conv 2x(5x12>5x9) 19x23 k3")
def program_4():
    n, g, ci, co, h, w, k = 2, 5, 12, 9, 19, 23, 3

    def make(te):
        x, wt = (
            te.placeholder((n, g * ci, h + 2, w + 2), name="X"),
            te.placeholder((g * co, ci, k, k), name="W"),
        )
        c, p, q = axes(te, ci, k, k)
        return [
            x,
            wt,
            te.compute(
                (n, g * co, h, w),
                lambda b, o, i, j: te.sum(
                    x[b, o // co * ci + c, i + p, j + q] * wt[o, c, p, q], axis=[c, p, q]
                ),
                name="Y",
            ),
        ]

    def ref(x, w_):
        v = windows(x, k, k).reshape(n, g, ci, h, w, k, k)
        return np.einsum(
            "bgcijpq,gocpq->bgoij", v, w_.reshape(g, co, ci, k, k), optimize=True
        ).reshape(n, g * co, h, w)

    return make, ref


@add("conv1d 3x45>51 301 k5 s2")
def program_5():
    n, ci, co, l, k, s = 3, 45, 51, 301, 5, 2

    def make(te):
        x, wt = (
            te.placeholder((n, ci, (l - 1) * s + k), name="X"),
            te.placeholder((co, ci, k), name="W"),
        )
        c, p = axes(te, ci, k)
        return [
            x,
            wt,
            te.compute(
                (n, co, l),
                lambda b, o, i: te.sum(x[b, c, i * s + p] * wt[o, c, p], axis=[c, p]),
                name="Y",
            ),
        ]

    return make, lambda x, w: np.einsum("bcip,ocp->boi", windows(x, k, step=s), w, optimize=True)


@add("conv3d 1x11>19 9x13x15 k3")
def program_6():
    ci, co, d, h, w, k = 11, 19, 9, 13, 15, 3

    def make(te):
        x, wt = (
            te.placeholder((1, ci, d + 2, h + 2, w + 2), name="X"),
            te.placeholder((co, ci, k, k, k), name="W"),
        )
        c, o, p, q = axes(te, ci, k, k, k)
        return [
            x,
            wt,
            te.compute(
                (1, co, d, h, w),
                lambda b, f, z, i, j: te.sum(
                    x[b, c, z + o, i + p, j + q] * wt[f, c, o, p, q], axis=[c, o, p, q]
                ),
                name="Y",
            ),
        ]

    return make, lambda x, w: np.einsum(
        "bczijopq,fcopq->bfzij", windows(x, k, k, k), w, optimize=True
    )


@add("max pool pad 2x33 55x57 k3 s2")
def program_7():
    n, c, h, w = 2, 33, 55, 57
    oh, ow = 28, 29

    def make(te):
        x = te.placeholder((n, c, h, w), name="X")
        xp = te.compute(
            (n, c, h + 2, w + 2),
            lambda b, f, i, j: te.if_then_else(
                te.all(i >= 1, i < h + 1, j >= 1, j < w + 1),
                x[b, f, i - 1, j - 1],
                te.min_value("float32"),
            ),
            name="pad",
        )
        p, q = axes(te, 3, 3)
        return [
            x,
            te.compute(
                (n, c, oh, ow),
                lambda b, f, i, j: te.max(xp[b, f, i * 2 + p, j * 2 + q], axis=[p, q]),
                name="Y",
            ),
        ]

    return make, lambda x: windows(
        np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf), 3, 3, step=2
    ).max((-1, -2))


@add("global mean pool 4x129x13x11")
def program_8():
    n, c, h, w = 4, 129, 13, 11

    def make(te):
        x = te.placeholder((n, c, h, w), name="X")
        p, q = axes(te, h, w)
        t = te.compute((n, c), lambda b, f: te.sum(x[b, f, p, q], axis=[p, q]), name="T")
        return [x, te.compute((n, c), lambda b, f: t[b, f] / float(h * w), name="Y")]

    return make, lambda x: x.mean((2, 3))


@add("int8 conv nhwc 1x33>47 20x22 k3", tolerance=0)
def program_13():
    ci, co, h, w, k = 33, 47, 20, 22, 3

    def make(te):
        x, wt = (
            te.placeholder((1, h + 2, w + 2, ci), "int8", name="X"),
            te.placeholder((k, k, ci, co), "int8", name="W"),
        )
        p, q, c = axes(te, k, k, ci)
        return [
            x,
            wt,
            te.compute(
                (1, h, w, co),
                lambda b, i, j, o: te.sum(
                    x[b, i + p, j + q, c].astype("int32") * wt[p, q, c, o].astype("int32"),
                    axis=[p, q, c],
                ),
                name="Y",
            ),
        ]

    return make, lambda x, w_: np.einsum(
        "bcijpq,pqco->bijo",
        windows(x.transpose(0, 3, 1, 2).astype(np.int64), k, k),
        w_.astype(np.int64),
        optimize=True,
    )


@add("stencil five steps 501x503")
def program_21():
    n, m, T = 501, 503, 5

    def make(te):
        x = te.placeholder((n, m), name="X")
        y = x
        for t in range(T):

            def mk(y):
                def v(i, j):
                    inner = te.all(i > 0, i < n - 1, j > 0, j < m - 1)
                    return te.if_then_else(
                        inner,
                        (
                            y[i, j] * 0.5
                            + (y[i - 1, j] + y[i + 1, j] + y[i, j - 1] + y[i, j + 1]) * 0.125
                        ),
                        y[i, j],
                    )

                return v

            y = te.compute((n, m), mk(y), name=f"t{t}")
        return [x, y]

    def ref(x):
        for _ in range(T):
            z = x.copy()
            z[1:-1, 1:-1] = (
                x[1:-1, 1:-1] * 0.5
                + (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]) * 0.125
            )
            x = z
        return x

    return make, ref


@add("bilinear upsampling 3x17 31x33 > 77x81")
def program_22():
    n, c, h, w, oh, ow = 3, 17, 31, 33, 77, 81
    sy, sx = (h - 1) / (oh - 1), (w - 1) / (ow - 1)

    def make(te):
        x = te.placeholder((n, c, h, w), name="X")

        def v(b, f, i, j):
            fy, fx = i.astype("float32") * sy, j.astype("float32") * sx
            y0, x0 = fy.astype("int32"), fx.astype("int32")
            ty, tx = fy - y0.astype("float32"), fx - x0.astype("float32")
            mn = lambda a, lim: te.if_then_else(a < lim, a, te.const(lim, "int32"))
            y1, x1 = mn(y0 + 1, h - 1), mn(x0 + 1, w - 1)
            y0, x0 = mn(y0, h - 1), mn(x0, w - 1)
            return (x[b, f, y0, x0] * (1.0 - tx) + x[b, f, y0, x1] * tx) * (1.0 - ty) + (
                x[b, f, y1, x0] * (1.0 - tx) + x[b, f, y1, x1] * tx
            ) * ty

        return [x, te.compute((n, c, oh, ow), v, name="Y")]

    def ref(x):
        fy = np.arange(oh, dtype=np.float32) * np.float32(sy)
        fx = np.arange(ow, dtype=np.float32) * np.float32(sx)
        y0 = fy.astype(int)
        x0 = fx.astype(int)
        ty = (fy - y0)[:, None]
        tx = fx - x0
        y1 = np.minimum(y0 + 1, h - 1)
        x1 = np.minimum(x0 + 1, w - 1)
        y0 = np.minimum(y0, h - 1)
        x0 = np.minimum(x0, w - 1)
        g = lambda a, b: x[:, :, a][:, :, :, b]
        return (g(y0, x0) * (1 - tx) + g(y0, x1) * tx) * (1 - ty) + (
            g(y1, x0) * (1 - tx) + g(y1, x1) * tx
        ) * ty

    return make, ref


@add("winograd conv 1x37>33 18x22", tolerance=1e-3)
def program_23():
    ci, co, h, w = 37, 33, 18, 22
    th, tw = h // 2, w // 2
    cnt = th * tw

    def make(te):
        x, wt = (
            te.placeholder((1, ci, h + 2, w + 2), name="X"),
            te.placeholder((co, ci, 3, 3), name="W"),
        )
        G, B, A = (
            te.placeholder((4, 3), name="G"),
            te.placeholder((4, 4), name="B"),
            te.placeholder((4, 2), name="At"),
        )
        u1, u2, v1, v2, o1, o2 = axes(te, 3, 3, 4, 4, 4, 4)
        (r,) = axes(te, ci)
        u = te.compute(
            (4, 4, co, ci),
            lambda e, f, o, i: te.sum(wt[o, i, u1, u2] * G[e, u1] * G[f, u2], axis=[u1, u2]),
            name="U",
        )
        v = te.compute(
            (4, 4, ci, cnt),
            lambda e, f, i, p: te.sum(
                x[0, i, p // tw * 2 + v1, p % tw * 2 + v2] * B[v1, e] * B[v2, f], axis=[v1, v2]
            ),
            name="V",
        )
        m = te.compute(
            (4, 4, co, cnt),
            lambda e, f, o, p: te.sum(u[e, f, o, r] * v[e, f, r, p], axis=r),
            name="M",
        )
        y = te.compute(
            (co, cnt, 2, 2),
            lambda o, p, e, f: te.sum(m[o1, o2, o, p] * A[o1, e] * A[o2, f], axis=[o1, o2]),
            name="Yt",
        )
        return [
            x,
            wt,
            G,
            B,
            A,
            te.compute(
                (1, co, h, w), lambda b, o, i, j: y[o, i // 2 * tw + j // 2, i % 2, j % 2], name="O"
            ),
        ]

    def ref(x, w_, G, B, A):
        return np.einsum("bcijpq,ocpq->boij", windows(x, 3, 3), w_, optimize=True)

    return make, ref


WINOGRAD = [
    np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]], np.float32),
    np.array([[1, 0, 0, 0], [0, 1, -1, 1], [-1, 1, 1, 0], [0, 0, 0, -1]], np.float32),
    np.array([[1, 0], [1, 1], [1, -1], [0, -1]], np.float32),
]
PROGRAMS["winograd conv 1x37>33 18x22"][2]["fixed"] = dict(enumerate(WINOGRAD, 2))


@add("conv bias relu nhwc 1x29>31 25x27 k3")
def program_32():
    ci, co, h, w = 29, 31, 25, 27

    def make(te):
        x, wt, b = (
            te.placeholder((1, h, w, ci), name="X"),
            te.placeholder((3, 3, ci, co), name="W"),
            te.placeholder((co,), name="B"),
        )
        p, q, c = axes(te, 3, 3, ci)
        xp = te.compute(
            (1, h + 2, w + 2, ci),
            lambda n, i, j, f: te.if_then_else(
                te.all(i >= 1, i < h + 1, j >= 1, j < w + 1),
                x[n, i - 1, j - 1, f],
                te.const(0.0, "float32"),
            ),
            name="pad",
        )
        y = te.compute(
            (1, h, w, co),
            lambda n, i, j, o: te.sum(xp[n, i + p, j + q, c] * wt[p, q, c, o], axis=[p, q, c]),
            name="Y",
        )
        z = te.compute((1, h, w, co), lambda n, i, j, o: y[n, i, j, o] + b[o], name="Z")
        return [
            x,
            wt,
            b,
            te.compute(
                (1, h, w, co),
                lambda n, i, j, o: te.if_then_else(
                    z[n, i, j, o] > 0.0, z[n, i, j, o], te.const(0.0, "float32")
                ),
                name="R",
            ),
        ]

    def ref(x, w_, b):
        xp = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0))).transpose(0, 3, 1, 2)
        return np.maximum(
            np.einsum("bcijpq,pqco->bijo", windows(xp, 3, 3), w_, optimize=True) + b, 0
        )

    return make, ref


@add("weights gradient of conv 2x19>23 27x29 k3")
def program_34():
    n, ci, co, h, w = 2, 19, 23, 27, 29

    def make(te):
        x, g = (
            te.placeholder((n, ci, h + 2, w + 2), name="X"),
            te.placeholder((n, co, h, w), name="G"),
        )
        b, i, j = axes(te, n, h, w)
        return [
            x,
            g,
            te.compute(
                (co, ci, 3, 3),
                lambda o, c, p, q: te.sum(x[b, c, i + p, j + q] * g[b, o, i, j], axis=[b, i, j]),
                name="D",
            ),
        ]

    return make, lambda x, g: np.einsum("bcijpq,boij->ocpq", windows(x, 3, 3), g, optimize=True)
