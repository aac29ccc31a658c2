# SPDX-License-Identifier: Apache-2.0
"""One matrix-vector product and one MLP, written once; machines without float32 take them with int8 and int32 sums."""

from weft import te


def gemv(m, n, dtype="float32"):
    """y = A x; integers are summed in int32."""
    total = "float32" if dtype == "float32" else "int32"
    A, x = te.placeholder((m, n), dtype, name="A"), te.placeholder((n,), dtype, name="x")
    k = te.reduce_axis(n, name="k")
    y = te.compute(
        (m,), lambda i: te.sum(A[i, k].astype(total) * x[k].astype(total), axis=k), name="y"
    )
    return te.create_prim_func([A, x, y])


def mlp(rows, inside, hidden, outside, dtype="float32", shift=7):
    """Y = relu(X W) V; with integers the hidden values are shifted right and clipped to int8."""
    total = "float32" if dtype == "float32" else "int32"
    X = te.placeholder((rows, inside), dtype, name="X")
    W = te.placeholder((inside, hidden), dtype, name="W")
    V = te.placeholder((hidden, outside), dtype, name="V")
    k, l = te.reduce_axis(inside, name="k"), te.reduce_axis(hidden, name="l")
    H = te.compute(
        (rows, hidden),
        lambda i, j: te.sum(X[i, k].astype(total) * W[k, j].astype(total), axis=k),
        name="H",
    )
    zero, most = te.const(0, total), te.const(127, total)

    def active(i, j):
        if dtype == "float32":
            return te.max(H[i, j], zero)
        return te.min(te.max(H[i, j] >> shift, zero), most).astype(dtype)

    R = te.compute((rows, hidden), active, name="R")
    Y = te.compute(
        (rows, outside),
        lambda i, j: te.sum(R[i, l].astype(total) * V[l, j].astype(total), axis=l),
        name="Y",
    )
    return te.create_prim_func([X, W, V, Y])


def product(n):
    """C = A B of n x n, in float32."""
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis(n, name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return te.create_prim_func([A, B, C])
