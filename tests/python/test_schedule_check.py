# SPDX-License-Identifier: Apache-2.0
"""Schedule(check="run"): every step is also run by the interpreter."""

import pytest
import weft
from weft import script as T
from weft import te


def product(m, n, k, dtype="float32"):
    A, B = te.placeholder((m, k), dtype, name="A"), te.placeholder((k, n), dtype, name="B")
    r = te.reduce_axis(k, name="r")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    return te.create_prim_func([A, B, C])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "float16"])
def test_right_steps_pass_and_are_counted(dtype):
    sch = weft.Schedule(product(7, 9, 5, dtype), check="run")
    block = sch.get_block("C")
    local = sch.cache_write(block, 0, "local")
    i, j, k = sch.get_loops(block)
    i0, i1 = sch.split(i, [None, 4])
    j0, j1 = sch.split(j, [2, None])
    sch.reorder(i0, j0, k, i1, j1)
    sch.reverse_compute_at(local, j0)
    sch.decompose_reduction(block, k)
    sch.vectorize(j1)
    compared, rebased = sch.checked
    assert compared == 7 and rebased == 0


def test_a_parameter_in_another_layout_is_a_new_start():
    sch = weft.Schedule(product(4, 8, 4), check="run")
    sch.transform_layout(sch.get_block("C"), ("read", 1), lambda i, j: [j, i])
    assert sch.checked == (0, 1)
    sch.parallel(sch.get_loops(sch.get_block("C"))[0])
    assert sch.checked == (1, 1)


def test_programs_it_cannot_run():
    with pytest.raises(weft.ScheduleError, match="smaller instance") as size:
        weft.Schedule(product(40, 40, 40), check="run", step_limit=1000)
    assert size.value.code == "schedule.check.size"
    n = te.var("n")
    A = te.placeholder((n,), "float32", name="A")
    f = te.create_prim_func([A, te.compute((n,), lambda i: A[i] + 1.0, name="B")])
    with pytest.raises(weft.ScheduleError) as symbolic:
        weft.Schedule(f, check="run")
    assert symbolic.value.code == "schedule.check.symbolic"
    with pytest.raises(weft.ArgumentError, match='"run" or None'):
        weft.Schedule(f, check="often")


def test_threads_are_run_too():
    @T.prim_func
    def main(A: T.Buffer((66,), "float32"), B: T.Buffer((64,), "float32")):
        for i in T.serial(64):
            with T.block("B"):
                vi = T.axis.spatial(64, i)
                B[vi] = A[vi] + A[vi + 1] + A[vi + 2]

    sch = weft.Schedule(main, check="run")
    block = sch.get_block("B")
    i0, i1 = sch.split(sch.get_loops(block)[0], [None, 16])
    sch.bind(i0, "blockIdx.x")
    sch.bind(i1, "threadIdx.x")
    cached = sch.cache_read(block, 0, "shared")
    sch.compute_at(cached, i1)
    assert sch.checked == (5, 0)
