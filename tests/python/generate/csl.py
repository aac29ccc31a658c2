# SPDX-License-Identifier: Apache-2.0
"""Random CSL programs of one PE: operations on memory descriptors with offsets, strides, two dimensions and lengths that are
known when it runs, operands that overlap, scalars, loops that move a descriptor. The reference is an evaluator that does one
element after the other on Python's numbers.

A statement is (operation, destination, sources, repeat, step): operands are descriptors (array, indices by element, text of the
descriptor) or numbers; a statement in a loop moves the descriptors of its first array by `step` elements each time."""

import dataclasses
import random
import tempfile

import numpy as np
from weft import wse

CELLS = 24
ARRAYS = {"a": "f32", "b": "f32", "u": "u16", "w": "u16", "q": "u32"}
EXACT = 2**23  # floats beyond would round
LAYOUT = 'layout { @set_rectangle(1, 1); @set_tile_code(0, 0, "pe.csl"); }'


def _signed(x):
    return x - 0x10000 if x & 0x8000 else x


OPERATIONS = {  # name: (type of the elements, sources, function)
    "fmovs": ("f32", 1, lambda x: x),
    "fnegs": ("f32", 1, lambda x: -x),
    "fabss": ("f32", 1, abs),
    "fadds": ("f32", 2, lambda x, y: x + y),
    "fsubs": ("f32", 2, lambda x, y: x - y),
    "fmuls": ("f32", 2, lambda x, y: x * y),
    "fmaxs": ("f32", 2, max),
    "fmacs": ("f32", 3, lambda x, y, s: x + y * s),
    "mov16": ("u16", 1, lambda x: x),
    "popcnt": ("u16", 1, lambda x: bin(x).count("1")),
    "clz": ("u16", 1, lambda x: 16 - x.bit_length()),
    "ctz": ("u16", 1, lambda x: 16 if x == 0 else (x & -x).bit_length() - 1),
    "add16": ("u16", 2, lambda x, y: (x + y) & 0xFFFF),
    "sub16": ("u16", 2, lambda x, y: (x - y) & 0xFFFF),
    "and16": ("u16", 2, lambda x, y: x & y),
    "or16": ("u16", 2, lambda x, y: x | y),
    "xor16": ("u16", 2, lambda x, y: x ^ y),
    "sll16": ("u16", 2, lambda x, y: (x << y) & 0xFFFF if y < 16 else 0),
    "slr16": ("u16", 2, lambda x, y: x >> y if y < 16 else 0),
    "sar16": ("u16", 2, lambda x, y: (_signed(x) >> min(y, 15)) & 0xFFFF),
    "mov32": ("u32", 1, lambda x: x),
}  # fmt: skip


@dataclasses.dataclass
class Descriptor:
    array: str
    form: str
    offset: int
    strides: tuple  # one or two
    extents: tuple

    def places(self):
        if len(self.extents) == 1:
            return [self.offset + self.strides[0] * i for i in range(self.extents[0])]
        (p, q), (s, t) = self.extents, self.strides
        return [self.offset + s * i + t * j for i in range(p) for j in range(q)]

    def text(self):
        """The descriptor at the top of the program, and the expression that gives it where it is used."""
        n, s, type_ = self.extents[0], self.strides[0], ARRAYS[self.array]
        if self.form == "plane":
            access = f"|i, j|{{{n}, {self.extents[1]}}} -> {self.array}[{self.offset} + {s} * i + {self.strides[1]} * j]"
            return f"@get_dsd(mem4d_dsd, .{{ .tensor_access = {access} }})", "{0}"
        if self.form == "known":
            return (
                f"@get_dsd(mem1d_dsd, .{{ .tensor_access = |i|{{{n}}} -> {self.array}[{self.offset} + {s} * i] }})",
                "{0}",
            )
        if self.form == "fields":
            fields = f".base_address = &{self.array}, .offset = {self.offset}, .extent = {n}, .stride = {s}"
            return f"@get_dsd(mem1d_dsd, .{{ {fields} }})", "{0}"
        whole = f"@get_dsd(mem1d_dsd, .{{ .base_address = &{self.array}, .extent = {CELLS} }})"
        moved = f"@increment_dsd_offset({{0}}, @as(i16, zero + {self.offset}), {type_})"
        return whole, f"@set_dsd_length(@set_dsd_stride({moved}, @as(i8, {s})), @as(u16, {n}))"


@dataclasses.dataclass
class Program:
    statements: list
    seed: int


