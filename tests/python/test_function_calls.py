# SPDX-License-Identifier: Apache-2.0
"""Functions of a module that call each other, on every target: the called body stands in place of the call. Each row is compared
with NumPy and with the reference interpreter on the module as it was written."""

import numpy as np
import pytest
import weft
from refusal import refused

TARGETS = ["ref", "cpu", "c", "opencl"]
HEAD = """
@T.ir_module
class M:
    @T.prim_func
    def scale(x: T.Buffer((5,), "float32"), k: T.float32):
        for i in range(5):
            with T.block("scale"):
                v = T.axis.spatial(5, i)
                x[v] = x[v] * k

    @T.prim_func
    def prefix(x: T.Buffer((3, 5), "float32"), y: T.Buffer((3,), "float32")):
        t = T.alloc_buffer((3, 5), "float32")
        for i, j in T.grid(3, 5):
            with T.block("double"):
                v, w = T.axis.remap("SS", [i, j])
                t[v, w] = x[v, w] + x[v, w]
        for i, j in T.grid(3, 5):
            with T.block("sum"):
                v, w = T.axis.remap("SR", [i, j])
                with T.init():
                    y[v] = T.float32(0)
                y[v] = y[v] + t[v, w]

    @T.prim_func
    def any_rows(x: T.Buffer(("n", "m"), "float32"), y: T.Buffer(("n",), "float32")):
        s = T.alloc_buffer((n, m), "float32")
        for i, j in T.grid(n, m):
            with T.block("copy"):
                v, w = T.axis.remap("SS", [i, j])
                s[v, w] = x[v, m - 1 - w] + T.float32(1)
        for i, j in T.grid(n, m):
            with T.block("max"):
                v, w = T.axis.remap("SR", [i, j])
                with T.init():
                    y[v] = T.float32(-1000)
                y[v] = T.max(y[v], s[v, w])

    @T.prim_func
    def fill(x: T.Buffer((2, 3), "float32"), first: T.int64):
        for i, j in T.grid(2, 3):
            with T.block("fill"):
                v, w = T.axis.remap("SS", [i, j])
                x[v, w] = T.Cast("float32", first + v * 10 + w)

    @T.prim_func
    def twice(x: T.Buffer((5,), "float32")):
        scale(x, T.float32(2))
        scale(x, T.float32(3))

    @T.prim_func
    def bump(n: T.Buffer((4,), "int64"), by: T.int64):
        n[0] = n[0] + by
        n[1] = n[1] + by

    @T.prim_func
    def main(A: T.Buffer((4, 3, 5), "float32"), B: T.Buffer((4, 3), "float32"), N: T.Buffer((4,), "int64"), k: T.int64):
"""

BUMPED = lambda n, by: [n[0] + by, n[1] + by, n[2], n[3]]  # noqa: E731

