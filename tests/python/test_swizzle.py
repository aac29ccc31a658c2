# SPDX-License-Identifier: Apache-2.0
"""Layouts whose index is a digit ^ other digits: one to one when nothing grows beyond the digit, refused otherwise."""

import numpy as np
import pytest
import weft
from weft import te


def doubled(m, n):
    """B = A * 2 through a buffer T that a layout can change; no input is read twice."""
    A = te.placeholder((m, n), "float32", name="A")
    T = te.compute((m, n), lambda i, j: A[i, j] * 2.0, name="T")
    B = te.compute((m, n), lambda i, j: T[i, j] + A[i, j], name="B")
    return weft.Schedule(te.create_prim_func([A, B]))


def swizzled(sch, layout, **options):
    sch.transform_layout(sch.get_block("T"), ("write", 0), layout, **options)
    return sch


LAYOUTS = [
    pytest.param(16, 64, lambda i, j: (j // 64, i, j % 64 // 8 ^ i % 8, j % 8), id="rows-of-64"),
    pytest.param(24, 32, lambda i, j: (i, j // 4 ^ i % 8, j % 4), id="no-power-of-two-rows"),
    pytest.param(8, 16, lambda i, j: (i, j ^ i // 2), id="short-other"),
    pytest.param(16, 16, lambda i, j: (i, j ^ (i // 2 ^ i % 4)), id="xor-of-others"),
]


@pytest.mark.parametrize("target", ["ref", "cpu", "c"])
@pytest.mark.parametrize("m, n, layout", LAYOUTS)
def test_swizzled_layouts_hold_every_element_once(m, n, layout, target):
    sch = swizzled(doubled(m, n), layout)
    assert "bitwise_xor" in str(sch.mod["main"])
    a = weft.asarray(np.random.default_rng(m * n).standard_normal((m, n), np.float32))
    b = weft.zeros((m, n), dtype="float32")
    weft.build(sch, target=target)["main"](a, b)
    np.testing.assert_array_equal(b.numpy(), a.numpy() * 2 + a.numpy())


def test_padding_is_filled_where_the_swizzle_puts_it():
    sch = doubled(12, 10)
    sch.transform_layout(
        sch.get_block("B"), ("write", 0), lambda i, j: (j // 8, i, j % 8 ^ i % 4), pad_value=7
    )
    b = weft.zeros((2, 12, 8), dtype="float32")
    a = np.arange(120, dtype=np.float32).reshape(12, 10)
    weft.build(sch, target="cpu")["main"](weft.asarray(a), b)
    expected = np.full((2, 12, 8), 7, np.float32)
    for i in range(12):
        for j in range(10):
            expected[j // 8, i, j % 8 ^ i % 4] = a[i, j] * 3
    np.testing.assert_array_equal(b.numpy(), expected)


@pytest.mark.parametrize(
    "n, layout, why",
    [
        (24, lambda i, j: (i, j ^ i % 8), "extent 24, which is no power of two"),
        (8, lambda i, j: (i, j ^ i), "a digit below 8 by i, which may be larger"),
        (16, lambda i, j: (i ^ j, j ^ i), "is swizzled by what index"),
        (16, lambda i, j: (i, i ^ j), "not one to one"),
    ],
)
def test_what_may_collide_is_refused(n, layout, why):
    sch = doubled(16, n)
    before = str(sch.mod["main"])
    with pytest.raises(weft.ScheduleError, match=why) as caught:
        swizzled(sch, layout)
    assert caught.value.code == "schedule.transform_layout.bijective"
    assert str(sch.mod["main"]) == before


def test_the_trace_replays():
    sch = swizzled(doubled(16, 64), LAYOUTS[0].values[2])
    again = weft.Schedule.replay(doubled(16, 64).mod["main"], sch.trace.as_json())
    assert str(again.mod["main"]) == str(sch.mod["main"])
