# SPDX-License-Identifier: Apache-2.0
"""The choice of sides by whole programs.

A step that is timed alone finds its operands in the caches and leaves its results there, so the sum of steps is an
estimate. The choices that are best by the estimate, and the one with all on torch, are timed as whole programs.
"""

from __future__ import annotations

import torch

from .choices import KeptNumbers, apply, as_later_calls, candidates, fastest, measure_whole
from .mutation import changed_inputs
from .rules import refusal

_MOST = 4  # choices that are compared


def _may_repeat(program):
    """Whether a call has no effects but on the inputs it changes: operators of others may have any."""
    return all(op.name.startswith(("aten.", "prims.")) for op in program.graph.ops)


def _own_copies(program, given):
    """The arguments, with copies of those that the program changes."""
    changed = changed_inputs(program.graph)
    copy = lambda t: torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=t.device).copy_(
        t
    )  # noqa: E731
    return [copy(a) if i in changed else a for i, a in enumerate(given)]


def _note(program, raised):
    """Keeps what ended a comparison of whole programs for `explain`; no room for a second set of results is no fault."""
    if not isinstance(raised, (torch.OutOfMemoryError, MemoryError)):
        program.faults.append(f"comparison of whole programs: {refusal(raised)}")


def _trial(program, choice, given):
    """(fixes, function) of the program with this choice."""
    from .codegen import write

    apply(program.steps, choice)
    program.fixes = {}
    program.protect(write(program)[1](list(given)), given)
    return program.fixes, write(program)[1]


def settle(program, given):
    """Sets the sides of all steps, and which results are copied. given: the arguments of a call."""
    home, graphs = program.home, program.options.graphs
    choices = candidates(program.steps, home, graphs)
    before = program.fixes
    if len(choices) < 2 or not _may_repeat(program):
        return apply(program.steps, choices[0])
    plain = min(choices, key=lambda choice: choice.count("weft"))
    some = choices[:_MOST] if plain in choices[:_MOST] else [*choices[: _MOST - 1], plain]
    with as_later_calls(), KeptNumbers(program.graph.ops, program.home):
        try:
            own = _own_copies(program, given)
            tried = [_trial(program, choice, own) for choice in some]
            seconds = measure_whole([run for _, run in tried], own, home, graphs)
        except Exception as raised:  # the sum of steps does as well
            _note(program, raised)
            program.fixes = before
            return apply(program.steps, choices[0])
    best = fastest(seconds)
    apply(program.steps, some[best])
    program.fixes = tried[best][0]


def for_recording(program, given):
    """A function of the program whose sides are chosen for replays, where the host's time does not count; None where a second call may not be made. The program stays as it is."""
    if not _may_repeat(program):
        return None
    before, fixes = [(step.where, step.reason) for step in program.steps], program.fixes
    choice = candidates(program.steps, program.home, True)[0]
    try:
        with as_later_calls(), KeptNumbers(program.graph.ops, program.home):
            return _trial(program, choice, _own_copies(program, given))[1]
    except Exception as raised:
        _note(program, raised)
        return None
    finally:
        program.fixes = fixes
        for step, (where, reason) in zip(program.steps, before):
            step.where, step.reason = where, reason
