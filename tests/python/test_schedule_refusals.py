# SPDX-License-Identifier: Apache-2.0
"""Refusals of schedule steps that other tests do not come by: the slug, what was found, an unchanged schedule."""

import pytest

import weft
from refusal import refused
from weft import script as T


def schedule(body, parameters):
    text = f"@T.prim_func\ndef main({parameters}):\n" + "".join(
        f"    {line}\n" for line in body.strip("\n").split("\n")
    )
    return weft.Schedule(T.from_source(text))


def two_stages(first="B[vi] = A[vi]", second="C[vi] = B[vi] * T.float32(2)", n=8, m=8, where=""):
    return schedule(
        f"""
B = T.alloc_buffer((8,), "float32")
for i in range({n}):
    with T.block("B"):
        vi = T.axis.spatial({n}, i)
        {first}
for j in range({m}):
    with T.block("C"):
        vi = T.axis.spatial({m}, j)
        {where or "pass"}
        {second}
""".replace("        pass\n", ""),
        'A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")',
    )


def sums(rows=6, depth=10):
    return schedule(
        f"""
for i, k in T.grid({rows}, {depth}):
    with T.block("C"):
        vi, vk = T.axis.remap("SR", [i, k])
        with T.init():
            C[vi] = T.float32(0)
        C[vi] = C[vi] + A[vi, vk]
""",
        f'A: T.Buffer(({rows}, {depth}), "float32"), C: T.Buffer(({rows},), "float32")',
    )


def check(sch, code, text, step):
    before = sch.mod
    error = refused(weft.ScheduleError, code, step)
    assert text in str(error), error
    assert weft.ir.structural_equal(sch.mod, before)


def test_blockize():
    sch = schedule(
        """
for i in range(8):
    with T.block("B"):
        vi = T.axis.spatial(8, i)
        B[vi] = A[vi]
    with T.block("C"):
        vi = T.axis.spatial(8, i)
        C[vi] = A[vi] + T.float32(1)
""",
        'A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")',
    )
    (i,) = sch.get_loops("B")
    check(sch, "schedule.blockize.blocks", "finds 2 blocks", lambda: sch.blockize(i))
    sch = schedule(
        """
for i, j in T.grid(4, 6):
    with T.block("C"):
        vi = T.axis.spatial(12, (i * 6 + j) // 2)
        vj = T.axis.spatial(2, (i * 6 + j) % 2)
        C[vi, vj] = A[vi, vj]
""",
        'A: T.Buffer((12, 2), "float32"), C: T.Buffer((12, 2), "float32")',
    )
    k = sch.fuse(*sch.get_loops("C"))
    _, inner = sch.split(k, [None, 3])
    check(sch, "schedule.blockize.divide", "do not divide into tiles", lambda: sch.blockize(inner))
    sch = schedule(
        """
for i, j in T.grid(3, 4):
    with T.block("C"):
        vi = T.axis.spatial(3, i)
        T.where(i * 4 + j < 10)
        C[vi] = A[vi]
""",
        'A: T.Buffer((3,), "float32"), C: T.Buffer((3,), "float32")',
    )
    _, j = sch.get_loops("C")
    check(sch, "schedule.blockize.predicate", "cuts through tiles", lambda: sch.blockize(j))


def test_caches_of_unfinished_data():
    sch = schedule(
        """
B = T.alloc_buffer((8,), "float32")
for o in range(2):
    for i in range(2):
        with T.block("B"):
            vi = T.axis.spatial(8, o * 4 + i)
            B[vi] = A[vi]
    for j in range(4):
        with T.block("C"):
            vi = T.axis.spatial(8, o * 4 + j)
            C[vi] = B[vi]
""",
        'A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")',
    )
    code, text = "schedule.cache_read.not_covered", "would copy unfinished data"
    check(sch, code, text, lambda: sch.cache_read("C", 0, "shared"))
    two_stages(n=4).cache_read("C", 0, "shared")  # a nest that is through: what there is is copied
    sch = two_stages(n=4)
    code, text = "schedule.cache_write.not_covered", "would hand over unfinished data"
    check(sch, code, text, lambda: sch.cache_write("B", 0, "shared"))


def test_inlining():
    code = "schedule.compute_inline.index"
    for shape, at, text in [
        ("2, 4", "vi // 4, vi % 4", "not distinct iterators"),
        ("1,", "0", 'depends on "vi"'),
    ]:
        sch = schedule(
            f"""
B = T.alloc_buffer(({shape}), "float32")
for i in range(8):
    with T.block("B"):
        vi = T.axis.spatial(8, i)
        B[{at}] = A[vi]
for i in range(8):
    with T.block("C"):
        vi = T.axis.spatial(8, i)
        C[vi] = B[{at}]
""",
            'A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")',
        )
        check(sch, code, text, lambda: sch.compute_inline("B"))
    sch = schedule(
        """
B = T.alloc_buffer((8,), "float32")
for i in range(8):
    with T.block("B"):
        vi = T.axis.spatial(8, i)
        B[vi] = A[vi]
""",
        'A: T.Buffer((8,), "float32")',
    )
    check(sch, "schedule.compute_inline.only", "the only one", lambda: sch.compute_inline("B"))
    view = 'V = T.match_buffer(B[vi:vi + 1], (1,), "float32")'
    sch = two_stages(second=f"{view}\n        C[vi] = V[0]")
    check(
        sch,
        "schedule.compute_inline.opaque",
        "other than by element",
        lambda: sch.compute_inline("B"),
    )