# name: the body of main, and what it does to A, B, N
ROWS = {
    "a row": ("T.call('scale', T.address_of(A[2, 1, 0]), T.float32(10))", lambda a, b, n, k: a[2, 1].__imul__(10)),
    "the first row": ("scale(A, T.float32(10))", lambda a, b, n, k: a[0, 0].__imul__(10)),
    "not at a row's beginning": ("T.call('scale', T.address_of(A[1, 1, 3]), T.float32(10))", lambda a, b, n, k: a.reshape(-1)[23:28].__imul__(10)),
    "rows of a loop": ("for i in range(4):\n    T.call('scale', T.address_of(A[i, 2, 0]), T.float32(7))", lambda a, b, n, k: a[:, 2].__imul__(7)),
    "a number of a loop": (
        "for i in range(4):\n    T.call('scale', T.address_of(A[i, 2, 0]), T.Cast('float32', i))",
        lambda a, b, n, k: a[:, 2].__imul__(np.arange(4, dtype="float32")[:, None]),
    ),
    "a parameter's row": ("T.call('scale', T.address_of(A[k, 1, 0]), T.Cast('float32', k))", lambda a, b, n, k: a[k, 1].__imul__(k)),
    "calls in calls": ("T.call('twice', T.address_of(A[3, 0, 0]))", lambda a, b, n, k: a[3, 0].__imul__(6)),
    "memory of its own": ("T.call('prefix', T.address_of(A[1, 0, 0]), T.address_of(B[2, 0]))", lambda a, b, n, k: b.__setitem__(2, 2 * a[1].sum(1))),
    "memory of its own in a loop": (
        "for i in range(4):\n    T.call('prefix', T.address_of(A[3 - i, 0, 0]), T.address_of(B[i, 0]))",
        lambda a, b, n, k: b.__setitem__(slice(None), 2 * a[::-1].sum(2)),
    ),
    "memory of its own, twice": (
        "T.call('prefix', T.address_of(A[1, 0, 0]), T.address_of(B[2, 0]))\nT.call('prefix', T.address_of(A[0, 0, 0]), T.address_of(B[3, 0]))",
        lambda a, b, n, k: (b.__setitem__(2, 2 * a[1].sum(1)), b.__setitem__(3, 2 * a[0].sum(1))),
    ),
    "another shape": (
        "T.call('fill', T.address_of(A[2, 1, 3]), T.int64(100))",
        lambda a, b, n, k: a.reshape(-1).__setitem__(slice(38, 44), [100, 101, 102, 110, 111, 112]),
    ),
    "another shape in a loop": (
        "for i in range(9):\n    T.call('fill', T.address_of(A[i // 3, i % 3, 2]), i)",
        lambda a, b, n, k: [a.reshape(-1).__setitem__(slice(i * 5 + 2, i * 5 + 8), [i, i + 1, i + 2, i + 10, i + 11, i + 12]) for i in range(9)],
    ),
    "numbers from memory": (
        "for i in range(2):\n    bump(N, N[0])",
        lambda a, b, n, k: [n.__setitem__(slice(None), BUMPED(n, n[0])) for i in range(2)],
    ),
    "a row that memory names": ("T.call('scale', T.address_of(A[N[3], N[2], 0]), T.float32(4))", lambda a, b, n, k: a[n[3], n[2]].__imul__(4)),
    "under a condition": ("if k > 1:\n    bump(N, k)\nelse:\n    bump(N, T.int64(1000))", lambda a, b, n, k: n.__setitem__(slice(None), BUMPED(n, k if k > 1 else 1000))),
    "in a block": (
        "for i in range(4):\n    with T.block('rows'):\n        v = T.axis.spatial(4, i)\n        T.call('scale', T.address_of(A[v, 0, 0]), T.Cast('float32', v))",
        lambda a, b, n, k: a[:, 0].__imul__(np.arange(4, dtype="float32")[:, None]),
    ),
    "a constant of another type": ("bump(N, 3)", lambda a, b, n, k: n.__setitem__(slice(None), BUMPED(n, 3))),
}  # fmt: skip


def module(body, head=HEAD):
    return weft.script.from_source(head + "".join(f"        {line}\n" for line in body.split("\n")))


def arrays():
    rng = np.random.default_rng(7)
    a = rng.integers(-9, 9, (4, 3, 5)).astype("float32")
    return [a, rng.integers(-9, 9, (4, 3)).astype("float32"), np.array([5, 6, 1, 3])]


def there(target):
    if target not in weft._core.targets():
        pytest.skip(f"built without the {target} target")
    device = weft.device(target)
    if not device.available:
        pytest.skip(device.reason)
    return device


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("row", ROWS)
def test_the_called_body_stands_in_place_of_the_call(row, target):
    device = there(target)
    body, does = ROWS[row]
    wanted = arrays()
    does(*wanted, 2)
    built = weft.build(module(body), target=target)
    given = [weft.asarray(x, device=device) for x in arrays()]
    built["main"](*given, 2)
    for name, x, y in zip("ABN", given, wanted, strict=True):
        assert np.array_equal(x.numpy(), y), (name, x.numpy(), y)


