# SPDX-License-Identifier: Apache-2.0
"""Programs of te beside products and plain convolutions for beside_tvm.py: those without windows (tvm_windows.py has the others)."""

import numpy as np
from tvm_windows import PROGRAMS, add, axes

__all__ = ["PROGRAMS"]


def bmm(b, m, n, k, form):
    fa, fb, fc = form.split(",")
    sizes = {"b": b, "m": m, "n": n, "k": k}

    def make(te):
        A = te.placeholder(tuple(sizes[c] for c in fa), name="A")
        B = te.placeholder(tuple(sizes[c] for c in fb), name="B")
        (r,) = axes(te, k)

        def val(*idx):
            at = dict(zip(fc, idx))
            at["k"] = r
            return te.sum(A[tuple(at[c] for c in fa)] * B[tuple(at[c] for c in fb)], axis=r)

        return [A, B, te.compute(tuple(sizes[c] for c in fc), val, name="C")]

    return make, lambda x, y: np.einsum(f"{fa},{fb}->{fc}", x, y, optimize=True)


add("bmm nn 7x65x77x91")(lambda: bmm(7, 65, 77, 91, "bmk,bkn,bmn"))
add("bmm nt 7x65x77x91")(lambda: bmm(7, 65, 77, 91, "bmk,bnk,bmn"))
add("bmm tn 7x65x77x91")(lambda: bmm(7, 65, 77, 91, "bkm,bkn,bmn"))
add("bmm tt 7x65x77x91")(lambda: bmm(7, 65, 77, 91, "bkm,bnk,bmn"))
add("bmm inner batch 65x77x91x7")(lambda: bmm(7, 65, 77, 91, "mkb,knb,mnb"))
add("bmm shared right 7x65x77x91")(lambda: bmm(7, 65, 77, 91, "bmk,kn,bmn"))


@add("layer norm affine 333x771")
def program_9():
    n, m = 333, 771

    def make(te):
        x, g, b = (
            te.placeholder((n, m), name="X"),
            te.placeholder((m,), name="G"),
            te.placeholder((m,), name="B"),
        )
        (r,) = axes(te, m)
        (s,) = axes(te, m)
        mu = te.compute((n,), lambda i: te.sum(x[i, r], axis=r), name="mu")
        var = te.compute(
            (n,),
            lambda i: te.sum((x[i, s] - mu[i] / float(m)) * (x[i, s] - mu[i] / float(m)), axis=s),
            name="var",
        )
        return [
            x,
            g,
            b,
            te.compute(
                (n, m),
                lambda i, j: (
                    (x[i, j] - mu[i] / float(m)) / te.sqrt(var[i] / float(m) + 1e-5) * g[j] + b[j]
                ),
                name="Y",
            ),
        ]

    return (
        make,
        lambda x, g, b: (
            (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * g + b
        ),
    )


@add("log softmax 77x3001")
def program_10():
    n, m = 77, 3001

    def make(te):
        x = te.placeholder((n, m), name="X")
        (r,) = axes(te, m)
        (s,) = axes(te, m)
        t = te.compute((n,), lambda i: te.max(x[i, r], axis=r), name="t")
        z = te.compute((n,), lambda i: te.sum(te.exp(x[i, s] - t[i]), axis=s), name="z")
        return [x, te.compute((n, m), lambda i, j: x[i, j] - t[i] - te.log(z[i]), name="Y")]

    return (
        make,
        lambda x: (
            x
            - x.max(1, keepdims=True)
            - np.log(np.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True))
        ),
    )


@add("attention causal 3x129x40")
def program_11():
    h, n, d = 3, 129, 40

    def make(te):
        q, k, v = (te.placeholder((h, n, d), name=c) for c in "QKV")
        r, r1, r2, r3 = axes(te, d, n, n, n)
        s = te.compute((h, n, n), lambda b, i, j: te.sum(q[b, i, r] * k[b, j, r], axis=r), name="S")
        m = te.compute(
            (h, n, n),
            lambda b, i, j: te.if_then_else(
                j <= i, s[b, i, j] * (d**-0.5), te.const(-1e30, "float32")
            ),
            name="M",
        )
        t = te.compute((h, n), lambda b, i: te.max(m[b, i, r1], axis=r1), name="T")
        e = te.compute((h, n, n), lambda b, i, j: te.exp(m[b, i, j] - t[b, i]), name="E")
        z = te.compute((h, n), lambda b, i: te.sum(e[b, i, r2], axis=r2), name="Z")
        return [
            q,
            k,
            v,
            te.compute(
                (h, n, d),
                lambda b, i, j: te.sum(e[b, i, r3] / z[b, i] * v[b, r3, j], axis=r3),
                name="O",
            ),
        ]

    def ref(q, k, v):
        s = np.einsum("bid,bjd->bij", q, k) * d**-0.5
        s = np.where(np.tril(np.ones((n, n), bool)), s, -1e30)
        e = np.exp(s - s.max(-1, keepdims=True))
        return (e / e.sum(-1, keepdims=True)) @ v

    return make, ref


