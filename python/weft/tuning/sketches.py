# SPDX-License-Identifier: Apache-2.0
"""Sketches: general shapes of schedules whose open decisions the search fills in.

A sketch is a function ``apply(draw, sch)``. It asks ``draw(name, choices)`` for each decision and takes the steps; the
answers are recorded by name, so the same answers give the same schedule; the first choice is the one that is tried
first. On the host: vectors and parallel loops, products with a packed operand, register tiles in several levels, rfactor for reductions without enough other work. On machines with blocks and threads:
bound loops, tiles with operands in shared memory fetched together, reductions across threads.
"""

import math

import weft
from weft import _core


def divisors(n, most):
    """Divisors of n up to `most`; when there are few, powers of two join them (a remainder is predicated)."""
    out = [d for d in range(1, min(n, most) + 1) if n % d == 0]
    if len(out) < 3:
        out = sorted({*out, *(1 << k for k in range(1, 12) if 1 << k <= min(n, most))})
    return out


class Block:
    """A block, its loops by kind, and its extents."""

    def __init__(self, sch, ref):
        self.ref, self.view, self.loops = ref, sch.get(ref), sch.get_loops(ref)
        kinds = [i["kind"] for i in self.view["iters"]]
        self.plain = len(kinds) == len(self.loops) and all(
            isinstance(i["extent"], int) and sch.get(loop)["extent"] == i["extent"]
            for i, loop in zip(self.view["iters"], self.loops)
        )
        self.extents = [i["extent"] for i in self.view["iters"]]
        self.spatial = [k for k, kind in enumerate(kinds) if kind == "S"]
        self.reduce = [k for k, kind in enumerate(kinds) if kind == "R"]

    def volume(self, axes):
        return math.prod(self.extents[k] for k in axes)


def blocks_of(sch):
    """Blocks directly in the function's root block, in order."""
    return [Block(sch, ref) for ref in sch.get_child_blocks(sch.get_block("root"))]


def inline(draw, sch):
    """Elementwise producers disappear into their consumers where that is legal."""
    refs = sch.get_child_blocks(sch.get_block("root"))
    if len(refs) < 2 or not draw("inline", [1, 0]):
        return
    for ref in refs:
        block = Block(sch, ref)
        if block.reduce or not sch.get_consumers(ref):
            continue
        try:
            sch.compute_inline(ref)
        except weft.ScheduleError:
            pass  # several reads at other places: it stays


# ---- the host


def host_map(draw, sch, block, tag):
    """All loops as one, in vectors, in parallel pieces."""
    fused = sch.fuse(*block.loops) if len(block.loops) > 1 else block.loops[0]
    total = block.volume(block.spatial)
    vector = draw(f"{tag}.vector", [v for v in (64, 32, 16, 8, 4, 1) if v <= total])
    outer, inner = sch.split(fused, [None, vector])
    chunks = math.ceil(total / vector)
    pieces = draw(f"{tag}.pieces", [p for p in (1, 2, 4, 8, 16, 64) if p <= chunks])
    if pieces > 1:
        outer, _ = sch.split(outer, [pieces, None])
        sch.parallel(outer)
    if vector > 1:
        sch.vectorize(inner)


def host_tile(draw, sch, block, tag):
    """Parallel tiles, the reduction in pieces, accumulators in registers, vectors along the last axis."""
    write = draw(f"{tag}.accumulators", [1, 0])
    local = sch.cache_write(block.ref, 0, "local") if write else None
    loops = sch.get_loops(block.ref)
    outer, middle, inner = [], [], []
    for k in block.spatial:
        last = k == block.spatial[-1]
        small = draw(f"{tag}.s{k}", divisors(block.extents[k], 64 if last else 8))
        rest = math.ceil(block.extents[k] / small)
        mid = draw(f"{tag}.m{k}", divisors(rest, 32))
        a, b, c = sch.split(loops[k], [None, mid, small])
        outer.append(a), middle.append(b), inner.append(c)
    long, short = [], []
    for k in block.reduce:
        a, b = sch.split(loops[k], [None, draw(f"{tag}.r{k}", divisors(block.extents[k], 64))])
        long.append(a), short.append(b)
    order = draw(f"{tag}.order", ["SRSRS", "SSRRS"])
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
    unroll = draw(f"{tag}.unroll", [1, 0])
    for ref in (block.ref, init):
        tail = sch.get_loops(ref)[-len(block.spatial) :]
        sch.vectorize(tail[-1])
        if unroll:
            for loop in tail[:-1]:
                sch.unroll(loop)
    if draw(f"{tag}.parallel", [1, 0]):
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