def test_reverse_inlining():
    sch = two_stages(second="C[vi] = B[vi] + B[7 - vi]")
    check(
        sch,
        "schedule.reverse_compute_inline.index",
        "does not read",
        lambda: sch.reverse_compute_inline("C"),
    )
    sch = two_stages(where="T.where(j < 5)")
    check(
        sch,
        "schedule.reverse_compute_inline.predicate",
        "whole iteration domain",
        lambda: sch.reverse_compute_inline("C"),
    )
    sch = schedule(
        """
B = T.alloc_buffer((8,), "float32")
for i in range(8):
    with T.block("B"):
        vi = T.axis.spatial(8, i)
        B[vi] = A[vi]
for i in range(8):
    with T.block("C"):
        vi = T.axis.spatial(8, i)
        C[vi] = B[vi]
for i in range(8):
    with T.block("D"):
        vi = T.axis.spatial(8, i)
        D[vi] = B[vi]
""",
        'A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32"), D: T.Buffer((8,), "float32")',
    )
    check(
        sch,
        "schedule.reverse_compute_inline.shared",
        "used by others",
        lambda: sch.reverse_compute_inline("C"),
    )


def test_rfactor():
    sch = sums()
    _, k = sch.get_loops("C")
    fused = sch.fuse(*sch.get_loops("C"))
    check(sch, "schedule.rfactor.mixed", "spatial and reduction", lambda: sch.rfactor(fused, 0))
    sch = sums()
    _, k = sch.get_loops("C")
    outer, _ = sch.split(k, [4, 4])
    check(sch, "schedule.rfactor.predicate", "may be empty", lambda: sch.rfactor(outer, 0))
    sch = two_stages()
    (i,) = sch.get_loops("B")
    check(sch, "schedule.rfactor.block", "it has no init", lambda: sch.rfactor(i, 0))
    nested = """
B = T.alloc_buffer((8,), "float32")
for k in range(4):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
    for i, r in T.grid(8, 2):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            vk = T.axis.reduce(8, k * 2 + r)
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + B[vi]
"""
    parameters = 'A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")'
    sch = schedule(nested, parameters)
    k, _, r = sch.get_loops("C")
    check(sch, "schedule.rfactor.nest", "has other blocks inside", lambda: sch.rfactor(r, 0))
    check(sch, "schedule.rfactor.blocks", "there are 2", lambda: sch.rfactor(k, 0))
    sch = schedule(nested.replace("A[vi]", "C[vi]"), parameters)
    _, _, r = sch.get_loops("C")
    check(sch, "schedule.rfactor.pipeline", "data only flows forward", lambda: sch.rfactor(r, 0))


def test_tiles_of_loops_without_constant_extent():
    sch = schedule(
        """
for i in range(n):
    with T.block("C"):
        vi = T.axis.spatial(n, i)
        C[vi] = A[vi]
""",
        'n: T.int64, A: T.Buffer(("n",), "float32"), C: T.Buffer(("n",), "float32")',
    )
    (i,) = sch.get_loops("C")
    code = "schedule.sample_perfect_tile.extent"
    check(sch, code, "constant extent", lambda: sch.sample_perfect_tile(i, 2))


def test_layouts():
    sch = schedule(
        """
for i in range(8):
    with T.block("C"):
        vi = T.axis.spatial(8, i)
        V = T.match_buffer(A[vi:vi + 1], (1,), "float32")
        C[vi] = V[0]
""",
        'A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")',
    )
    code = "schedule.transform_layout.view"
    check(
        sch,
        code,
        "takes a view",
        lambda: sch.transform_layout("C", ("read", 0), lambda i: (i // 2, i % 2)),
    )
    sch = two_stages()
    (j,) = sch.get_loops("C")
    sch.compute_at("B", j)
    code = "schedule.transform_layout.place"
    check(
        sch,
        code,
        "no place for the padding",
        lambda: sch.transform_layout("B", ("write", 0), lambda i: (i // 3, i % 3), pad_value=0.0),
    )


def test_initialisations_that_may_not_run():
    sch = schedule(
        """
for i, k in T.grid(8, 4):
    with T.block("C"):
        vi = T.axis.spatial(8, i)
        vk = T.axis.reduce(4, k)
        T.where(i * 4 + k < 30)
        with T.init():
            C[vi] = T.float32(0)
        C[vi] = C[vi] + A[vi]
""",
        'A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")',
    )
    _, k = sch.get_loops("C")
    code = "schedule.decompose_reduction.predicate"
    check(sch, code, "", lambda: sch.decompose_reduction("C", k))


def test_inlining_does_not_grow_without_end():
    """Stages that read the one before twice: each that disappears doubles the next."""
    from weft import te

    a = te.placeholder((8,), "float32", name="A")
    x, stages = a, 16
    for k in range(stages):
        x = te.compute((8,), lambda i, p=x: p[i] + p[i], name=f"B{k}")
    sch = weft.Schedule(te.create_prim_func([a, x]))
    done = 0
    with pytest.raises(weft.ScheduleError):
        for done in range(stages - 1):
            sch.compute_inline(f"B{done}")
    assert 10 <= done <= 13
    code = "schedule.compute_inline.size"
    check(
        sch,
        code,
        "expressions, which each use would repeat",
        lambda: sch.compute_inline(f"B{done}"),
    )
