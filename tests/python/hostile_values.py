# SPDX-License-Identifier: Apache-2.0
"""Arguments that fight back: objects whose methods raise, lie or never end, numbers and shapes that fit nothing, odd arrays of
NumPy's and of weft's. VALUES: a name to a function that makes a fresh one. PLAIN: arguments that functions take."""

import array
import decimal
import enum
import io
import itertools

import numpy as np
import weft


class Fight(Exception):
    """What the methods of these objects raise. It may come out of a call as it is."""


def raises(*_, **__):
    raise Fight


METHODS = (
    "len iter getitem index float int complex array dlpack dlpack_device eq bool repr str hash getattr next contains call lt add radd "
    "mul rmul fspath enter array_ufunc array_function array_namespace torch_function weft_array neg setitem length_hint round trunc "
    "reduce_ex format"
).split()


def having(**methods):
    """An object of a class of its own with these methods."""
    return type("Hostile", (), {f"__{name}__": method for name, method in methods.items()})()


class Everything:
    """Each attribute is there and is the object itself."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *_, **__):
        return self

    def __len__(self):
        return 3

    def __getitem__(self, i):
        return self

    def __iter__(self):
        return iter([self, self, self])


class Shrinking(list):
    def __iter__(self):
        while self:
            yield self.pop()


class ShrinkingItems(list):
    def __getitem__(self, i):
        value = list.__getitem__(self, i)
        self.clear()
        return value


class LyingList(list):
    def __len__(self):
        return 2**62


class LyingTuple(tuple):
    def __len__(self):
        return 10**9

    __iter__ = raises


class LyingDict(dict):
    items = raises

    def keys(self):
        return 3


class LyingInt(int):
    def __index__(self):
        return 2**70

    __eq__ = __lt__ = raises
    __hash__ = int.__hash__


class LyingText(str):
    __eq__ = __hash__ = lower = raises


class LyingFloat(float):
    def __float__(self):
        return float("nan")


def of_class(of):
    return type("Disguised", (), {"__class__": property(of)})()


class Equal:
    def __eq__(self, other):
        return np.array([True, False])

    __hash__ = object.__hash__


class _Meta(type):
    __instancecheck__ = __subclasscheck__ = __eq__ = __repr__ = raises
    __hash__ = type.__hash__


class LyingClass(metaclass=_Meta):
    pass


class Given:
    """An object of __array__ or __dlpack__ that gives what a function makes of it."""

    def __init__(self, protocol, make):
        self.make = make
        setattr(type(self), protocol, lambda self, *_, **__: self.make(self))


def given(protocol, make):
    return type("Exporting", (Given,), {})(protocol, make)


def in_one_another(wrap, levels=100000):
    out = 1.0
    for _ in range(levels):
        out = wrap(out)
    return out


def holding_itself():
    out = [1]
    out.append(out)
    return out


def doubled(leaf, levels=60):
    """A list of 2^levels entries in few lists."""
    out = [leaf, leaf]
    for _ in range(levels):
        out = [out, out]
    return out


def closed(file):
    file.close()
    return file


def raising_generator():
    yield 1
    raise Fight


def used_capsule():
    capsule = np.ones(3).__dlpack__()
    np.from_dlpack(having(dlpack=lambda s, **_: capsule, dlpack_device=lambda s: (1, 0)))
    return having(dlpack=lambda s, **_: capsule, dlpack_device=lambda s: (1, 0))


PROGRAM = """@T.prim_func
def main(A: T.Buffer((4,), 'float32'), B: T.Buffer((4,), 'float32')):
    for i in range(4):
        with T.block('b'):
            v = T.axis.spatial(4, i)
            B[v] = A[v] + T.float32(1)