def host_packed(draw, sch, block, tag):
    """A product: the operand along the last axis in panels that stay in the second cache, accumulators in registers."""
    ref, last = block.ref, block.spatial[-1]
    names = [f"x{k}" for k in range(len(block.extents))]
    columns = draw(f"{tag}.columns", [16, 32, 8])
    missing = -block.extents[last] % columns
    if missing:
        *_, out = sch.pad_einsum(ref, [missing if k == last else 0 for k in range(len(names))])
        sch.set_scope(ref, 0, "local")
    else:
        out = sch.cache_write(ref, 0, "local")
    packed = _packed_operand(sch, ref, names, last, block.reduce, block.spatial[:-2], columns)
    loops = sch.get_loops(ref)
    tiles = math.ceil(block.extents[last] / columns)
    panel = draw(f"{tag}.panel", [p for p in (4, 2, 8, 16, 1) if p <= tiles])
    height = block.spatial[-2]
    rows = draw(f"{tag}.rows", [r for r in (6, 4, 8, 2, 1) if r <= block.extents[height]])
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
    if draw(f"{tag}.parallel", [1, 0]):
        sch.parallel((lead or [jc])[0])


def host_rfactor(draw, sch, block, tag):
    """Pieces of the reduction in parallel, each in a vector of partial results."""
    loops = [block.loops[k] for k in block.reduce]
    total = block.volume(block.reduce)
    fused = sch.fuse(*loops) if len(loops) > 1 else loops[0]
    # A partial result needs whole pieces: rfactor refuses a predicate on the reduction.
    vector = draw(f"{tag}.lanes", [v for v in range(1, 65) if total % v == 0])
    pieces = draw(f"{tag}.pieces", [p for p in range(1, 65) if total // vector % p == 0])
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


# ---- machines with blocks and threads: the rules of src/weft/rules, their decisions open


def rules_of(target):
    """The default schedule of `target`, each decision of its rules drawn; what the rules would take is the first choice."""

    opened = None  # of one program, for all its candidates

    def apply(draw, sch):
        nonlocal opened
        if opened is None or not opened.begins(sch._core):
            opened = _core.OpenSchedule(sch.func._core, target)
        made = opened(draw)
        if made is not None:  # a program that has a schedule stays as it is
            sch._core = made
            sch.expected = getattr(draw, "expected", 0.0)

    return apply


def _for_blocks(pick):
    """A sketch that schedules each block with what `pick(draw, block, tag)` chooses for it."""

    def apply(draw, sch):
        inline(draw, sch)
        for position, block in enumerate(blocks_of(sch)):
            if block.plain and block.loops:
                pick(draw, block, f"b{position}")(draw, sch, block, f"b{position}")

    return apply


def _pick_host(draw, block, tag):
    if not block.reduce:
        return host_map
    if not block.spatial or block.volume(block.spatial) < 16:
        return host_rfactor
    ways = {"tile": host_tile, "rfactor": host_rfactor}
    if len(block.spatial) > 1 and len(block.view["reads"]) == 2:
        ways = {"packed": host_packed, **ways}
    return ways[draw(f"{tag}.way", list(ways))]


def sketches_for(target):
    """Sketches by name. Targets without one are measured with their own default schedule only."""
    name = target.partition(":")[0]
    if name in ("cpu", "c"):
        return {"host": _for_blocks(_pick_host)}
    if _core.target_has_rules(target):
        return {"rules": rules_of(target)}
    from .machines import machine_sketches

    return machine_sketches(target)
