# SPDX-License-Identifier: Apache-2.0
"""What the first call of a graph measured, kept on disk for later processes.

An entry belongs to one graph, with the versions, the device and the number of threads that it was measured with. With it, a
process builds and runs only what was chosen: nothing is built to be compared.
"""

from __future__ import annotations

import functools
import json
import os

import torch

import weft

from .. import _core
from .choices import SIDES, Cost


@functools.lru_cache(maxsize=1)
def _library():
    """The files that decide what weft computes and how: another build measures again."""
    folder = os.path.dirname(os.path.abspath(__file__))
    files = [_core.__file__]
    for at, _, names in os.walk(folder):
        files += [os.path.join(at, name) for name in names if name.endswith(".py")]
    return [(name, s.st_size, s.st_mtime_ns) for name in sorted(files) for s in [os.stat(name)]]


def _device(home):
    if home.type != "cuda":
        return home.type
    found = torch.cuda.get_device_properties(home)
    return f"{found.name} {found.major}.{found.minor} {found.total_memory}"


def key_of(program):
    """The text that an entry is found by."""
    options = program.options
    facts = [
        weft.__version__, _library(), torch.__version__, _device(program.home), torch.get_num_threads(), weft.get_threads(),
        options.patient, options.graphs, options.prefer, str(torch.backends.cuda.matmul.allow_tf32),
        str(torch.backends.cudnn.allow_tf32), torch.backends.cudnn.benchmark,
    ]  # fmt: skip
    return "\n".join(["torch.compile 1", json.dumps(facts), *map(program.kind_of, program.steps)])


def recall(program):
    """Sets costs, refusals and sides of all steps as they were found before; False where nothing is known."""
    content = _core._load_cached(key_of(program))
    if content is None:
        return False
    try:
        last, rows = json.loads(content)
        found = [
            (str(where), bool(able), str(reason), {side: Cost(float(h), float(d)) for side, (h, d) in costs.items() if side in SIDES})
            for where, able, reason, costs in rows
        ]  # fmt: skip
    except (ValueError, TypeError, AttributeError):
        return False
    if len(found) != len(program.steps):
        return False
    if program.graph.layout:
        program.graph.layout.last = bool(last)
    for step, (where, able, reason, costs) in zip(program.steps, found):
        step.costs = costs
        if step.where == "weft" and where == "torch":
            step.where, step.able, step.reason = where, able, reason
    return True


def keep(program):
    """Keeps what this process found, where the disk takes it."""
    rows = [
        (step.where, step.able, step.reason, {side: (c.host, c.device) for side, c in step.costs.items()})
        for step in program.steps
    ]  # fmt: skip
    last = program.graph.layout is not None and program.graph.layout.last
    try:
        _core._store_cached(key_of(program), json.dumps([last, rows]).encode())
    except weft.Error:
        pass  # a full or foreign disk: the next process measures again
