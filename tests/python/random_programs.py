# SPDX-License-Identifier: Apache-2.0
"""Small tensor programs from a seed: chains of up to four stages over matrices, in the element types of a machine."""

import random

DTYPES = {
    "qpu": ["float32"] * 5 + ["int32"] * 3 + ["uint32"],
    "vta": ["int32"] * 4 + ["int8"] * 3 + ["int16", "uint8"],
    "wse": ["float32"] * 4 + ["float16", "int32", "int32", "int16", "uint16", "uint32"],
}
CONDITIONS = [
    "i < {m} // 2 + 1",
    "j >= {n} // 3",
    "i + j < {n}",
    "j % 2 == 0",
    "i == 0",
    "i != {m} - 1 or j > 2",
]
STAGES = ["value"] * 4 + [
    "shift", "transpose", "product", "rows", "pad", "condition", "stride", "flip", "broadcast", "convolution", "reshape",
    "split", "total",
]  # fmt: skip


def convert(text, dtype, to):
    """Floats are brought into the range that all integer types hold: what lies outside converts to anything."""
    if dtype == to:
        return text
    if dtype.startswith("float") and not to.startswith("float"):
        text = f"T.max(T.min({text}, T.{dtype}(90)), T.{dtype}(0))"
    return f'T.cast({text}, "{to}")'


