# SPDX-License-Identifier: Apache-2.0
"""Elementwise functions, casts, reductions, running combinations."""

from case import ALL, FLAT, FLOATS, LARGE, MATRICES, REALS, Case, same

UNARY = {  # name: (NumPy's, torch's, types, domain)
    "exp": (None, None, (*FLOATS, "complex64"), (0.1, 2)),
    "exp2": (None, None, FLOATS, (0.1, 2)),
    "expm1": (None, None, FLOATS, (0.1, 2)),
    "log": (None, None, (*FLOATS, "complex64"), (0.1, 2)),
    "log2": (None, None, FLOATS, (0.1, 2)),
    "log10": (None, None, FLOATS, (0.1, 2)),
    "log1p": (None, None, FLOATS, (0.1, 2)),
    "sqrt": (None, None, (*FLOATS, "complex64"), (0.1, 2)),
    "square": (None, None, (*REALS, "complex64"), (0.1, 2)),
    "rsqrt": ("-", None, FLOATS, (0.1, 2)),
    "reciprocal": (None, None, FLOATS, (0.1, 2)),
    "sin": (None, None, (*FLOATS, "complex64"), (0.1, 2)),
    "cos": (None, None, FLOATS, (0.1, 2)),
    "tan": (None, None, FLOATS, (0.1, 1)),
    "asin": ("arcsin", None, FLOATS, (0.1, 0.9)),
    "acos": ("arccos", None, FLOATS, (0.1, 0.9)),
    "atan": ("arctan", None, FLOATS, (0.1, 2)),
    "sinh": (None, None, FLOATS, (0.1, 2)),
    "cosh": (None, None, FLOATS, (0.1, 2)),
    "tanh": (None, None, (*FLOATS, "complex64"), (0.1, 2)),
    "asinh": ("arcsinh", None, FLOATS, (0.1, 2)),
    "acosh": ("arccosh", None, FLOATS, (1.1, 2)),
    "atanh": ("arctanh", None, FLOATS, (0.1, 0.9)),
    "erf": ("-", "erf", FLOATS, (0.1, 2)),
    "sigmoid": ("-", None, FLOATS, (0.1, 2)),
    "relu": ("-", None, FLOATS, (-1, 1)),
    "abs": (None, None, (*REALS, "complex64"), (-1, 1)),
    "negative": (None, None, (*REALS, "complex64"), (-1, 1)),
    "sign": (None, None, REALS, (-1, 1)),
    "floor": (None, None, FLOATS, (-5, 5)),
    "ceil": (None, None, FLOATS, (-5, 5)),
    "round": (None, None, FLOATS, (-5, 5)),
    "trunc": (None, None, FLOATS, (-5, 5)),
    "isnan": (None, None, FLOATS, (-5, 5)),
    "isfinite": (None, None, FLOATS, (-5, 5)),
    "signbit": (None, None, FLOATS, (-5, 5)),
    "logical_not": (None, None, ("bool", "float32"), (-5, 5)),
    "bitwise_invert": ("invert", "bitwise_not", ("int32", "bool"), (-5, 5)),
    "conj": (None, "conj_physical", ("complex64",), (-1, 1)),
    "real": (None, None, ("complex64",), (-1, 1)),
    "imag": (None, None, ("complex64",), (-1, 1)),
}

BINARY = {  # name: (NumPy's, torch's, types)
    "add": (None, None, ALL[:-2] + ("complex64",)),
    "subtract": (None, None, (*REALS, "complex64")),
    "multiply": (None, None, (*REALS, "complex64")),
    "divide": (None, None, (*FLOATS, "complex64")),
    "floor_divide": (None, None, ("float32", "int32")),
    "remainder": (None, None, ("float32", "int32")),
    "pow": ("power", None, FLOATS),
    "maximum": (None, None, REALS),
    "minimum": (None, None, REALS),
    "hypot": (None, None, FLOATS),
    "atan2": ("arctan2", None, FLOATS),
    "copysign": (None, None, FLOATS),
    "logaddexp": (None, None, FLOATS),
    "nextafter": (None, None, ("float32", "float64")),
    "equal": (None, "eq", REALS),
    "less": (None, None, REALS),
    "greater_equal": (None, None, REALS),
    "logical_and": (None, None, ("bool", "float32")),
    "bitwise_and": (None, None, ("int32", "bool")),
    "bitwise_left_shift": ("left_shift", None, ("int32",)),
}


