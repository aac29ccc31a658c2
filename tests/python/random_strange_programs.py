# SPDX-License-Identifier: Apache-2.0
"""Tensor programs in unusual forms from a seed: loops in any order, kind and direction, split, fused or begun elsewhere,
annotated or bound; conditions on loops, data, numbers and symbolic extents; blocks in blocks, views of buffers, loops inside
a block; sums that begin in any way. Element types are those of the machine, now and then another. Values are small integers,
so that the order of sums does not show."""

import random

COMMON = {
    "qpu": ["float32"] * 4 + ["int32"] * 3 + ["uint32"],
    "vta": ["int32"] * 4 + ["int8"] * 3 + ["int16", "uint8"],
    "wse": ["float32"] * 4 + ["int32"] * 2 + ["float16", "int16", "uint16", "uint32"],
}
RARE = [
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "bfloat16",
    "float64",
    "float32",
    "int32",
]
AXES = {"qpu": ["qpu", "lane"], "vta": ["vthread"], "wse": ["pe.x", "pe.y"]}
ALL_AXES = ["blockIdx.x", "threadIdx.x", "vthread", "pe.x", "pe.y", "qpu", "lane"]
KEYS = ['"nobody.knows": 1', '"pragma_unroll_explicit": 1', '"software_pipeline_stage": 0', '"dma_copy": 1',
        '"name": "text"', '"pragma_auto_unroll_max_step": 4', '"tir.noalias": 1']  # fmt: skip


