# SPDX-License-Identifier: Apache-2.0
"""Index arithmetic at 2^31 - 1, 2^31 and beyond: arrays of virtual memory of which a kernel touches a few pages, on host
targets; for graphics cards the text."""

import mmap
import re

import numpy as np
import pytest
import weft

PLACES = [0, 2**31 - 2, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 1, 2**32, 2**32 + 5]
N = 2**32 + 4096
PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)


@pytest.fixture(scope="module")
def virtual():
    """4 GiB of addresses; pages exist once they are touched."""
    memory = mmap.mmap(-1, N, flags=PRIVATE)
    values = np.frombuffer(memory, np.int8)
    for k, place in enumerate(PLACES):
        values[place] = k + 1
    return values


def program(body, *parameters):
    head = ", ".join(f'{name}: T.Buffer({shape}, "{dtype}")' for name, shape, dtype in parameters)
    return weft.script.from_source(f"@T.prim_func\ndef main({head}):\n" + body)


A = ("A", f"({N},)", "int8")
B = ("B", "(8,)", "int8")
BODIES = {
    # near 2^31 by a product of the loop, by a sum, by an index that is read, and by two dimensions
    "product": (
        "    for i in range(8):\n        B[i] = A[i * 613566756]\n",
        [A, B],
        lambda a, k: a[k * 613566756],
    ),
    "sum": (
        "    for i in range(8):\n        B[i] = A[i + 2147483644]\n",
        [A, B],
        lambda a, k: a[k + 2147483644],
    ),
    "beyond 32 bits": (
        "    for i in range(8):\n        B[i] = A[4294967301 - i]\n",
        [A, B],
        lambda a, k: a[4294967301 - k],
    ),
    "read": (
        "    for i in range(8):\n        B[i] = A[P[i]]\n",
        [A, ("P", "(8,)", "int64"), B],
        lambda a, k: a[PLACES[k]],
    ),
    "two dimensions": (
        "    for i in range(8):\n        B[i] = A[i * 149796, i * 20 + 3]\n",
        [("A", f"({N // 4096}, 4096)", "int8"), B],
        lambda a, k: a.reshape(-1, 4096)[k * 149796, k * 20 + 3],
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", BODIES)
@pytest.mark.parametrize("target", ["ref", "cpu", "c"])
def test_reads_beyond_31_bits(target, form, virtual):
    body, parameters, wanted = BODIES[form]
    module = weft.build(program(body, *parameters), target=target)
    shape = eval(parameters[0][1])  # noqa: S307
    out = weft.zeros((8,), dtype="int8", device=target)
    given = [weft.from_dlpack(virtual.reshape(shape))]
    if form == "read":
        given.append(weft.asarray(np.array(PLACES), device=target))
    module["main"](*given, out)
    np.testing.assert_array_equal(out.numpy(), [wanted(virtual, k) for k in range(8)])


@pytest.mark.parametrize("target", ["ref", "cpu", "c"])
def test_stores_beyond_31_bits(target, virtual):
    body = "    for i in range(8):\n        A[P[i]] = A[P[i]] + B[i]\n"
    module = weft.build(program(body, A, ("P", "(8,)", "int64"), B), target=target)
    before = [int(virtual[p]) for p in PLACES]
    given = weft.from_dlpack(virtual)
    module["main"](given, weft.asarray(np.array(PLACES)), weft.arange(8, dtype="int8"))
    assert [int(virtual[p]) for p in PLACES] == [x + k for k, x in enumerate(before)]
    module["main"](given, weft.asarray(np.array(PLACES)), -weft.arange(8, dtype="int8"))
    assert [int(virtual[p]) for p in PLACES] == before


@pytest.mark.parametrize("place", PLACES[1:])
def test_arrays_beyond_31_bits(place, virtual):
    x = weft.from_dlpack(virtual)
    assert int(x[place]) == PLACES.index(place) + 1
    assert x[place - 1 : place + 2].numpy().tolist() == virtual[place - 1 : place + 2].tolist()
    assert int(x[place - N]) == PLACES.index(place) + 1
    assert x[place :: -(2**30)].numpy().tolist() == virtual[place :: -(2**30)].tolist()
    for beyond in (N, -N - 1, 2**63 - 1, -(2**63)):
        with pytest.raises(weft.IndexError):
            x[beyond]


@pytest.mark.parametrize("target", ["cuda:arch=sm_90", "opencl"])
def test_text_for_cards_holds_wide_indices(target):
    if target.split(":")[0] not in weft._core.targets():
        pytest.skip(f"built without the target {target}")

    def widths(n, stride):
        f = program(
            f"    for i in range({n}):\n        B[i * {stride}] = A[i * {stride}]\n",
            ("A", f"({n * stride},)", "int8"),
            ("B", f"({n * stride},)", "int8"),
        )
        source = weft.build(f, target=target).source()
        return re.search(r"const ([\w ]+) at = ", source).group(1).startswith("long")

    assert widths(2**20, 4096)  # 2^32 elements
    assert widths(2**19 + 1, 4096)  # the last index is 2^31
    assert not widths(2**18, 4096)  # 2^30 elements: narrow numbers suffice


ROOM = """
@T.prim_func
def main(A: T.Buffer((7,), "float32"), n: T.{kind}):
    s = T.alloc_buffer({shape}, "{dtype}")
    for i in range(7):
        with T.block("w"):
            v = T.axis.spatial(7, i)
            s[{at}] = T.Cast("{dtype}", A[v])
    for i in range(7):
        with T.block("r"):
            v = T.axis.spatial(7, i)
            A[v] = T.Cast("float32", s[{at}]) * T.float32(2)
"""
PLACED = "(v * 3) % T.max(T.Cast('int64', A[v]), T.int64(1))"  # nobody can say which parts are used


@pytest.mark.parametrize("target", ["cpu", "c", "ref"])
@pytest.mark.parametrize(
    "shape, at, kind, wraps",
    [
        ("(n,)", "{p}", "int64", [(1 << 62) + 1, (1 << 61) + 3, (1 << 63) - 1]),
        ("(n, n)", "{p}, {p}", "int64", [1 << 31, 1 << 32, 3 << 30]),
        ("(n, n)", "{p}, {p}", "int32", [1 << 16, 65537, 1 << 30, (1 << 31) - 1]),
        ("(3, n, 5, n)", "2, {p}, 4, {p}", "int64", [1 << 31, 1 << 32]),
    ],
)
def test_memory_whose_bytes_wrap_around_is_refused(target, shape, at, kind, wraps):
    """Where it was not, a kernel wrote behind the few bytes that were left of the product."""
    given = np.arange(1, 8, dtype="float32")
    wanted, places = given.copy(), {}
    for v in range(7):
        places[v * 3 % (v + 1)] = given[v]
    for v in range(7):
        wanted[v] = 2 * places[v * 3 % (v + 1)]
    text = ROOM.format(shape=shape, at=at.format(p=PLACED), kind=kind, dtype="float32")
    module = weft.build(weft.script.from_source(text), target=target)
    a = weft.asarray(given, device=target)
    module["main"](a, 9)
    np.testing.assert_array_equal(a.numpy(), wanted)
    for n in wraps:
        if target == "ref" and n <= 65537:
            continue  # legal there, whose indices have 64 bits; it would fill 16 GiB with zeros
        a = weft.asarray(given, device=target)
        with pytest.raises(weft.Error) as caught:
            module["main"](a, n)
        said = '"s".*(2\\^63 bytes|2\\^31 elements|too large)|no memory for .*"s"'
        assert re.search(said, str(caught.value)), caught.value
        np.testing.assert_array_equal(a.numpy(), given)


@pytest.mark.parametrize("target", ["cpu", "c"])
def test_memory_of_a_constant_size_that_wraps_around(target):
    text = ROOM.format(shape="(4611686018427387905,)", at=PLACED, kind="int64", dtype="float32")
    with pytest.raises(weft.Error) as caught:
        weft.build(weft.script.from_source(text), target=target)
    assert caught.value.code == "lower.allocate.bytes" and "2^63 bytes" in str(caught.value)