@add("LSTM cell 13x150")
def program_12():
    n, m = 13, 150

    def make(te):
        x, h, c = (te.placeholder((n, m), name=s) for s in "XHC")
        w, u = te.placeholder((4 * m, m), name="W"), te.placeholder((4 * m, m), name="U")
        b = te.placeholder((4 * m,), name="B")
        (r,) = axes(te, m)
        (s,) = axes(te, m)
        a = te.compute((n, 4 * m), lambda i, j: te.sum(x[i, r] * w[j, r], axis=r), name="a")
        d = te.compute((n, 4 * m), lambda i, j: te.sum(h[i, s] * u[j, s], axis=s), name="d")
        g = te.compute((n, 4 * m), lambda i, j: a[i, j] + d[i, j] + b[j], name="g")
        sg = lambda v: 1.0 / (1.0 + te.exp(-v))
        cc = te.compute(
            (n, m),
            lambda i, j: sg(g[i, m + j]) * c[i, j] + sg(g[i, j]) * te.tanh(g[i, 2 * m + j]),
            name="cc",
        )
        return [
            x,
            h,
            c,
            w,
            u,
            b,
            te.compute((n, m), lambda i, j: sg(g[i, 3 * m + j]) * te.tanh(cc[i, j]), name="hh"),
        ]

    def ref(x, h, c, w, u, b):
        g = x @ w.T + h @ u.T + b
        s = lambda v: 1 / (1 + np.exp(-v))
        i, f, g_, o = np.split(g, 4, 1)
        return s(o) * np.tanh(s(f) * c + s(i) * np.tanh(g_))

    return make, ref


def intprod(m, n, k, da, db, form):
    def make(te):
        A = te.placeholder((m, k), da, name="A")
        B = te.placeholder((n, k) if form == "nt" else (k, n), db, name="B")
        (r,) = axes(te, k)
        return [
            A,
            B,
            te.compute(
                (m, n),
                lambda i, j: te.sum(
                    A[i, r].astype("int32")
                    * (B[j, r] if form == "nt" else B[r, j]).astype("int32"),
                    axis=r,
                ),
                name="C",
            ),
        ]

    return make, lambda a, b: a.astype(np.int64) @ (b.T if form == "nt" else b).astype(np.int64)


add("int8 product nt 101x99x515", tolerance=0)(lambda: intprod(101, 99, 515, "int8", "int8", "nt"))
add("uint8 x int8 product nn 101x99x515", tolerance=0)(
    lambda: intprod(101, 99, 515, "uint8", "int8", "nn")
)


@add("float16 product, float32 sums 97x131x203", tolerance=1e-4)
def program_14():
    m, n, k = 97, 131, 203

    def make(te):
        A, B = (
            te.placeholder((m, k), "float16", name="A"),
            te.placeholder((k, n), "float16", name="B"),
        )
        (r,) = axes(te, k)
        return [
            A,
            B,
            te.compute(
                (m, n),
                lambda i, j: te.sum(A[i, r].astype("float32") * B[r, j].astype("float32"), axis=r),
                name="C",
            ),
        ]

    return make, lambda a, b: a.astype(np.float64) @ b.astype(np.float64)


@add("float32 x int8 weights, scales 33x301x517")
def program_15():
    m, n, k = 33, 301, 517

    def make(te):
        A, B, S = (
            te.placeholder((m, k), name="A"),
            te.placeholder((n, k), "int8", name="B"),
            te.placeholder((n,), name="S"),
        )
        (r,) = axes(te, k)
        return [
            A,
            B,
            S,
            te.compute(
                (m, n),
                lambda i, j: te.sum(A[i, r] * (B[j, r].astype("float32") * S[j]), axis=r),
                name="C",
            ),
        ]

    return make, lambda a, b, s: a.astype(np.float64) @ (b * s[:, None].astype(np.float64)).T