@pytest.mark.parametrize("target", TARGETS)
def test_extents_come_from_the_callers_arrays(target):
    device = there(target)
    program = weft.script.from_source(
        HEAD[: HEAD.index("    @T.prim_func\n    def main")]
        + """    @T.prim_func
    def main(A: T.Buffer(("n", "m"), "float32"), B: T.Buffer(("n",), "float32"), C: T.Buffer((6, 2), "float32"), D: T.Buffer((6,), "float32")):
        any_rows(A, B)
        any_rows(C, D)
"""
    )
    built = weft.build(program, target=target)
    rng = np.random.default_rng(3)
    for n, m in ((3, 4), (7, 1), (1, 9)):
        a, c = rng.random((n, m), "float32"), rng.random((6, 2), "float32")
        given = [
            weft.asarray(x, device=device)
            for x in (a, np.zeros(n, "float32"), c, np.zeros(6, "float32"))
        ]
        built["main"](*given)
        assert np.array_equal(given[1].numpy(), (a + np.float32(1)).max(1))
        assert np.array_equal(given[3].numpy(), (c + np.float32(1)).max(1))
        built["any_rows"](*given[:2])


@pytest.mark.parametrize("target", ["ref", "cpu", "c"])
def test_a_part_whose_end_is_known_at_run_time_is_checked(target):
    device = there(target)
    program = module("T.call('fill', T.address_of(A[k, 2, 0]), T.int64(0))")
    built = weft.build(program, target=target)
    given = [weft.asarray(x, device=device) for x in arrays()]
    built["main"](*given, 2)
    assert given[0].numpy()[2, 2].tolist() == [0, 1, 2, 10, 11]
    with pytest.raises(weft.Error, match='"x" needs 6 elements of "A", but fewer follow'):
        built["main"](*given, 3)


def test_what_cannot_stand_in_place_is_refused_by_name():
    for body, code, said in (
        ("T.evaluate(T.call('nobody', A))", "verify.call.unknown", '"nobody" is neither an intrinsic nor a function of the module'),
        ("scale(A)", "verify.call.arity", '"scale" takes 2 arguments, not 1'),
        ("main(A, B, N, k)", "lower.call.recursive", '"main" calls itself'),
        ("N[0] = T.Cast('int64', T.call('bump', N, k))", "lower.call.value", 'the call of "bump" is part of an expression'),
        ("bump(N, N)", "lower.call.argument", 'argument 1 of the call of "bump" is an address, but "by" is a number'),
        ("bump(k, k)", "lower.call.argument", 'argument 0 of the call of "bump" is a value of type int64, but "n" is a tensor'),
        ("bump(N, T.float32(3))", "lower.call.argument", "is float32, but the parameter is int64"),
        ("bump(A, k)", "lower.call.argument", 'holds float32, but "n" holds int64'),
        ("T.call('any_rows', T.address_of(A[0, 1, 0]), B)", "lower.call.argument", 'does not define the extent "n" of "x"'),
        ("T.call('scale', T.address_of(A[3, 2, 3]), T.float32(1))", "verify.bounds", '"x" needs 5 elements of "A", but only 2 follow'),
    ):  # fmt: skip
        program = module(body)
        error = refused(weft.Error, code, weft.build, program, target="cpu")
        assert said in str(error), (body, str(error))
        assert weft.accepts(program, "cpu").code == code


MATCHED = """
    @T.prim_func
    def matched(x: T.Buffer((2, 3), "float32")):
        for i in range(2):
            with T.block("row"):
                v = T.axis.spatial(2, i)
                r = T.match_buffer(x[v, 0:3], (3,), "float32")
                for j in range(3):
                    r[j] = T.float32(8)

    @T.prim_func
    def strided(x: T.Buffer((4,), "float32", strides=(2,))):
        x[1] = T.float32(9)

    @T.prim_func
    def rows(A: T.Buffer((4, 5), "float32", strides=("s", 1)), B: T.Buffer((4, 3), "float32")):
"""
CLASS = "@T.ir_module\nclass M:"


