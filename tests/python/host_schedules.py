# SPDX-License-Identifier: Apache-2.0
"""Schedules of one statement on a host by numbers: those that tune_measured.json holds times of."""

import weft
from weft.tuning.sketches import blocks_of


def _tile(knobs, sch, block):
    """Parallel tiles, the reduction in pieces, accumulators in registers, vectors along the last axis."""
    write = knobs["b0.accumulators"]
    local = sch.cache_write(block.ref, 0, "local") if write else None
    loops = sch.get_loops(block.ref)
    outer, middle, inner = [], [], []
    for k in block.spatial:
        small = knobs[f"b0.s{k}"]
        mid = knobs[f"b0.m{k}"]
        a, b, c = sch.split(loops[k], [None, mid, small])
        outer.append(a), middle.append(b), inner.append(c)
    long, short = [], []
    for k in block.reduce:
        a, b = sch.split(loops[k], [None, knobs[f"b0.r{k}"]])
        long.append(a), short.append(b)
    order = knobs["b0.order"]
    if order == "SRSRS":
        sch.reorder(*outer, *long, *middle, *short, *inner)
        at = outer[-1]
    else:
        sch.reorder(*outer, *middle, *long, *short, *inner)
        at = middle[-1]
    if local is not None:
        sch.reverse_compute_at(local, at)
        sch.vectorize(sch.get_loops(local)[-1])
    init = sch.decompose_reduction(block.ref, long[0])
    unroll = knobs["b0.unroll"]
    for ref in (block.ref, init):
        tail = sch.get_loops(ref)[-len(block.spatial) :]
        sch.vectorize(tail[-1])
        if unroll:
            for loop in tail[:-1]:
                sch.unroll(loop)
    if knobs["b0.parallel"]:
        sch.parallel(outer[0])


def _packed_operand(sch, ref, names, last, reduce, lead, columns):
    """A copy of the operand that runs along the last axis, in panels of `columns`; None when no operand has that form."""
    column = names[last]
    for before in ([], [names[k] for k in lead]):
        inside = [names[k] for k in reduce]
        index = ", ".join([*before, f"{column} // {columns}", *inside, f"{column} % {columns}"])
        for read in range(len(sch.get(ref)["reads"])):
            try:
                return sch.reindex_cache_read(
                    ref, read, "global", f"lambda {', '.join(names)}: ({index})"
                )
            except weft.ScheduleError:
                continue  # the other operand, or one with other axes
    return None


def _packed(knobs, sch, block):
    """A product: the operand along the last axis in panels that stay in the second cache, accumulators in registers."""
    ref, last = block.ref, block.spatial[-1]
    names = [f"x{k}" for k in range(len(block.extents))]
    columns = knobs["b0.columns"]
    missing = -block.extents[last] % columns
    if missing:
        *_, out = sch.pad_einsum(ref, [missing if k == last else 0 for k in range(len(names))])
        sch.set_scope(ref, 0, "local")
    else:
        out = sch.cache_write(ref, 0, "local")
    packed = _packed_operand(sch, ref, names, last, block.reduce, block.spatial[:-2], columns)
    loops = sch.get_loops(ref)
    panel = knobs["b0.panel"]
    height = block.spatial[-2]
    rows = knobs["b0.rows"]
    jc, j0, j1 = sch.split(loops[last], [None, panel, columns])
    i0, i1 = sch.split(loops[height], [None, rows])
    lead = [loops[k] for k in block.spatial[:-2]]
    inner = [loops[k] for k in block.reduce]
    sch.reorder(*lead, jc, i0, j0, *inner, i1, j1)
    if packed is not None:
        sch.compute_at(packed, jc)
        axes = sch.get_loops(packed)[len(lead) + 1 :]
        across = axes[-1 - len(block.reduce)] if len(axes) > len(block.reduce) else None
        if across is not None:
            outer, lanes = sch.split(across, [None, columns])
            sch.reorder(outer, *axes[-len(block.reduce) :], lanes)
            sch.vectorize(lanes)
    sch.reverse_compute_at(out, j0, preserve_unit_loops=True)
    ci, cj = sch.get_loops(out)[-2:]
    init = sch.decompose_reduction(ref, inner[0])
    ii, ij = sch.get_loops(init)[-2:]
    for outer, lanes in ((i1, j1), (ci, cj), (ii, ij)):
        sch.unroll(outer)
        sch.vectorize(lanes)
    if knobs["b0.parallel"]:
        sch.parallel((lead or [jc])[0])


def _rfactor(knobs, sch, block):
    """Pieces of the reduction in parallel, each in a vector of partial results."""
    loops = [block.loops[k] for k in block.reduce]
    fused = sch.fuse(*loops) if len(loops) > 1 else loops[0]
    vector = knobs["b0.lanes"]
    pieces = knobs["b0.pieces"]
    if pieces * vector == 1:
        return  # no partial results: the block stays
    p, m, v = sch.split(fused, [pieces, None, vector])
    sch.reorder(p, v, m)
    partial = sch.rfactor(sch.fuse(p, v), 0)
    inner = sch.get_loops(partial)
    pv, m = inner[-2], inner[-1]
    p, v = sch.split(pv, [pieces, vector])
    sch.reorder(p, m, v)
    init = sch.decompose_reduction(partial, m)
    if vector > 1:
        sch.vectorize(v)
        sch.vectorize(sch.get_loops(init)[-1])
    if pieces > 1:
        sch.parallel(p)


def schedule(sch, knobs):
    """The steps that the numbers stand for, of the only statement of a program."""
    (block,) = blocks_of(sch)
    {"tile": _tile, "packed": _packed, "rfactor": _rfactor}[knobs["b0.way"]](knobs, sch, block)