"""


def program():
    return weft.script.from_source(PROGRAM)


def ones(shape=(2, 3), dtype="float32", device=None):
    return weft.ones(shape, dtype=dtype, device=device)


def variable(shape=(2, 3), dtype="float32"):
    return weft.Tensor(ones(shape, dtype), requires_grad=True)


VALUES = {f"raises {name}": lambda name=name: having(**{name: raises}) for name in METHODS}
VALUES["raises all"] = lambda: having(**dict.fromkeys(METHODS, raises))
for _v in (2**62, -1, 10**30, "a", None, 2.5, True):
    VALUES[f"length {_v}"] = lambda v=_v: having(len=lambda s: v, getitem=lambda s, i: [1, 1, 1][i])
for _v in (2**63, 2**64, -(2**63) - 1, 10**400, 2**31, -1, "a", 2.5, None):
    VALUES[f"index {str(_v)[:12]}"] = lambda v=_v: having(index=lambda s: v)
for _v in (float("nan"), float("inf"), "a", 10**400, None):
    VALUES[f"float {str(_v)[:12]}"] = lambda v=_v: having(float=lambda s: v)
for _v in (0, -1, 2**31, 2**32, 2**62, 2**63, 2**64, -(2**31), -(2**63) - 1, 10**400, -(10**400)):
    VALUES[f"integer {len(str(_v))} {str(_v)[:12]}"] = lambda v=_v: v
for _v in (float("nan"), float("inf"), -float("inf"), 1e308, -0.0, 5e-324, complex("nan"), 1j):
    VALUES[f"number {_v}"] = lambda v=_v: v
for _v in (
    *((2**31, 2**31), (2**62, 4), (0, 2**62), (-1, -1), (1,) * 40, (1,) * 1000, (2**63,), (10**400,), (float("nan"),)),
    *((True, False), (None,), ("a",), ((),), (0,), (), (2, 0, 3), (slice(None), None, ..., 1), (..., ...), (None,) * 40),
):  # fmt: skip
    VALUES[f"tuple {str(_v)[:30]}"] = lambda v=_v: v
for _v in ("", "\0", "a\0b", "\ud800", "x" * 70000, "%s%n", "../../x", "float32", "cpu", "wse:99999x99999", "opencl:-1", "cuda:0", "ij,jk->ik", "i" * 200 + "->", "nan", "sum", ">f8", "O"):  # fmt: skip
    VALUES[f"text {ascii(_v)[:20]}"] = lambda v=_v: v
for _v in (float("nan"), None, "a", 3, [10**400], [2**63, -1], [(1, 2, 3), 4], [int, float], [1] * 100000, [1, "a", None], [[1, 2], [3]]):  # fmt: skip
    VALUES[f"list {str(_v)[:20]}"] = lambda v=_v: list(v) if isinstance(v, list) else [v]
for _v in ("a", (1,), (999, 0), (2**70, 0), None, (1, "a")):
    VALUES[f"DLPack device {_v}"] = lambda v=_v: having(dlpack=lambda s, **_: np.ones(3).__dlpack__(), dlpack_device=lambda s: v)  # fmt: skip
for _t in "bool int8 uint64 float16 bfloat16 float64 complex64 complex128 float8_e4m3fn float8_e5m2".split():
    VALUES[f"array of {_t}"] = lambda t=_t: ones(dtype=t)
for _d in ("ref", "qpu", "vta", "wse:2x2"):
    VALUES[f"array on {_d}"] = lambda d=_d: ones(device=d)
VALUES |= {
    "holds itself by index": lambda: having(len=lambda s: 2, getitem=lambda s, i: [s, s][i]),
    "holds itself by iteration": lambda: having(iter=lambda s: iter([s, s])),
    "iterates over 3": lambda: having(iter=lambda s: 3),
    "exports None": lambda: given("__array__", lambda s: None),
    "exports itself": lambda: given("__array__", lambda s: s),
    "exports objects": lambda: given("__array__", lambda s: np.array([object()], object)),
    "exports what it is not": lambda: given("__dlpack__", lambda s: s),
    "exports 3": lambda: given("__dlpack__", lambda s: 3),
    "exports twice": used_capsule,
    "everything": Everything,
    "shrinks": lambda: Shrinking([1, 2, 3]),
    "shrinks by index": lambda: ShrinkingItems([1, 2, 3]),
    "lying list": lambda: LyingList([2, 3]),
    "lying tuple": lambda: LyingTuple((2, 3)),
    "lying dict": lambda: LyingDict(a=1),
    "lying int": lambda: LyingInt(2),
    "lying text": lambda: LyingText("float32"),
    "lying float": lambda: LyingFloat(1),
    "lying class": lambda: LyingClass,
    "of a lying class": LyingClass,
    "an array by name": lambda: of_class(lambda s: type(ones())),
    "a tensor by name": lambda: of_class(lambda s: weft.Tensor),
    "an int by name": lambda: of_class(lambda s: int),
    "a class that raises": lambda: of_class(raises),
    "equal to arrays": Equal,
    "holds itself": holding_itself,
    "lists in lists": lambda: in_one_another(lambda x: [x]),
    "tuples in tuples": lambda: in_one_another(lambda x: (x,)),
    "dicts in dicts": lambda: in_one_another(lambda x: {"a": x}),
    "doubled numbers": lambda: doubled(1.0),
    "doubled arrays": lambda: doubled(ones(2)),
    "raising generator": raising_generator,
    "long range": lambda: range(10**18),
    "longer range": lambda: range(10**400),
    "closed file": lambda: closed(io.BytesIO(b"x")),
    "bytes": lambda: b"\0\xff",
    "bytearray": lambda: bytearray(24),
    "numbers of array": lambda: array.array("d", [1, 2]),
    "dict": lambda: {"a": 1},
    "set": lambda: {1, 2},
    "iterator": lambda: iter(()),
    "function": lambda: lambda *a, **k: a[0] if a else None,
    "raising function": lambda: raises,
    "huge function": lambda: lambda *a, **k: 10**400,
    "decimal": lambda: decimal.Decimal("1e500"),
    "enumeration": lambda: enum.Enum("E", "A").A,
    "slice": lambda: slice(10**400, -(10**400), 10**400),
    "raising slice": lambda: slice(having(index=raises), None),
    "class": lambda: int,
    "class of arrays": lambda: type(ones()),
    "none": lambda: None,
    "not implemented": lambda: NotImplemented,
    "capsule": lambda: np.ones(2).__dlpack__(),
    "NumPy objects": lambda: np.array([object(), None], object),
    "NumPy rows": lambda: np.zeros(3, [("a", "f4"), ("b", "i8")]),
    "NumPy dates": lambda: np.zeros(3, "M8[s]"),
    "NumPy texts": lambda: np.array(["a", "bc"]),
    "NumPy voids": lambda: np.zeros(3, "V5"),
    "NumPy big-endian": lambda: np.ones((2, 3), ">f4"),
    "NumPy read-only": lambda: np.broadcast_to(np.float32(2), (2, 3)),
    "NumPy backwards": lambda: np.arange(6, dtype=np.float32).reshape(2, 3)[::-1, ::-1],
    "NumPy number": lambda: np.array(3.0),
    "NumPy empty": lambda: np.zeros((0, 3), np.float32),
    "NumPy long": lambda: np.ones((2, 3), np.longdouble),
    "NumPy unaligned": lambda: np.frombuffer(bytearray(25), np.uint8)[1:].view(np.float32)[:6].reshape(2, 3),
    "NumPy 32 axes": lambda: np.ones((1,) * 32, np.float32),
    "NumPy masked": lambda: np.ma.masked_array([1.0, 2, 3], [0, 1, 0]),
    "NumPy type": lambda: np.dtype([("a", "f4")]),
    "NumPy largest": lambda: np.uint64(2**64 - 1),
    "number": lambda: weft.asarray(2.0),
    "empty": lambda: ones((0, 3)),
    "backwards": lambda: ones((4, 6))[::-2, ::-2],
    "spread": lambda: weft.broadcast_to(ones((1, 3)), (2, 3)),
    "20 axes": lambda: ones((1,) * 20),
    "not a number": lambda: weft.asarray(np.full((2, 3), np.nan, np.float32)),
    "least": lambda: weft.asarray(np.full((2, 3), -(2**63))),
    "variable": variable,
    "empty variable": lambda: variable((0, 3)),
    "layer": lambda: weft.nn.Linear(3, 4),
    "optimizer": lambda: weft.optim.SGD([variable()], lr=0.1),
    "program": program,
    "schedule": lambda: weft.Schedule(program()),
    "placeholder": lambda: weft.te.placeholder((4,), "float32", "A"),
}  # fmt: skip

PLAIN = [
    ones, lambda: ones((3,)), lambda: ones((3, 3)), variable, lambda: 1, lambda: 2, lambda: 0.5, lambda: (2, 3), lambda: [ones(), ones()],
    lambda: "float32", lambda: "cpu", lambda: 0, lambda: ones(dtype="int64"), lambda: ones((4, 3, 8, 8)), lambda: lambda *a: a[0],
    lambda: "x.npy", program, lambda: None, lambda: {"a": ones()}, lambda: weft.nn.Linear(3, 4), lambda: weft.te.var("n"),
    lambda: ones((1, 3, 8)), lambda: ones(dtype="bool"), lambda: [variable()], lambda: itertools.islice([ones()], 1),
]  # fmt: skip
