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
    try:
        arrays = {v.id: program.bridge.to_weft(_zeros(v)) for v in step.unit.inputs}
        _core._build_together(program.like_array(), lambda: step.on_weft(lambda v: arrays[v.id]))
    except Exception:  # noqa: S110 - the first call meets the same refusal, and reports it
        pass


def build_kernels(program):
    """Builds the kernels of the steps that may run on a device with a grid. The number of steps that were built."""
    if not _core._has_grid(program.like_array()):
        return 0
    kinds = {program.kind_of(step): step for step in program.steps if _suits(step)}
    with _lock:
        new = [step for kind, step in kinds.items() if kind not in _built]
        _built.update(kinds)
    if len(new) > 1:
        workers = min(len(new), 2 * len(os.sched_getaffinity(0)), 48)
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            list(pool.map(lambda step: _build(program, step), new))
    return len(new)