def descriptor(rng, type_, n):
    array = rng.choice([k for k, t in ARRAYS.items() if t == type_])
    form = rng.choice(["known", "fields", "moved", *(["plane"] if n % 2 == 0 else [])])
    if form == "plane":
        extents = (2, n // 2) if rng.random() < 0.5 else (n // 2, 2)
        strides = (rng.randint(0, 5), rng.randint(1, 3))
    else:
        extents, strides = (
            (n,),
            (rng.choice([1, 1, 1, 2, 3, -1, -2] if form != "fields" else [1, 1, 2, 3]),),
        )
    d = Descriptor(array, form, 0, strides, extents)
    low, high = min(d.places()), max(d.places())
    if high - low >= CELLS:
        return descriptor(rng, type_, n)
    d.offset = rng.randint(-low, CELLS - 1 - high)
    return d


def number(rng, type_):
    return (
        rng.randint(-4, 4)
        if type_ == "f32"
        else rng.choice([0, 1, 2, 7, 15, 16, 255, 0x7FFF, 0x8000, 0xFFFF])
    )


def statement(rng):
    name = rng.choice(list(OPERATIONS))
    type_, count, _ = OPERATIONS[name]
    n = rng.choice([1, 2, 3, 4, 5, 6, 8])
    sources = [descriptor(rng, type_, n) for _ in range(count)]
    if count == 3:
        sources[2] = number(rng, type_)
    elif count == 2 and rng.random() < 0.3:
        sources[1] = number(rng, type_)
    elif count == 1 and rng.random() < 0.15:
        sources[0] = number(rng, type_)
    return (name, descriptor(rng, type_, n), sources, rng.choice([1, 1, 1, 2, 3]))


def beginning(seed):
    rng = random.Random(seed * 3 + 1)
    return {
        k: [
            rng.randint(-9, 9)
            if t == "f32"
            else number(rng, t)
            if t == "u16"
            else rng.getrandbits(32)
            for _ in range(CELLS)
        ]
        for k, t in ARRAYS.items()
    }


def step(memory, s):
    """One statement, element by element; False where a float would round."""
    name, to, sources, repeat = s
    function = OPERATIONS[name][2]
    for _ in range(repeat):
        for k, place in enumerate(to.places()):
            value = function(
                *(
                    memory[x.array][x.places()[k]] if isinstance(x, Descriptor) else x
                    for x in sources
                )
            )
            if abs(value) > EXACT and ARRAYS[to.array] == "f32":
                return False
            memory[to.array][place] = value
    return True


def program(seed):
    rng = random.Random(seed)
    memory, statements = beginning(seed), []
    for _ in range(rng.randint(3, 12)):
        s = statement(rng)
        trial = {k: list(v) for k, v in memory.items()}
        if step(trial, s):
            statements.append(s)
            memory = trial
    return Program(statements, seed)


def by_hand(p):
    memory = beginning(p.seed)
    for s in p.statements:
        step(memory, s)
    return memory


def text(p):
    memory, top, body = beginning(p.seed), ["var zero: i16 = 0;"], []
    for k, t in ARRAYS.items():
        top.append(f"export var {k} = [{CELLS}]{t}{{{', '.join(map(str, memory[k]))}}};")
    top.append("var k: f32 = 0.0;")
    for j, (name, to, sources, repeat) in enumerate(p.statements):
        operands = []
        for i, x in enumerate([to, *sources]):
            if isinstance(x, Descriptor):
                made, use = x.text()
                top.append(f"const d{j}_{i} = {made};")
                operands.append(use.format(f"d{j}_{i}"))
            else:
                operands.append(f"@as({OPERATIONS[name][0]}, {x})")
        call = f"@{name}({', '.join(operands)});"
        body.append(call if repeat == 1 else f"for (@range(u16, {repeat})) |k{j}| {{ {call} }}")
    task = ["task first_task() void {", *("  " + line for line in body), "}"]
    bind = ["comptime {", "  @bind_local_task(first_task, @get_local_task_id(8));"]
    return "\n".join(top + task + bind + ["  @activate(@get_local_task_id(8));", "}", ""])


def run(p, arch, engine):
    types = {"f32": "float32", "u16": "uint16", "u32": "uint32"}
    with tempfile.TemporaryDirectory() as folder:
        for name, content in {"layout.csl": LAYOUT, "pe.csl": text(p)}.items():
            with open(f"{folder}/{name}", "w") as file:
                file.write(content)
        wse.compile_csl(f"{folder}/layout.csl", f"{folder}/out", arch=arch)
        runner = wse.SdkRuntime(f"{folder}/out", memcpy_required=False, engine=engine)
        runner.load()
        runner.run()
        runner._call("stop")
        return {k: runner.read_symbol(0, 0, k, types[t])[:CELLS] for k, t in ARRAYS.items()}


def difference(p, target):
    """`target`: "wse2/native"."""
    try:
        found = run(p, *target.split("/"))
    except wse.WseError as error:
        return f"refused: {str(error)[:300]}"
    for k, want in by_hand(p).items():
        if not np.array_equal(found[k], np.array(want, found[k].dtype)):
            return f"{k} is {found[k].tolist()}, by hand {want}"
    return None


def smaller(p):
    for k in range(len(p.statements)):
        if len(p.statements) > 1:
            yield Program(p.statements[:k] + p.statements[k + 1 :], p.seed)
    for k, (name, to, sources, repeat) in enumerate(p.statements):
        if repeat > 1:
            yield Program(
                p.statements[:k] + [(name, to, sources, repeat - 1)] + p.statements[k + 1 :], p.seed
            )


def story(seed, target):
    p = program(seed)
    said = difference(p, target)
    progress = said is not None
    if not progress:
        return None
    while progress:
        progress = False
        for other in smaller(p):
            now = difference(other, target)
            if now:
                p, said, progress = other, now, True
                break
    return f"seed {seed} on {target}: {said}\n{text(p)}"