class Writer:
    def __init__(self, seed, machine):
        self.random = random.Random(seed)
        self.machine = machine
        self.dtype = self.pick(COMMON[machine]) if self.chance(0.85) else self.pick(RARE)
        rarely = machine != "qpu"  # only the QPU takes these
        self.symbolic = self.chance(0.02 if rarely else 0.2)  # the first extent is the argument's
        self.number = self.chance(0.02 if rarely else 0.25)  # a scalar argument s
        self.extents = [self.extent() for _ in range(3)]
        self.lines, self.params, self.temporaries = [], [], []
        self.known = []  # name, dtype, axes (positions in extents, or numbers)
        self.depth = 1

    def chance(self, p):
        return self.random.random() < p

    def pick(self, items):
        return self.random.choice(items)

    def extent(self):
        if self.chance(0.03):
            return 0
        if self.machine == "vta" and self.chance(0.5):
            return 16 * self.random.randint(1, 2)
        return self.pick([1, 2, 3, 4, 5, 7, 8, 11, 12, 13, 16, 17, 19, 24, 31, 33])

    def size(self, axis):
        """An axis as text."""
        return "n" if self.symbolic and axis == 0 else str(self.extents[axis])

    def shape(self, axes):
        return "(" + "".join(self.size(a) + ", " for a in axes).rstrip() + ")"

    def say(self, text, depth=None):
        self.lines.append("    " * (self.depth if depth is None else depth) + text)

    # ---- values ----

    def constant(self, dtype):
        if dtype == "bool":
            return self.pick(["T.bool(True)", "T.bool(False)"])
        return f"T.{dtype}({self.random.randint(0 if dtype[0] in 'ub' else -3, 4)})"

    def convert(self, text, of, to):
        if of == to:
            return text
        if "float" in of and "float" not in to:
            text = f"T.max(T.min({text}, T.{of}(90)), T.{of}(0))"
        return f'T.cast({text}, "{to}")'

    def index(self, axis, names):
        """An index of this axis from the iterators by axis; always inside."""
        size, v = self.size(axis), names.get(axis)
        if v is None:
            return "0" if size != "n" else "T.int64(0)"
        how = self.random.random()
        if how < 0.72:
            return v
        return self.pick([f"{size} - 1 - {v}", f"T.min({v} + 1, {size} - 1)", f"T.max({v} - 2, 0)", f"{v} // 2", f"({v} * 3 + 1) % {size}",
                          "0", f"T.if_then_else({v} > 2, {v} - 1, {v})"])  # fmt: skip

    def read(self, names, dtype):
        name, of, axes = self.pick(self.known)
        text = f"{name}[{', '.join(self.index(a, names) for a in axes)}]"
        return self.convert(text, of, dtype)

    def value(self, names, dtype, depth):
        if depth == 0 or self.chance(0.2):
            how = self.random.random()
            if how < 0.12:
                return self.constant(dtype)
            if how < 0.18 and self.number and dtype != "bool":
                return self.convert("s", "int32", dtype)
            if how < 0.24 and dtype in ("int32", "float32") and names:
                return f'T.cast({self.pick(list(names.values()))}, "{dtype}")'
            return self.read(names, dtype)
        a, b = (self.value(names, dtype, depth - 1) for _ in range(2))
        if dtype == "bool":
            return self.pick([f"({a} and {b})", f"({a} or {b})", f"(not {a})"])
        forms = [f"({a} + {b})", f"({a} + {b})", f"({a} * {b})", f"T.min({a}, {b})", f"T.max({a}, {b})",
                 f"T.Select({a} {self.pick(['<', '==', '>='])} {b}, {a}, {b})", f"T.if_then_else({self.condition(names)}, {a}, {b})"]  # fmt: skip
        if dtype[0] != "u":
            forms += [f"({a} - {b})", f"T.abs({a})"]
        if "float" not in dtype:
            n = self.pick([2, 3, 4])
            forms += [f"({a} // T.{dtype}({n}))", f"({a} % T.{dtype}({n}))", f"T.shift_right({a}, T.{dtype}(1))", f"T.bitwise_xor({a}, T.{dtype}(3))",
                      f"({a} // T.max({b}, T.{dtype}(1)))", f"T.truncmod({a}, T.max({b}, T.{dtype}(2)))", f"T.popcount({a})", f"T.shift_left({a}, T.{dtype}(1))"]  # fmt: skip
        else:
            forms += [
                f"T.floor({a})",
                f"T.fma({a}, {b}, {a})",
                f"T.copysign({a}, {b})",
                f"T.nextafter({a}, {b})",
            ]
        return self.pick(forms)

    def condition(self, names, depth=1):
        """Of iterators, data and numbers."""
        if not names:
            return "1 < 2"
        if depth and self.chance(0.3):
            a, b = self.condition(names, 0), self.condition(names, 0)
            return self.pick([f"({a} and {b})", f"({a} or {b})", f"not ({a})"])
        axis = self.pick(list(names))
        v, w, size = names[axis], self.pick(list(names.values())), self.size(axis)
        forms = [f"{v} < {size} // 2 + 1", f"{v} >= 2", f"{v} != 1", f"{v} % 2 == 0", f"{v} + {w} < {size}", f"{v} * {w} < 20",
                 f"({v} * 7) % 5 != 2", f"{v} <= {w}", f"{v} < {size}", f"{v} // 3 == 1", "1 < 2"]  # fmt: skip
        if self.number:
            forms += [f'T.cast({v}, "int32") < s', "s > 2"]
        name, of, axes = self.pick(self.known)
        if of != "bool":
            place = ", ".join(names.get(a, "0") for a in axes)
            forms += [f"{name}[{place}] > T.{of}(1)"] * 2
        return self.pick(forms)

    # ---- loops ----

    def loop(self, var, size, plain=False):
        """Opens one loop; returns the expression of its position in range(size)."""
        fixed = size != "n"
        how = self.random.random()
        note = f", annotations={{{self.pick(KEYS)}}}" if self.chance(0.08) else ""
        if plain or how < 0.62:
            self.say(
                f"for {var} in T.serial({size}{note}):" if note else f"for {var} in range({size}):"
            )
            value = var
        elif how < 0.68 and fixed:
            low = self.random.randint(1, 3)
            self.say(f"for {var} in range({low}, {int(size) + low}):")
            value = f"({var} - {low})"
        elif how < 0.74:
            self.say(f"for {var} in T.unroll({size}{note}):")
            value = var
        elif how < 0.80:
            self.say(f"for {var} in T.parallel({size}{note}):")
            value = var
        elif how < 0.85:
            self.say(f"for {var} in T.vectorized({size}{note}):")
            value = var
        elif how < 0.92:
            axis = self.pick(AXES[self.machine] if self.chance(0.85) else ALL_AXES)
            self.say(f'for {var} in T.thread_binding({size}, thread="{axis}"):')
            value = var
        else:
            self.say(f"for {var} in range({size}):")
            value = f"({size} - 1 - {var})"
        self.depth += 1
        return value

    def nest(self, stage, axes):
        """Loops over the axes in some order and form; returns the value of each axis and conditions."""
        order = list(axes)
        if self.chance(0.3):
            self.random.shuffle(order)
        values, conditions = {}, []
        if len(order) > 1 and self.chance(0.12) and "n" not in map(self.size, order[:2]):
            a, b = order[:2]
            m, n = self.extents[a], self.extents[b]
            f = self.loop(f"f{stage}", str(m * n))
            values[a], values[b] = (f"{f} // {n}", f"{f} % {n}") if n else ("0", "0")
            order = order[2:]
        for a in order:
            size = self.size(a)
            how = self.random.random()
            if how < 0.14 and size not in ("n", "0"):
                factor = self.random.randint(2, 5)
                outer = -(-int(size) // factor)
                o, i = self.loop(f"o{stage}{a}", str(outer)), self.loop(f"i{stage}{a}", str(factor))
                values[a] = f"{o} * {factor} + {i}"
                if outer * factor != int(size):
                    conditions.append(f"{values[a]} < {size}")
            else:
                values[a] = self.loop(f"l{stage}{a}", size)
        if self.chance(0.04):
            self.loop(f"r{stage}", "2", plain=True)
        return values, conditions

    # ---- stages ----

    def result(self, stage, axes, dtype, last):
        name = f"S{stage}"
        if last or self.chance(0.3):
            self.params.append((name, axes, dtype))
        else:
            self.temporaries.append((name, axes, dtype))
        return name

    def block(self, stage, name, axes, sums, values, conditions, body):
        """One block; body(names) says its statements."""
        if self.chance(0.01 if self.machine == "vta" else 0.07):
            self.say(f"if {self.condition({a: f'({v})' for a, v in values.items()})}:")
            self.depth += 1
        outer = self.chance(0.08)
        if outer:
            self.say(f'with T.block("outer{stage}"):')
            self.depth += 1
            self.say("T.evaluate(0)" if self.chance(0.05) else 'T.block_attr({"nobody.knows": 2})')
        self.say(f'with T.block("b{stage}"):')
        self.depth += 1
        names = {}
        for a in [*axes, *sums]:
            kind = "reduce" if a in sums else "spatial"
            size, low = self.size(a), 0
            if self.chance(0.06) and size != "n":
                low = self.random.randint(1, 2)
            extent = f"({low}, {int(size) + low})" if low else size
            self.say(f"v{a} = T.axis.{kind}({extent}, {values[a]}{f' + {low}' if low else ''})")
            names[a] = f"(v{a} - {low})" if low else f"v{a}"
        if self.chance(0.04 if self.machine == "vta" else 0.2):
            conditions = [*conditions, self.condition({a: f"({v})" for a, v in values.items()})]
        if conditions:
            self.say(f"T.where({' and '.join(conditions)})")
        if self.chance(0.06):
            self.say(f"T.block_attr({{{self.pick(KEYS)}}})")
        body(names)

    def fill(self, stage, name, axes, dtype):
        depth = self.depth
        values = {a: self.loop(f"z{stage}{a}", self.size(a), plain=True) for a in axes}
        self.say(f'with T.block("z{stage}"):')
        self.depth += 1
        for a in axes:
            self.say(f"v{a} = T.axis.spatial({self.size(a)}, {values[a]})")
        self.say(f"{name}[{', '.join(f'v{a}' for a in axes)}] = {self.constant(dtype)}")
        self.depth = depth

    def stage(self, stage, last):
        axes = self.random.sample(range(3), self.random.choice([1, 2, 2, 2, 3]))
        dtype = self.dtype if self.chance(0.8) else self.pick(COMMON[self.machine])
        kinds = (
            ["map"] * 5
            + ["sum"] * 4
            + ["steps", "twice", "local"] * (2 if self.machine == "qpu" else self.chance(0.1))
        )
        kind = self.pick(kinds)
        sums = (
            [a for a in range(3) if a not in axes][: self.random.randint(1, 2)]
            if kind == "sum"
            else []
        )
        if kind == "sum" and not sums:
            axes, sums = axes[:-1], axes[-1:]
        name = self.result(stage, axes, dtype, last)

        def target(names):
            return f"{name}[" + ", ".join(names[a] for a in axes) + "]"

        if self.machine != "vta" or self.chance(0.05):  # which takes one block for each buffer
            self.fill(stage, name, axes, dtype)
        depth = self.depth
        values, conditions = self.nest(stage, [*axes, *sums])

        def one(names):
            self.say(f"{target(names)} = {self.value(names, dtype, self.random.randint(0, 2))}")

        def summed(names):
            to = target(names)
            forms = [
                f"{to} + {{}}",
                f"T.max({to}, {{}})",
                f"T.min({to}, {{}})",
                f"{to} * {{}}",
                f"{{}} + {to}",
            ]
            if dtype == "bool":
                forms = [f"{to} or {{}}", f"{to} and {{}}"]
            elif self.chance(0.1):
                forms = [
                    f"{to} - {{}}",
                    f"{to} + {{}} - {self.constant(dtype)}",
                    f"T.max({to} + {self.constant(dtype)}, {{}})",
                ]
                forms = forms[1:] if dtype[0] == "u" else forms
            if self.chance(0.75):
                self.say("with T.init():")
                spatial = {a: v for a, v in names.items() if a in axes}
                start = self.constant(dtype) if self.chance(0.85) else self.value(spatial, dtype, 0)
                self.say(f"{to} = {start}", self.depth + 1)
            term = self.value(names, dtype, self.random.randint(0, 1))
            form = self.pick(forms)
            if "*" in form:  # long products overflow
                term = f"T.min({term}, T.{dtype}(1))"
            self.say(f"{to} = {form.format(term)}")

        def steps(names):
            self.say(f"for t{stage} in range(3):")
            self.say(
                f"{target(names)} = {target(names)} + {self.value(names, dtype, 1)}"
                if dtype != "bool"
                else f"{target(names)} = {self.value(names, dtype, 1)}",
                self.depth + 1,
            )

        def twice(names):
            self.say(f"{target(names)} = {self.value(names, dtype, 1)}")
            if self.chance(0.5):
                self.say(f"if {self.condition(names)}:")
                self.depth += 1
            self.say(
                f"{target(names)} = T.max({target(names)}, {self.value(names, dtype, 1)})"
                if dtype != "bool"
                else f"{target(names)} = not {target(names)}"
            )

        def local(names):
            self.say(
                f'L{stage} = T.alloc_buffer((2,), "{dtype}"{self.pick(["", chr(44) + chr(32) + "scope=" + chr(34) + "local" + chr(34)])})'
            )
            self.say(f"L{stage}[0] = {self.value(names, dtype, 1)}")
            self.say(f"L{stage}[1] = {self.value(names, dtype, 0)}")
            self.say(
                f"{target(names)} = T.Select(L{stage}[0] == L{stage}[1], L{stage}[1], L{stage}[0])"
            )

        body = {"map": one, "sum": summed, "steps": steps, "twice": twice, "local": local}[kind]
        self.block(stage, name, axes, sums, values, conditions, body)
        self.depth = depth
        self.known.append((name, dtype, axes))


def random_program(seed, machine):
    """The program's text, its parameters as (name, shape, dtype) and its number s, or None."""
    w = Writer(seed, machine)
    for k in range(w.random.randint(1, 2)):
        axes = w.random.sample(range(3), w.random.choice([1, 2, 2, 3]))
        dtype = w.dtype if w.chance(0.85) else w.pick(RARE)
        if w.symbolic and not k and 0 not in axes:  # somebody must say how large it is
            axes[0] = 0
        w.params.append((f"A{k}", axes, dtype))
        w.known.append((f"A{k}", dtype, axes))
    count = w.random.choice([1, 1, 2, 3])
    for stage in range(count):
        w.stage(stage, stage + 1 == count)
    head = []
    if w.symbolic:
        signature = ", ".join(f"{name}_h: T.handle" for name, _, _ in w.params)
        head.append("    n = T.int64()")
        head += [
            f'    {name} = T.match_buffer({name}_h, {w.shape(axes)}, "{dtype}")'
            for name, axes, dtype in w.params
        ]
    else:
        signature = ", ".join(
            f'{name}: T.Buffer({w.shape(axes)}, "{dtype}")' for name, axes, dtype in w.params
        )
    if w.number:
        signature += ", s: T.int32"
    head += [
        f'    {name} = T.alloc_buffer({w.shape(axes)}, "{dtype}")'
        for name, axes, dtype in w.temporaries
    ]
    text = "\n".join([f"@T.prim_func\ndef main({signature}):", *head, *w.lines]) + "\n"
    params = [(name, tuple(w.extents[a] for a in axes), dtype) for name, axes, dtype in w.params]
    return text, params, w.random.randint(-1, 6) if w.number else None