class Writer:
    def __init__(self, seed, machine):
        self.random = random.Random(seed)
        self.rounds = (
            self.random.random() < 0.4
        )  # values that machines round differently; then floats alone, and no steps
        self.types = [
            t for t in DTYPES[machine] if not self.rounds or t.startswith("float")
        ] or DTYPES[machine]
        self.machine = machine
        self.params, self.temporaries, self.body = [], [], []
        self.known = []  # name, dtype, shape

    def chance(self, p):
        return self.random.random() < p

    def pick(self, items):
        return self.random.choice(items)

    def array(self, shape, dtype):
        name = f"A{len(self.params)}"
        self.params.append((name, shape, dtype))
        self.known.append((name, dtype, shape))
        return name

    def expression(self, depth, reads, dtype):
        """An expression of the type over the elements [vi, vj] of `reads`."""
        if depth == 0 or self.chance(0.25):
            if self.chance(0.25):
                return f"T.{dtype}({self.random.randint(0 if dtype[0] == 'u' else -3, 5)})"
            name, of = self.pick(reads)
            return convert(f"{name}[vi, vj]", of, dtype)
        a, b = (self.expression(depth - 1, reads, dtype) for _ in range(2))
        forms = [f"({a} + {b})", f"({a} * {b})", f"T.min({a}, {b})", f"T.max({a}, {b})"]
        relation = self.pick(["<", "<=", "==", "!=", ">", ">="])
        forms.append(f"T.Select({a} {relation} {b}, {a}, {b})")
        if dtype[0] != "u":
            forms += [f"({a} - {b})", f"T.abs({a})"]
        n = f"T.{dtype}({self.pick([2, 3, 4, 8])})"
        small = f"T.{dtype}({self.pick([0, 1, 2, 3])})"
        if dtype.startswith("float"):
            rounded = [
                f"({a} / {n})",
                f"T.sqrt(T.abs({a}))",
                f"T.tanh({a})",
                f"T.exp(T.min({a}, {n}))",
            ]
            forms += rounded if self.rounds else [f"T.floor({a})"]
        else:
            forms += [
                f"({a} // {n})",
                f"({a} % {n})",
                f"T.truncdiv({a}, {n})",
                f"T.bitwise_and({a}, {n})",
            ]
            forms += [f"T.shift_left({a}, {small})", f"T.shift_right({a}, {small})"]
        return self.pick(forms)

    def stage(self, number, last):
        source, of, (m, n) = self.known[-1] if self.chance(0.8) else self.pick(self.known)
        name, kind = f"S{number}", self.pick(STAGES)
        dtype = of if self.chance(0.6) else self.pick(self.types)
        same = [(x, t) for x, t, shape in self.known if shape == (m, n)]
        rows, columns, terms, init = m, n, 0, None
        condition = bindings = ""

        def read(index, to=None):
            return convert(f"{source}[{index}]", of, to or dtype)

        if kind == "shift" and n > 1:
            columns, value = n - 1, f"{read('vi, vj')} + {read('vi, vj + 1')}"
        elif kind == "transpose":
            rows, columns, value = n, m, read("vj, vi")
        elif kind == "flip":
            value = read(f"{m - 1} - vi, {n - 1} - vj")
        elif kind == "stride":
            columns, value = (n + 1) // 2, read("vi, vj * 2")
        elif kind == "reshape":
            rows, columns, value = m * n, 1, read(f"vi // {n}, vi % {n}")
        elif kind == "broadcast":
            row = self.chance(0.5)
            other = self.array((1, n) if row else (m, 1), dtype)
            value = f"{read('vi, vj')} {self.pick('+*')} {other}[{'0, vj' if row else 'vi, 0'}]"
        elif kind == "pad":
            p = self.random.randint(1, 3)
            rows, columns = m + 2 * p, n + p
            inside = f"vi >= {p} and vi < {m + p} and vj < {n}"
            value = f"T.if_then_else({inside}, {read(f'vi - {p}, vj')}, T.{dtype}({self.pick([0, 0, 1])}))"
        elif kind == "split":
            factor = self.random.randint(2, 5)
            outer = (n + factor - 1) // factor
            value = self.expression(1, same, dtype)
            bindings = f"vi = T.axis.spatial({m}, i)\n            vj = T.axis.spatial({n}, jo * {factor} + ji)\n"
            bindings += f"            T.where(jo * {factor} + ji < {n})"
            loops = f"i, jo, ji in T.grid({m}, {outer}, {factor})"
        elif kind == "product":
            terms, columns = n, self.pick([16, 32, 5, 9])
            weights = self.array((n, columns), "int8" if self.machine == "vta" else of)
            if self.machine == "vta" and self.chance(0.8):
                dtype = "int32"
            init = 0
            value = f"{name}[vi, vj] + {read('vi, vk')} * {convert(f'{weights}[vk, vj]', self.known[-1][1], dtype)}"
        elif kind == "rows":
            terms, columns = n, 1
            hows = [("+", 0), ("min", 100), ("max", 0 if dtype[0] == "u" else -100)]
            how, init = self.pick(
                hows + [("*", 1)] * (not dtype.startswith("float"))
            )  # long products overflow
            term = read("vi, vk") + (f" * T.{dtype}(2)" if self.chance(0.3) else "")
            value = (
                f"{name}[vi, vj] {how} {term}"
                if how in "+*"
                else f"T.{how}({name}[vi, vj], {term})"
            )
        elif kind == "total":
            terms, rows, columns, init = m * n, 1, 1, 0
            value = f"{name}[vi, vj] + {read(f'vk // {n}, vk % {n}')}"
        elif kind == "convolution":
            terms, init = min(3, n), 0
            columns = n - terms + 1
            weights = self.array((1, terms), of)
            value = f"{name}[vi, vj] + {read('vi, vj + vk')} * {convert(f'{weights}[0, vk]', of, dtype)}"
        else:
            value = self.expression(self.random.randint(0, 3), same, dtype)
            if kind == "condition":
                condition = self.pick(CONDITIONS).format(m=m, n=n)
        shape = (rows, columns)
        if last or self.chance(0.2):
            self.params.append((name, shape, dtype))
        else:
            self.temporaries.append(f'    {name} = T.alloc_buffer({shape}, "{dtype}")\n')
            if condition:  # what the condition leaves out is defined, too
                self.block(f"{name}_before", f"i, j in T.grid({rows}, {columns})",
                           'vi, vj = T.axis.remap("SS", [i, j])', None, f"{name}[vi, vj] = T.{dtype}(3)")  # fmt: skip
        self.known.append((name, dtype, shape))
        if not bindings:
            loops = (
                f"i, j, k in T.grid({rows}, {columns}, {terms})"
                if terms
                else f"i, j in T.grid({rows}, {columns})"
            )
            bindings = (
                'vi, vj, vk = T.axis.remap("SSR", [i, j, k])'
                if terms
                else 'vi, vj = T.axis.remap("SS", [i, j])'
            )
        if condition:
            bindings += f"\n            T.where({condition})"
        start = None if init is None else f"{name}[vi, vj] = T.{dtype}({init})"
        self.block(name, loops, bindings, start, f"{name}[vi, vj] = {value}")

    def block(self, name, loops, bindings, init, store):
        text = f'    for {loops}:\n        with T.block("{name}"):\n            {bindings}\n'
        if init:
            text += f"            with T.init():\n                {init}\n"
        self.body.append(f"{text}            {store}\n")


def random_program(seed, machine):
    """The program's text and its parameters as (name, shape, dtype)."""
    w = Writer(seed, machine)
    m, n = w.random.randint(1, 20), w.random.randint(1, 40)
    if machine == "vta" and w.chance(0.5):
        m, n = 16 * w.random.randint(1, 3), 16 * w.random.randint(1, 3)
    w.array((m, n), w.pick(w.types))
    stages = w.random.randint(1, 4)
    for s in range(stages):
        w.stage(s, s + 1 == stages)
    signature = ", ".join(
        f'{name}: T.Buffer({shape}, "{dtype}")' for name, shape, dtype in w.params
    )
    return f"@T.prim_func\ndef main({signature}):\n" + "".join(w.temporaries + w.body), w.params
