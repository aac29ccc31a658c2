# SPDX-License-Identifier: Apache-2.0
"""Sketches: general shapes of schedules whose open decisions the search fills in.

A sketch is a function ``apply(draw, sch)``. It asks ``draw(name, choices)`` for each decision and takes the steps; the
answers are recorded by name, so the same answers give the same schedule; the first choice is the one that is tried
first. Processors and machines with blocks and threads: the rules of src/weft/rules, their decisions open; others: machines.py.
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


def sketches_for(target):
    """Sketches by name. Targets without one are measured with their own default schedule only."""
    from .machines import machine_sketches

    machine = machine_sketches(target)
    if machine or not _core.opens_schedules(target):
        return machine
    return {"rules": rules_of(target)}
