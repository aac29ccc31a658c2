# SPDX-License-Identifier: Apache-2.0
"""Kernels of a graph's steps built side by side, before the first call runs the steps one after another.

Building a kernel takes longer than running it, needs no result of another step, and keeps one core busy. So each kind of
step runs once on zeros, beside others; what was built is found by the first call. A step's own kernels are compiled beside
each other too, by threads of the library. While they are, its thread waits, so there are twice as many threads as cores.
"""

from __future__ import annotations

import concurrent.futures
import os
import threading

import torch

from .. import _core
from .rules import refusal

_MOST_BYTES = 1 << 30  # of one step's zeros; larger steps are built when they run
_built, _lock = set(), threading.Lock()


def _zeros(v):
    """What stands for a value: all bytes zero, an index that every axis has."""
    if v.constant is not None:
        return v.constant
    fake = v.fake
    made = torch.empty_strided(fake.shape, fake.stride(), dtype=fake.dtype, device=fake.device)
    return made.zero_()


def _bytes(step):
    values = [*step.unit.inputs, *step.unit.outputs]
    return sum(v.fake.numel() * v.fake.element_size() for v in values)


def _suits(step):
    """Steps on weft of moderate size, with elements: index 0 lies beyond an empty axis."""
    return (
        step.where == "weft"
        and _bytes(step) <= _MOST_BYTES
        and all(v.fake.numel() for v in step.unit.inputs)
    )


def _build(program, step):
    """Runs the step on zeros; what that raised, or None."""
    try:
        arrays = {v.id: program.bridge.to_weft(_zeros(v)) for v in step.unit.inputs}
        _core._build_together(program.like_array(), lambda: step.on_weft(lambda v: arrays[v.id]))
    except Exception as raised:  # the step is tried again when it runs
        return raised
    return None


def build_kernels(program):
    """Builds the kernels of the steps that may run on a device with a grid.

    {kind of step: what building it raised, or None}, of the kinds that were built.
    """
    if not _core._has_grid(program.like_array()):
        return {}
    kinds = {program.kind_of(step): step for step in program.steps if _suits(step)}
    with _lock:
        new = {kind: step for kind, step in kinds.items() if kind not in _built}
        _built.update(kinds)
    if len(new) < 2:
        return {}
    workers = min(len(new), 2 * len(os.sched_getaffinity(0)), 48)
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        return dict(zip(new, pool.map(lambda step: _build(program, step), new.values())))


def note_faults(program, built):
    """Adds what `build_kernels` raised to the program's faults, after the steps have run.

    The first call meets a refusal of weft again and gives it to the step. Where the step runs on weft all the same, or was
    refused for another reason, something is wrong with the building.
    """
    raised = {kind: refusal(fault) for kind, fault in built.items() if fault is not None}
    with _lock:
        _built.difference_update(raised)  # another program tries them again
    for step in program.steps if raised else ():
        text = raised.get(program.kind_of(step))
        if text is not None and (step.where == "weft" or step.reason != text):
            names = ", ".join(dict.fromkeys(op.name for op in step.unit.ops))
            program.faults.append(f"kernels of {names}, built before the step ran: {text}")
    program.faults = list(dict.fromkeys(program.faults))