@add("gather rows 999 of 5001x77", below=5001)
def program_16():
    n, v, d = 999, 5001, 77

    def make(te):
        I, T = te.placeholder((n,), "int32", name="I"), te.placeholder((v, d), name="T")
        return [I, T, te.compute((n, d), lambda i, j: T[I[i], j], name="Y")]

    return make, lambda i, t: t[i]


@add("embedding bag mean 301x9 of 5001x77", below=5001)
def program_17():
    n, b, v, d = 301, 9, 5001, 77

    def make(te):
        I, T = te.placeholder((n, b), "int32", name="I"), te.placeholder((v, d), name="T")
        (r,) = axes(te, b)
        return [I, T, te.compute((n, d), lambda i, j: te.sum(T[I[i, r], j], axis=r), name="Y")]

    return make, lambda i, t: t[i].sum(1)


@add("scatter add by comparison 777 into 99x33", below=99)
def program_18():
    n, v, d = 777, 99, 33

    def make(te):
        I, X = te.placeholder((n,), "int32", name="I"), te.placeholder((n, d), name="X")
        (r,) = axes(te, n)
        return [
            I,
            X,
            te.compute(
                (v, d),
                lambda i, j: te.sum(
                    te.if_then_else(I[r] == i, X[r, j], te.const(0.0, "float32")), axis=r
                ),
                name="Y",
            ),
        ]

    def ref(i, x):
        o = np.zeros((v, d))
        np.add.at(o, i, x)
        return o

    return make, ref


@add("argmax rows 501x777", tolerance=0)
def program_19():
    n, m = 501, 777

    def make(te):
        x = te.placeholder((n, m), name="X")
        (r,) = axes(te, m)

        def select(c, p, q):
            return (
                te.if_then_else(c, p, q)
                if hasattr(te, "Select")
                else __import__("tvm").tirx.Select(c, p, q)
            )

        def later(p, q):
            return select(p[1] >= q[1], p[0], q[0]), select(p[1] >= q[1], p[1], q[1])

        find = te.comm_reducer(
            later, lambda t, u: (te.const(-1, t), te.min_value(u)), name="argmax"
        )
        at = te.cast("int32", r) if hasattr(te, "cast") else r.var.astype("int32")
        a = te.compute((n,), lambda i: find((at, x[i, r]), axis=r), name="A")
        return [x, te.compute((n,), lambda i: a[0][i], name="Y")]

    return make, lambda x: x.argmax(1)


@add("prefix sum as triangle 31x501")
def program_20():
    n, m = 31, 501

    def make(te):
        x = te.placeholder((n, m), name="X")
        (r,) = axes(te, m)
        return [
            x,
            te.compute(
                (n, m),
                lambda i, j: te.sum(
                    te.if_then_else(r <= j, x[i, r], te.const(0.0, "float32")), axis=r
                ),
                name="Y",
            ),
        ]

    return make, lambda x: np.cumsum(x, 1, dtype=np.float64)


@add("gram matrix X X' 203x311")
def program_24():
    n, k = 203, 311

    def make(te):
        x = te.placeholder((n, k), name="X")
        (r,) = axes(te, k)
        return [x, te.compute((n, n), lambda i, j: te.sum(x[i, r] * x[j, r], axis=r), name="C")]

    return make, lambda x: x @ x.T


@add("gram matrix X' X 203x311")
def program_25():
    n, k = 203, 311

    def make(te):
        x = te.placeholder((k, n), name="X")
        (r,) = axes(te, k)
        return [x, te.compute((n, n), lambda i, j: te.sum(x[r, i] * x[r, j], axis=r), name="C")]

    return make, lambda x: x.T @ x


@add("weighted product A diag(s) B 101x203x155")
def program_26():
    m, n, k = 101, 203, 155

    def make(te):
        a, b, s = (
            te.placeholder((m, k), name="A"),
            te.placeholder((k, n), name="B"),
            te.placeholder((k,), name="S"),
        )
        (r,) = axes(te, k)
        return [
            a,
            b,
            s,
            te.compute((m, n), lambda i, j: te.sum(a[i, r] * s[r] * b[r, j], axis=r), name="C"),
        ]

    return make, lambda a, b, s: (a * s) @ b


