# SPDX-License-Identifier: Apache-2.0
"""Random scalar expressions of every type: as text, as numbers (an evaluator of its own, in exact integers), and cut down.

An expression is a tuple: operation, type, operands. Floats are small integers, so every target computes them exactly."""

import math

SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
INTEGERS = SIGNED + UNSIGNED
FLOATS = ["float32", "float64"]
TYPES = ["bool", *INTEGERS, *FLOATS]

ARITHMETIC = ["+", "-", "*", "//", "%", "truncdiv", "truncmod", "min", "max"]
BITS = ["&", "|", "^", "<<", ">>"]
COMPARISONS = ["<", "<=", "==", "!=", ">", ">="]


def bits(dtype):
    return int(dtype.lstrip("uint"))


def limits(dtype):
    n = bits(dtype)
    return (0, 2**n - 1) if dtype[0] == "u" else (-(2 ** (n - 1)), 2 ** (n - 1) - 1)


def wrap(value, dtype):
    low, high = limits(dtype)
    return (value - low) % (high - low + 1) + low


def constant(rng, dtype):
    if dtype == "bool":
        return ("const", dtype, rng.random() < 0.5)
    if dtype in FLOATS:
        return ("const", dtype, float(rng.randint(-9, 9)))
    low, high = limits(dtype)
    picks = [0, 1, 2, 3, 7, 8, 16, 31, 100, low, low + 1, high, high - 1, (low + high) // 2]
    picks += [-1, -2, -3, -8] if low < 0 else []
    return ("const", dtype, rng.choice(picks))


def expression(rng, dtype, depth, leaf):
    """`leaf(rng, dtype)` gives an operand of the type, or None where there is none."""
    if depth <= 0 or rng.random() < 0.12:
        found = leaf(rng, dtype) if rng.random() < 0.8 else None
        return found or constant(rng, dtype)

    def again(t, less=1):
        return expression(rng, t, depth - less, leaf)

    if rng.random() < 0.12:
        return (
            rng.choice(["Select", "if_then_else"]),
            dtype,
            again("bool"),
            again(dtype),
            again(dtype),
        )
    if dtype == "bool":
        kind = rng.random()
        if kind < 0.6:
            t = rng.choice(INTEGERS + FLOATS)
            return (rng.choice(COMPARISONS), dtype, again(t), again(t))
        if kind < 0.85:
            return (rng.choice(["and", "or"]), dtype, again("bool"), again("bool"))
        return ("not", dtype, again("bool"))
    if dtype in FLOATS:
        if rng.random() < 0.4:
            return ("cast", dtype, again(rng.choice(["bool", "int8", "uint8", "int16"])))
        return (rng.choice(["+", "-", "min", "max"]), dtype, again(dtype), again(dtype))
    kind = rng.random()
    if kind < 0.2:
        sources = ["bool", *INTEGERS, *(FLOATS if bits(dtype) >= 32 and dtype[0] == "i" else [])]
        return ("cast", dtype, again(rng.choice([t for t in sources if t != dtype])))
    if kind < 0.72:
        return (rng.choice(ARITHMETIC), dtype, again(dtype), again(dtype))
    if kind < 0.95:
        return (rng.choice(BITS), dtype, again(dtype), again(dtype))
    return ("~", dtype, again(dtype))


def text(e):
    op, dtype, *rest = e
    if op == "const":
        return f"T.{dtype}({rest[0]!r})"
    if op == "load":
        return f"{rest[0]}[{rest[1]}]"
    if op == "iter":
        return f"T.Cast('{dtype}', {rest[0]})"
    parts = [text(x) for x in rest]
    if op == "cast":
        return f"T.Cast('{dtype}', {parts[0]})"
    if op in ("not", "~"):
        return f"({op} {parts[0]})"
    if op.isalpha() and op not in ("and", "or") or op == "if_then_else":
        return f"T.{op}({', '.join(parts)})"
    return f"({parts[0]} {op} {parts[1]})"


def divide(op, a, b):
    if b == 0:
        return 0
    q = a // b if op in ("//", "%") else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return q if op in ("//", "truncdiv") else a - q * b


def shift(op, a, b, dtype):
    n = bits(dtype)
    inside = 0 <= b < n
    if op == "<<":
        return a << b if inside else 0
    return a >> b if inside else (-1 if a < 0 else 0)


def value(e, environment):
    """The number; `environment` maps ("load", buffer, index text) and ("iter", name) to numbers."""
    op, dtype, *rest = e
    if op == "const":
        return rest[0]
    if op in ("load", "iter"):
        return environment(e)
    a, *more = (value(x, environment) for x in rest)
    b = more[0] if more else None
    if op == "cast":
        source = rest[0][1]
        if dtype in FLOATS:
            return float(a)
        return wrap(math.trunc(a) if source in FLOATS else int(a), dtype)
    if op in ("Select", "if_then_else"):
        return more[0] if a else more[1]
    if op in COMPARISONS:
        return {"<": a < b, "<=": a <= b, "==": a == b, "!=": a != b, ">": a > b, ">=": a >= b}[op]
    if op in ("and", "or", "not"):
        return (a and b) if op == "and" else (a or b) if op == "or" else not a
    if op == "~":
        return wrap(~a, dtype)
    if op in ("min", "max"):
        return min(a, b) if op == "min" else max(a, b)
    if op in ("//", "%", "truncdiv", "truncmod"):
        return wrap(divide(op, a, b), dtype)
    if op in ("<<", ">>"):
        return wrap(shift(op, a, b, dtype), dtype)
    if op in BITS:
        return wrap({"&": a & b, "|": a | b, "^": a ^ b}[op], dtype)
    result = {"+": a + b, "-": a - b, "*": a * b}[op]
    return result if dtype in FLOATS else wrap(result, dtype)


def smaller(e):
    """Simpler expressions of the same type, the boldest first."""
    op, dtype, *rest = e
    if op in ("const", "load", "iter"):
        return
    children = [x for x in rest if isinstance(x, tuple)]

    def below(x):
        yield x
        for child in x[2:]:
            if isinstance(child, tuple):
                yield from below(child)

    for child in children:
        yield from (x for x in below(child) if x[1] == dtype)
    for number in (0, 1):
        yield (
            "const",
            dtype,
            {"bool": bool(number)}.get(dtype, float(number) if dtype in FLOATS else number),
        )
    for k, child in enumerate(children):
        for other in smaller(child):
            yield (op, dtype, *rest[:k], other, *rest[k + 1 :])