def cases():
    out = []
    for name, (numpy, torch, dtypes, domain) in UNARY.items():
        out.append(same(name, "unary", numpy, torch, dtypes=dtypes, domain=domain))
    for name, (numpy, torch, dtypes) in BINARY.items():
        out.append(same(name, "binary", numpy, torch, dtypes=dtypes, inputs=2))
    out += [
        Case("binary", "x + 2", *3 * [lambda m, x: x + 2], dtypes=REALS),
        Case("binary", "x ** 2", *3 * [lambda m, x: x**2], dtypes=REALS),
        Case("binary", "x / y int", *3 * [lambda m, x, y: x / y], dtypes=("int32",), inputs=2),
        Case("binary", "where", *3 * [lambda m, x, y: m.where(x > y, x, y)], inputs=2, dtypes=REALS),
        Case("binary", "clip", lambda m, x: m.clip(x, 0.5, 1.5), lambda m, x: m.clip(x, 0.5, 1.5),
             lambda m, x: m.clamp(x, 0.5, 1.5)),
        Case("broadcast", "x + row", *3 * [lambda m, x: x + x[0]], layouts=MATRICES, dtypes=REALS),
        Case("broadcast", "x * column", *3 * [lambda m, x: x * x[..., :1]], layouts=MATRICES, dtypes=REALS),
        Case("broadcast", "x.T + y", *3 * [lambda m, x: x.T + x], layouts=("square", "small2d"), dtypes=REALS),
    ]  # fmt: skip
    for to in ("float32", "float64", "int32", "bool", "float16"):
        out.append(
            Case(
                "casts", f"to {to}",
                lambda m, x, to=to: x.astype(getattr(m, to)),
                lambda m, x, to=to: x.astype(to),
                lambda m, x, to=to: x.to(getattr(m, to)),
                dtypes=tuple(d for d in (*REALS, "bool") if d != to),
            )
        )  # fmt: skip
    for name, dtypes in {
        "sum": REALS, "mean": FLOATS, "prod": FLOATS, "max": REALS, "min": REALS, "std": FLOATS, "var": FLOATS,
    }.items():  # fmt: skip

        def torch_call(m, x, axis, name=name):
            if name in ("std", "var"):
                return (
                    getattr(m, name)(x, axis, correction=0)
                    if axis is not None
                    else getattr(m, name)(x, unbiased=False)
                )
            if name in ("max", "min"):
                return (
                    getattr(m, "a" + name)(x) if axis is None else getattr(m, "a" + name)(x, axis)
                )
            return getattr(m, name)(x) if axis is None else getattr(m, name)(x, axis)

        domain = (0.99, 1.01) if name == "prod" else (0.1, 2.0)
        for label, axis, layouts in (
            ("", None, FLAT), (" axis 0", 0, MATRICES), (" axis -1", -1, MATRICES), (" axis 1", 1, ("batched", "mid3d")),
        ):  # fmt: skip
            out.append(
                Case(
                    "reductions", name + label,
                    lambda m, x, axis=axis, name=name: getattr(m, name)(x, axis=axis),
                    lambda m, x, axis=axis, name=name: getattr(m, name)(x, axis=axis),
                    lambda m, x, axis=axis, f=torch_call: f(m, x, axis),
                    layouts=layouts, dtypes=dtypes, domain=domain,
                    tolerance="bfloat16" if name == "prod" else "",
                )
            )  # fmt: skip
    for name in ("argmax", "argmin"):
        for label, axis, layouts in (
            (" axis 0", 0, MATRICES),
            (" axis -1", -1, MATRICES),
            ("", None, FLAT),
        ):
            out.append(
                Case(
                    "reductions", name + label,
                    *2 * [lambda m, x, axis=axis, name=name: getattr(m, name)(x, axis=axis)],
                    lambda m, x, axis=axis, name=name: getattr(m, name)(x, dim=axis),
                    layouts=layouts, dtypes=("float32", "float64"),
                )
            )  # fmt: skip
    for name in ("all", "any"):
        out += [
            same(name, "reductions", dtypes=("bool",)),
            Case("reductions", name + " axis -1", *2 * [lambda m, x, name=name: getattr(m, name)(x, axis=-1)],
                 lambda m, x, name=name: getattr(m, name)(x, -1), layouts=MATRICES, dtypes=("bool",)),
        ]  # fmt: skip
    out.append(same("count_nonzero", "reductions", dtypes=("bool", "float32")))
    out.append(
        Case("reductions", "logsumexp axis -1", lambda m, x: m.logsumexp(x, axis=-1), None,
             lambda m, x: m.logsumexp(x, -1), layouts=LARGE[1:])
    )  # fmt: skip
    for axis in (0, -1):
        for name, other in (("cumulative_sum", "cumsum"), ("cumulative_prod", "cumprod")):
            out.append(
                Case(
                    "cumulative", f"{name} axis {axis}",
                    lambda m, x, name=name, axis=axis: getattr(m, name)(x, axis=axis),
                    lambda m, x, other=other, axis=axis: getattr(m, other)(x, axis),
                    lambda m, x, other=other, axis=axis: getattr(m, other)(x, axis),
                    layouts=("1e3", "1e5", "1e7", "mid2d", "odd", "batched") if axis else ("mid2d", "odd", "batched"),
                    dtypes=("float32", "float64", "int32") if name == "cumulative_sum" else ("float64",),
                    domain=(0.99, 1.01),
                )
            )  # fmt: skip
    return out