def test_regions_and_strides_need_the_callers_shape():
    for body, code in (
        ("T.call('matched', T.address_of(A[0, 0]))", "lower.call.strides"),
        ("T.call('strided', T.address_of(B[0, 0]))", "lower.call.argument"),
    ):
        error = refused(weft.Error, code, weft.build, module(body, CLASS + MATCHED), target="cpu")
        assert error.help or "strides" in str(error)
    compact = CLASS + MATCHED.replace(', strides=("s", 1)), B', "), B")
    error = refused(
        weft.Error,
        "lower.call.region",
        weft.build,
        module("T.call('matched', T.address_of(A[0, 1]))", compact),
        target="cpu",
    )
    assert "trailing dimensions" in error.help
    built = weft.build(
        module("T.call('matched', T.address_of(B[2, 0]))", CLASS + MATCHED), target="cpu"
    )
    b = weft.zeros((4, 3))
    built["rows"](weft.zeros((4, 5)), b)
    assert b.numpy().sum(1).tolist() == [0, 0, 24, 24]


SCATTER = """
@T.ir_module
class M:
    @T.prim_func
    def scatter(I: T.Buffer((7,), "int32"), V: T.Buffer((7,), "float32"), A: T.Buffer((9,), "float32")):{own}
        for i in T.parallel(7):
            with T.block("store"):
                v = T.axis.spatial(7, i)
                A[I[v]] = V[v] * T.float32(3) + T.float32(1)

    @T.prim_func
    def main(I: T.Buffer((7,), "int32"), V: T.Buffer((7,), "float32"), A: T.Buffer((9,), "float32")):{callers}
        scatter(I, V, A)
"""


def declared(key, value):
    return f'\n        T.func_attr({{"{key}": {value}}})'


@pytest.mark.parametrize(
    "key, value, other",
    [
        ("weft.distinct_elements", True, False),
        ("weft.points_together", True, 0),
        ("contract", False, True),
    ],
)
def test_what_a_called_function_declares_of_its_body_the_caller_declares_too(key, value, other):
    """A body that moves would lose the declaration: the caller says so for all of its own."""
    distinct = "" if key == "weft.distinct_elements" else declared("weft.distinct_elements", True)
    for callers in ("", declared(key, other)):
        program = weft.script.from_source(
            SCATTER.format(own=distinct + declared(key, value), callers=distinct + callers)
        )
        error = refused(weft.Error, "lower.call.attribute", weft.build, program, target="cpu")
        assert f'"scatter" declares {key}' in str(error) and f'"{key}": {value}' in error.help
        assert weft.accepts(program, "cpu").code == "lower.call.attribute"
    program = SCATTER.format(
        own=distinct + declared(key, value), callers=distinct + declared(key, value)
    )
    index, values = np.array([8, 3, 0, 5, 7, 1, 2], "int32"), np.arange(7, dtype="float32")
    wanted = np.zeros(9, "float32")
    wanted[index] = values * 3 + 1
    for target in ("ref", "cpu", "c"):
        device = there(target)
        a = weft.zeros(9, device=device)
        built = weft.build(weft.script.from_source(program), target=target)
        built["main"](weft.asarray(index, device=device), weft.asarray(values, device=device), a)
        assert np.array_equal(a.numpy(), wanted)


def test_a_declaration_that_says_false_declares_nothing():
    key = "weft.distinct_elements"
    program = SCATTER.format(own=declared(key, False), callers=declared(key, 0))
    refused(weft.Error, "verify.race", weft.build, weft.script.from_source(program), target="cpu")


def test_arguments_that_have_a_place_only_are_taken_by_name():
    x = weft.asarray([1.0, 2.0, 4.0])
    assert weft.diff(x=x).tolist() == [1, 2]
    assert float(weft.logsumexp(x=x)) == pytest.approx(float(weft.logsumexp(x)))
    with pytest.raises(weft.DTypeError):
        weft.diff(x, x=x)
