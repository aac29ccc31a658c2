# SPDX-License-Identifier: Apache-2.0
"""What a nest provably makes before others read it: legal where everything is made, refused where an element may be missing."""

import pytest

import weft
from weft import script as T
from weft import te


def moved(program, block="B", to="R"):
    """compute_at of the writer of B to its reader asks whether B is made in time."""
    sch = weft.Schedule(program)
    sch.compute_at(block, sch.get_loops(sch.get_block(to))[0])
    assert len(sch.get_loops(sch.get_block(block))) > 1
    return sch


def program(writes, extents, reads="vi, vj", shape=(8, 12)):
    """B is written at `writes` by loops of `extents`, and read at `reads` by the block R; M is another producer of C."""
    names = [f"v{k}" for k in range(len(extents))]
    loops = ", ".join(f"w{k}" for k in range(len(extents)))
    text = f"""
@T.prim_func
def main(A: T.Buffer({shape}, "float32"), C: T.Buffer({shape}, "float32"), D: T.Buffer({shape}, "float32")):
    B = T.alloc_buffer({shape}, "float32")
    E = T.alloc_buffer({shape}, "float32")
    for {loops} in T.grid({", ".join(map(str, extents))}):
        with T.block("B"):
            {", ".join(names)} = T.axis.remap("{"S" * len(names)}", [{loops}])
            B[{writes}] = A[{writes}] * T.float32(2)
    for i, j in T.grid{shape}:
        with T.block("M"):
            vi, vj = T.axis.remap("SS", [i, j])
            E[vi, vj] = A[vi, vj] + T.float32(1)
    for i, j in T.grid{shape}:
        with T.block("R"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = B[{reads}]
    for i, j in T.grid{shape}:
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = E[vi, vj]
"""
    return T.from_source(text)


WHOLE = {
    "rows and columns": ("v0, v1", (8, 12)),
    "columns first": ("v1, v0", (12, 8)),
    "in tiles": ("v0 * 4 + v1, v2 * 3 + v3", (2, 4, 4, 3)),
    "overlapping windows": ("v0, v1 * 2 + v2", (8, 5, 4)),
}
PART = {
    "every second column": ("v0, v1 * 2", (8, 6)),
    "one row less": ("v0, v1", (7, 12)),
    "one column less": ("v0, v1", (8, 11)),
    "not from the first row on": ("v0 + 1, v1", (7, 12)),
    "a gap between tiles": ("v0, v1 * 4 + v2", (8, 3, 3)),
    "the first and the last column": ("v0, v1 * 11", (8, 2)),
    "a diagonal": ("v0, v0", (12,), "vi, vj", (12, 12)),
}


@pytest.mark.parametrize("name", WHOLE)
def test_what_is_made_as_a_whole_covers_all_readers(name):
    moved(program(*WHOLE[name]))


@pytest.mark.parametrize("name", PART)
def test_what_may_be_missing_is_not_read(name):
    with pytest.raises(weft.ScheduleError) as refused:
        moved(program(*PART[name]))
    assert refused.value.code == "schedule.compute_at.pipeline"
    assert '"R" reads more of "B" than "B" provably finishes' in str(refused.value)


@pytest.mark.parametrize("name", PART)
def test_a_step_asks_only_about_nests_that_it_touches(name):
    """What R reads does not depend on where M stands."""
    moved(program(*PART[name]), "M", "C")


def test_a_part_serves_those_who_read_no_more():
    moved(program("v0, v1", (4, 12), reads="vi % 4, vj"))
    with pytest.raises(weft.ScheduleError, match="reads more"):
        moved(program("v0, v1", (4, 12), reads="vi % 5, vj"))


def padded(h=30, channels=40, missing=0):
    """A border of zeros in a fused loop that its pieces do not divide: too many elements to be counted."""
    x = te.placeholder((channels, h, h), name="X")
    b = te.compute((channels, h, h), lambda c, i, j: x[c, i, j] * 2.0, name="B")
    m = te.compute((channels, h, h), lambda c, i, j: x[c, i, j] + 1.0, name="M")
    d = te.compute((channels, h, h), lambda c, i, j: b[c, i, j] + 1.0, name="D")
    c = te.compute((channels, h, h), lambda c, i, j: m[c, i, j] * 3.0, name="C")
    sch = weft.Schedule(te.create_prim_func([x, d, c]))
    sch.split(sch.fuse(*sch.get_loops(sch.get_block("B"))), [None, 1024])
    return sch


def test_digits_of_a_number_that_a_condition_ends_are_all_made():
    sch = padded()
    sch.cache_write("B", 0, "local")
    assert "B_local" in sch.script()


def test_digits_of_a_number_that_ends_too_early_are_not():
    """The same program with the last piece left out."""
    text = padded().script()
    assert text.count("36000") >= 1
    sch = weft.Schedule(T.from_source(text.replace("< 36000", "< 35999")))
    with pytest.raises(weft.ScheduleError) as refused:
        sch.cache_write("B", 0, "local")
    assert refused.value.code == "schedule.cache_write.not_covered"


def test_what_was_proved_is_asked_again_where_a_nest_has_changed():
    """Copies of a schedule share what is known of nests; a nest that a step changed is another one."""
    first = weft.Schedule(program("v0, v1", (8, 12)))
    for _ in range(2):
        copy = first.copy()
        copy.compute_at("B", copy.get_loops(copy.get_block("R"))[0])
    other = first.copy()
    other.loop_partition(other.get_loops(other.get_block("B"))[0], [3, None])
    with pytest.raises(weft.ScheduleError):
        other.compute_at("B", other.get_loops(other.get_block("R"))[0])


def in_order(*blocks):
    """Nests over eight elements: a name and a statement for each."""
    text = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32"), D: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((8,), "float32")
"""
    for name, statement in blocks:
        text += f"""
    for i in range(8):
        with T.block("{name}"):
            vi = T.axis.spatial(8, i)
            {statement}
"""
    return weft.Schedule(T.from_source(text))


def test_a_block_does_not_move_past_one_that_overwrites_what_it_reads():
    blocks = ("B", "B[vi] = A[vi] * T.float32(2)"), ("C", "C[vi] = B[vi] + T.float32(1)")
    between = ("T", "A[vi] = T.float32(0)")
    sch = in_order(blocks[0], between, blocks[1])
    with pytest.raises(weft.ScheduleError, match="overwrites") as refused:
        sch.compute_at("B", sch.get_loops("C")[0])
    assert refused.value.code == "schedule.compute_at.pipeline"
    for legal in ((between, *blocks), (*blocks, between)):
        sch = in_order(*legal)
        sch.compute_at("B", sch.get_loops("C")[0])


def test_a_block_does_not_move_before_one_that_reads_what_it_overwrites():
    blocks = ("B", "B[vi] = A[vi] * T.float32(2)"), ("C", "C[vi] = B[vi] + T.float32(1)")
    between = ("T", "D[vi] = C[vi] * T.float32(3)")
    sch = in_order(blocks[0], between, blocks[1])
    with pytest.raises(weft.ScheduleError, match="overwrites") as refused:
        sch.reverse_compute_at("C", sch.get_loops("B")[0])
    assert refused.value.code == "schedule.reverse_compute_at.pipeline"
    for legal in ((between, *blocks), (*blocks, between)):
        sch = in_order(*legal)
        sch.reverse_compute_at("C", sch.get_loops("B")[0])
