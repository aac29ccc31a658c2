# SPDX-License-Identifier: Apache-2.0
"""Sketches for machines without a grid: the decisions of their default schedules, left open. What they find is judged by
simulated cycles, which are the same in every run."""

import json
import math

import weft
from weft import _core

from .sketches import blocks_of, divisors, inline, rules_of

LANES = 16


# ---- QPU


def _qpus(target):
    return weft.device(target).limits["qpus"]


def _qpu_block(draw, sch, block, tag, qpus):
    """Lanes along a drawn loop, results divided among the QPUs, rows of a tile that share what they read."""
    ways = [k for k in range(len(block.loops)) if block.extents[k] > 1]
    # Side by side in memory is most often the last axis.
    spatial = [k for k in reversed(block.spatial) if k in ways]
    lane = draw(f"{tag}.lane", spatial + [k for k in block.reduce if k in ways])
    others = [k for k in block.spatial if k != lane]
    tile = draw(f"{tag}.rows", divisors(block.extents[others[-1]], 8)[::-1]) if others and block.reduce and lane in block.spatial else 1  # fmt: skip
    chunk, vector = sch.split(block.loops[lane], [None, LANES])
    outer = [block.loops[k] for k in others]
    inner = []
    if tile > 1:
        outer[-1], rows = sch.split(outer[-1], [None, tile])
        inner = [rows]
    sums = [block.loops[k] for k in block.reduce if k != lane]
    count = math.prod(block.extents[k] for k in others) // tile
    if lane in block.spatial:
        chunks = math.ceil(block.extents[lane] / LANES)
        # Whether chunks of the lanes' loop are shared out too, or run on one QPU after the other.
        if draw(f"{tag}.chunks", [1, 0]) or not outer:
            outer, count = [*outer, chunk], count * chunks
        else:
            inner = [chunk, *inner]
        order = [*outer, *inner, vector, *sums]
    else:
        order = [*outer, *inner, *sums, chunk, vector]
    if not outer:
        sch.bind(vector, "lane")
        return
    sch.reorder(*order)
    whole = sch.fuse(*outer) if len(outer) > 1 else outer[0]
    near = draw(f"{tag}.near", [0, 1])  # neighbours on one QPU, or on QPUs side by side
    parts = min(qpus, count)
    shares = sch.split(whole, [parts, None] if near else [None, parts])
    bound, rest = shares if near else shares[::-1]
    if not near:
        sch.reorder(bound, rest)
    sch.bind(bound, "qpu")
    sch.bind(vector, "lane")


def _qpu(target):
    def apply(draw, sch):
        inline(draw, sch)
        qpus = _qpus(target)
        for position, block in enumerate(blocks_of(sch)):
            if block.plain and block.loops:
                _qpu_block(draw, sch, block, f"b{position}", qpus)

    return apply


# ---- wafer


def _wafer(target):
    limits = weft.device(target).limits

    def apply(draw, sch):
        inline(draw, sch)
        for position, block in enumerate(blocks_of(sch)):
            if not block.plain or not block.spatial:
                continue
            tag, left = f"b{position}", list(block.spatial)
            for axis, size in (("pe.y", limits["height"]), ("pe.x", limits["width"])):
                choices = [k for k in left if block.extents[k] > 1]
                k = draw(f"{tag}.{axis}", [*(k + 1 for k in choices), 0]) - 1  # 0: along no loop
                if k < 0:
                    continue
                left.remove(k)
                parts = draw(f"{tag}.{axis}.parts", [p for p in range(min(size, block.extents[k]), 0, -1) if block.extents[k] % p == 0])  # fmt: skip
                outer, _ = sch.split(block.loops[k], [parts, None])
                sch.bind(outer, axis)

    return apply


# ---- where schedules begin


def replayed(program, target, trace):
    """The schedule of a candidate of `program`. The steps of a target whose default schedules begin at another form of the
    program (`Schedule.start`: a packed function) are repeated on that."""
    if target.partition(":")[0] == "vta" and json.loads(trace)["steps"]:
        opened = _core.open_schedule(program._core, target, lambda _, options: options[0])
        if opened is not None:
            program = weft.Schedule(opened).start
    return weft.Schedule.replay(program, trace)


def machine_sketches(target):
    """Sketches by name for a machine; none for other targets."""
    make = {"qpu": _qpu, "wse": _wafer, "vta": rules_of}.get(target.partition(":")[0])
    return {target.partition(":")[0]: make(target)} if make else {}