@add("squared distances 201x155x33")
def program_27():
    m, n, k = 201, 155, 33

    def make(te):
        a, b = te.placeholder((m, k), name="A"), te.placeholder((n, k), name="B")
        (r,) = axes(te, k)
        return [
            a,
            b,
            te.compute(
                (m, n),
                lambda i, j: te.sum((a[i, r] - b[j, r]) * (a[i, r] - b[j, r]), axis=r),
                name="C",
            ),
        ]

    return make, lambda a, b: ((a[:, None] - b[None]) ** 2).sum(-1)


@add("min-plus product 101x103x105")
def program_28():
    m, n, k = 101, 103, 105

    def make(te):
        a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
        (r,) = axes(te, k)
        return [a, b, te.compute((m, n), lambda i, j: te.min(a[i, r] + b[r, j], axis=r), name="C")]

    return make, lambda a, b: (a[:, :, None] + b[None]).min(1)


@add("masked (triangular) product 130x131x130")
def program_29():
    m, n, k = 130, 131, 130

    def make(te):
        a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
        (r,) = axes(te, k)
        return [
            a,
            b,
            te.compute(
                (m, n),
                lambda i, j: te.sum(
                    te.if_then_else(r <= i, a[i, r], te.const(0.0, "float32")) * b[r, j], axis=r
                ),
                name="C",
            ),
        ]

    return make, lambda a, b: np.tril(a) @ b


@add("normalized operand product 65x129x257")
def program_30():
    m, n, k = 65, 129, 257

    def make(te):
        a, mu, b = (
            te.placeholder((m, k), name="A"),
            te.placeholder((m,), name="mu"),
            te.placeholder((k, n), name="B"),
        )
        (r,) = axes(te, k)
        return [
            a,
            mu,
            b,
            te.compute((m, n), lambda i, j: te.sum((a[i, r] - mu[i]) * b[r, j], axis=r), name="C"),
        ]

    return make, lambda a, mu, b: (a - mu[:, None]) @ b


@add("complex product by parts 65x77x91")
def program_31():
    m, n, k = 65, 77, 91

    def make(te):
        a, b = te.placeholder((m, k, 2), name="A"), te.placeholder((k, n, 2), name="B")
        (r,) = axes(te, k)

        def v(i, j, c):
            return te.sum(
                te.if_then_else(
                    c == 0,
                    a[i, r, 0] * b[r, j, 0] - a[i, r, 1] * b[r, j, 1],
                    a[i, r, 0] * b[r, j, 1] + a[i, r, 1] * b[r, j, 0],
                ),
                axis=r,
            )

        return [a, b, te.compute((m, n, 2), v, name="C")]

    def ref(a, b):
        z = (a[..., 0] + 1j * a[..., 1]) @ (b[..., 0] + 1j * b[..., 1])
        return np.stack([z.real, z.imag], -1)

    return make, ref


@add("transpose 5x301x203 > 203x5x301")
def program_33():
    def make(te):
        x = te.placeholder((5, 301, 203), name="X")
        return [x, te.compute((203, 5, 301), lambda k, i, j: x[i, j, k], name="Y")]

    return make, lambda x: x.transpose(2, 0, 1)


@add("float64 product 97x131x203")
def program_35():
    m, n, k = 97, 131, 203

    def make(te):
        A, B = (
            te.placeholder((m, k), "float64", name="A"),
            te.placeholder((k, n), "float64", name="B"),
        )
        (r,) = axes(te, k)
        return [A, B, te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")]

    return make, lambda a, b: a @ b


@add("symbolic rows product nx131x203", size=97)
def program_36():
    n, k = 131, 203

    def make(te):
        m = te.var("m")
        A, B = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
        (r,) = axes(te, k)
        return [A, B, te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")]

    return make, lambda a, b: a @ b


@add("symbolic softmax 97 x m=777", size=777)
def program_37():
    n = 97

    def make(te):
        m = te.var("m")
        x = te.placeholder((n, m), name="X")
        k = te.reduce_axis((0, m), name="k")
        r = te.reduce_axis((0, m), name="r")
        top = te.compute((n,), lambda i: te.max(x[i, k], axis=k), name="T")
        e = te.compute((n, m), lambda i, j: te.exp(x[i, j] - top[i]), name="E")
        s = te.compute((n,), lambda i: te.sum(e[i, r], axis=r), name="S")
        return [x, te.compute((n, m), lambda i, j: e[i, j] / s[i], name="Y")]

    def ref(x):
        e = np.exp(x - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    return make, ref
