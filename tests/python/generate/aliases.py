# SPDX-License-Identifier: Apache-2.0
"""Random tensor programs whose parameters overlap in one storage. Loops are serial, so the order of reads and stores says the
result; an evaluator walks the program's statements over one list of numbers.

A statement is ("map", form, name, index, value) or ("sum", form, name, index, value), or ("keep", form, name, index, value,
second, at, rest): a value is named before a store and used after it."""

import dataclasses
import random
import re

import numpy as np
import weft

from . import expressions as X

N = 13
SPARE = 9  # elements behind the first parameter
READS = [
    "v",
    f"{N - 1} - v",
    f"(v * 3 + 5) % {N}",
    "v // 2",
    f"T.min(v + 1, {N - 1})",
    "v % 4",
    "0",
    "7",
]
STORES = ["v", "v", f"{N - 1} - v", f"(v * 3 + 5) % {N}", "v // 2", "3"]
FORMS = ["range", "T.unroll", "block"]


@dataclasses.dataclass
class Program:
    starts: dict  # where each parameter begins in the storage; S0 and S1 are temporary buffers
    statements: list


def program(seed):
    rng = random.Random(seed)
    starts = {f"P{k}": rng.choice([0, 0, 1, 2, 5, SPARE]) for k in range(rng.randint(2, 4))}
    names = [
        *starts,
        *(["S0"] if rng.random() < 0.5 else []),
        *(["S1"] if rng.random() < 0.2 else []),
    ]

    def leaf(rng, dtype):
        if dtype != "int32":
            return None
        if rng.random() < 0.15:
            return ("iter", dtype, "v")
        return ("load", dtype, rng.choice(names), rng.choice(READS))

    def value():
        return X.expression(rng, "int32", rng.randint(1, 3), leaf)

    statements = []
    for _ in range(rng.randint(1, 5)):
        what = rng.choice(["map", "map", "map", "sum", "keep"])
        form = rng.choice(FORMS)
        index = "v" if form == "block" else rng.choice(STORES)
        statement = (what, form, rng.choice(names), index, value())
        if what == "keep":
            at = "v" if form == "block" else rng.choice(STORES)
            statement += (rng.choice(names), at, value())
        statements.append(statement)
    return Program(starts, statements)


def lines_of(statement, k):
    what, form, name, index, value, *more = statement
    body = [f"{name}[{index}] = {X.text(value)}"]
    if what == "sum":
        body = [
            f"for r{k} in range(3):",
            f"    {name}[{index}] = {name}[{index}] * 3 + {X.text(value)}",
        ]
    if what == "keep":
        second, at, rest = more
        body = [f"x{k}: T.int32 = {X.text(value)}", f"{name}[{index}] = {X.text(rest)}"]
        body += [f"{second}[{at}] = x{k} - {name}[{index}]"]
    if form == "block":
        head = [f"for i{k} in range({N}):", f"    with T.block('b{k}'):"]
        return [
            *head,
            f"        v = T.axis.spatial({N}, i{k})",
            *("        " + line for line in body),
        ]
    return [
        re.sub(r"\bv\b", f"i{k}", line)
        for line in [f"for v in {form}({N}):", *("    " + b for b in body)]
    ]


def text(p):
    written = [line for k, s in enumerate(p.statements) for line in lines_of(s, k)]
    temporaries = [s for s in ("S0", "S1") if any(f"{s}[" in line for line in written)]
    parameters = ", ".join(f'{k}: T.Buffer(({N},), "int32")' for k in p.starts)
    out = ["@T.prim_func", f"def main({parameters}):"]
    out += [f'    {s} = T.alloc_buffer(({N},), "int32")' for s in temporaries]
    for s in temporaries:
        out += [f"    for z{s} in range({N}):", f"        {s}[z{s}] = 0"]
    return "\n".join(out + ["    " + line for line in written]) + "\n"


def memory_of(seed):
    low, high = X.limits("int32")
    rng = random.Random(seed + 1)
    return [rng.choice([rng.randint(-9, 9), rng.randint(low, high)]) for _ in range(N + SPARE)]


def by_hand(p, memory):
    memory, own = list(memory), {"S0": [0] * N, "S1": [0] * N}

    def place(name, index, v):
        k = eval(index.replace("T.min", "min"), {"v": v, "min": min})
        return (own[name], k) if name in own else (memory, p.starts[name] + k)

    def read(name, index, v):
        cells, k = place(name, index, v)
        return cells[k]

    def write(name, index, v, number):
        cells, k = place(name, index, v)
        cells[k] = X.wrap(number, "int32")

    def value(e, v):
        return X.value(e, lambda leaf: v if leaf[0] == "iter" else read(leaf[2], leaf[3], v))

    for what, _, name, index, e, *more in p.statements:
        for v in range(N):
            if what == "map":
                write(name, index, v, value(e, v))
            elif what == "sum":
                for _ in range(3):
                    write(name, index, v, read(name, index, v) * 3 + value(e, v))
            else:
                second, at, rest = more
                kept = value(e, v)
                write(name, index, v, value(rest, v))
                write(second, at, v, kept - read(name, index, v))
    return memory


def run(p, target, memory):
    storage = weft.asarray(np.array(memory, "int32"), device=target)
    module = weft.build(weft.script.from_source(text(p)), target=target)
    module["main"](*(storage[k : k + N] for k in p.starts.values()))
    return storage.numpy().tolist()


def difference(p, target, seed):
    memory = memory_of(seed)
    try:
        found = run(p, target, memory)
    except weft.Error as error:
        return None if error.code.startswith("verify.") else f"{error.code}: {str(error)[:300]}"
    wanted = by_hand(p, memory)
    if found == wanted:
        return None
    k = next(k for k in range(len(memory)) if found[k] != wanted[k])
    return f"element {k} of the storage is {found[k]}, by hand {wanted[k]}"


def smaller(p):
    for k in range(len(p.statements)):
        if len(p.statements) > 1:
            yield Program(p.starts, p.statements[:k] + p.statements[k + 1 :])
    if len(p.starts) > 1:
        for name in p.starts:
            if not any(name in str(s) for s in p.statements):
                yield Program({k: v for k, v in p.starts.items() if k != name}, p.statements)
    for k, s in enumerate(p.statements):

        def put(*other, k=k):
            return Program(p.starts, p.statements[:k] + [other] + p.statements[k + 1 :])

        if s[0] == "keep":
            yield put("map", s[1], s[2], s[3], s[7])
        if s[0] == "sum":
            yield put("map", *s[1:])
        if s[1] != "range":
            yield put(s[0], "range", *s[2:])
        for j in (4, 7):
            if j < len(s):
                yield from (put(*s[:j], e, *s[j + 1 :]) for e in X.smaller(s[j]))


def story(seed, target, budget=400):
    """None, or the smallest program found, as text, and what is wrong with it."""
    p = program(seed)
    said = difference(p, target, seed)
    if said is None:
        return None
    progress = True
    while progress:
        progress = False
        for other in smaller(p):
            budget -= 1
            now = difference(other, target, seed) if budget > 0 else None
            if now:
                p, said, progress = other, now, True
                break
    return f"seed {seed} on {target}: {said}\nparameters begin at {p.starts}\n{text(p)}"
