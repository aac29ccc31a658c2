# SPDX-License-Identifier: Apache-2.0
"""Random tensor programs: element-wise blocks with conditions, shifted and strided reads, reductions, atomic additions,
temporary buffers, views and calls of a second function, of every type. A program is data, so that it can be cut down:

    Program(loops, blocks)    loops: the kind of each block's loop;  blocks: tuples, the first word says which kind
"""

import dataclasses
import random
import re

import numpy as np

from . import expressions as X

N = 29  # prime: nothing divides it
LOOPS = ["range", "T.parallel", "T.vectorized", "T.unroll"]
WORD_V = r"\bv\b"  # the iterator; conditions of blocks name the loop
INDICES = ["v", f"{N - 1} - v", f"(v * 3 + 5) % {N}", "v // 2", f"T.min(v + 1, {N - 1})", "v % 4"]
SUMS = {"+": 0, "min": None, "max": None, "|": 0, "^": 0, "&": -1}
ATOMIC = ["int32", "int64", "uint32", "uint64"]


@dataclasses.dataclass
class Program:
    blocks: list  # ("map", kind, out, expression, condition) | ("reduce", ...) | ("atomic", ...)
    symbolic: bool = False

    def outputs(self):
        return {b[2]: b[3][1] for b in self.blocks if b[2].startswith("O")}


def inputs(rng, n=N):
    """One array of each type, of values at the ends of the type and in the middle."""

    def one(t):
        if t == "bool":
            return np.array([rng.random() < 0.5 for _ in range(n)])
        if t in X.FLOATS:
            return np.array([float(rng.randint(-9, 9)) for _ in range(n)], t)
        low, high = X.limits(t)
        return np.array(
            [
                X.constant(rng, t)[2] if rng.random() < 0.7 else rng.randint(low, high)
                for _ in range(n)
            ],
            t,
        )

    return {t: one(t) for t in X.TYPES}


def leaf_of(made):
    def leaf(rng, dtype):
        if dtype in ("int8", "int32", "int64") and rng.random() < 0.15:
            return ("iter", dtype, "v")
        names = [f"A_{dtype}", *(name for name, t in made.items() if t == dtype)]
        return ("load", dtype, rng.choice(names), rng.choice(INDICES))

    return leaf


def program(rng, types=X.TYPES):
    made, blocks = {}, []
    for k in range(rng.randint(2, 7)):
        dtype, depth = rng.choice(types), rng.randint(1, 4)
        leaf = leaf_of(made)
        last = k < 2 or rng.random() < 0.5
        name = f"{'O' if last else 'S'}{k}"
        value = X.expression(rng, dtype, depth, leaf)
        kind = rng.random()
        if kind < 0.2 and dtype in X.INTEGERS:
            blocks.append(("reduce", "range", name, value, rng.choice(list(SUMS))))
        elif kind < 0.3 and dtype in ATOMIC:
            blocks.append(("atomic", "range", name, value, X.expression(rng, "int32", 2, leaf)))
        else:
            condition = X.expression(rng, "bool", 2, leaf) if rng.random() < 0.35 else None
            blocks.append(("map", rng.choice(LOOPS), name, value, condition))
        made[name] = dtype
    return Program(blocks, symbolic=rng.random() < 0.2)


def initial(op, dtype):
    low, high = X.limits(dtype)
    number = {"min": high, "max": low, "&": -1 if low else high}.get(op, 0)
    return f"T.{dtype}({number})"


def joined(op, a, b):
    return f"T.{op}({a}, {b})" if op in ("min", "max") else f"{a} {op} {b}"


def block_text(block, n):
    what, kind, name, value, extra = block
    lines = [f"for i in {kind}({n}):"]
    if what == "map":
        lines += ["    with T.block('b_%s'):" % name, f"        v = T.axis.spatial({n}, i)"]
        if extra is not None:
            lines.append(f"        T.where({re.sub(WORD_V, 'i', X.text(extra))})")
        return [*lines, f"        {name}[v] = {X.text(value)}"]
    if what == "atomic":
        index = f"T.Cast('int64', {X.text(extra)}) & T.int64(15)"
        lines += ["    with T.block('b_%s'):" % name, f"        v = T.axis.spatial({n}, i)"]
        return [*lines, f"        T.atomic_add({name}[{index}], {X.text(value)})"]
    dtype = value[1]
    return [
        f"for i, j in T.grid({n}, 5):",
        f"    with T.block('b_{name}'):",
        f"        v = T.axis.spatial({n}, i)",
        "        r = T.axis.reduce(5, j)",
        "        with T.init():",
        f"            {name}[v] = {initial(extra, dtype)}",
        f"        {name}[v] = {joined(extra, f'{name}[v]', '(' + X.text(value) + ')')}",
    ]


def text(p):
    n = "n" if p.symbolic else str(N)
    buffers = {f"A_{t}": t for t in X.TYPES} | p.outputs()
    used = " ".join(
        X.text(b[3]) + (X.text(b[4]) if isinstance(b[4], tuple) else "") for b in p.blocks
    )
    buffers = {k: t for k, t in buffers.items() if k[0] == "O" or k in used}
    if p.symbolic:
        lines = [
            f"def main({', '.join(k.lower() + '_h: T.handle' for k in buffers)}):",
            "    n = T.int64()",
        ]
        lines += [
            f'    {k} = T.match_buffer({k.lower()}_h, (n,), "{t}")' for k, t in buffers.items()
        ]
    else:
        lines = [
            "def main("
            + ", ".join(f'{k}: T.Buffer(({N},), "{t}")' for k, t in buffers.items())
            + "):"
        ]
    for b in p.blocks:
        if b[2].startswith("S"):
            lines.append(f'    {b[2]} = T.alloc_buffer(({n},), "{b[3][1]}")')
    for b in p.blocks:
        if b[2].startswith("S") and (b[0] == "atomic" or b[4] is not None and b[0] == "map"):
            lines += [f"    for i in range({n}):", f"        with T.block('zero_{b[2]}'):"]
            zero = "False" if b[3][1] == "bool" else "0"
            lines += [
                f"            v = T.axis.spatial({n}, i)",
                f"            {b[2]}[v] = T.{b[3][1]}({zero})",
            ]
        lines += ["    " + line for line in block_text(b, n)]
    return "@T.prim_func\n" + "\n".join(lines) + "\n", list(buffers)


def smaller(p):
    for k in range(len(p.blocks)):
        rest = p.blocks[:k] + p.blocks[k + 1 :]
        name = p.blocks[k][2]
        used = any(f"{name}[" in X.text(b[3]) + str(b[4]) or name in str(b[4]) for b in rest)
        if rest and not used and any(b[2].startswith("O") for b in rest):
            yield Program(rest, p.symbolic)
    if p.symbolic:
        yield Program(p.blocks, False)
    for k, (what, kind, name, value, extra) in enumerate(p.blocks):

        def put(*block, k=k):
            return Program(p.blocks[:k] + [block] + p.blocks[k + 1 :], p.symbolic)

        if kind != "range":
            yield put(what, "range", name, value, extra)
        if what == "map" and extra is not None:
            yield put(what, kind, name, value, None)
        for other in X.smaller(value):
            yield put(what, kind, name, other, extra)
        if isinstance(extra, tuple):
            for other in X.smaller(extra):
                yield put(what, kind, name, value, other)


def rng_of(seed):
    return random.Random(seed)
