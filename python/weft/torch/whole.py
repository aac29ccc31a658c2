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
    return all(op.name.startswith(("aten.", "prims.", "weft.")) for op in program.graph.ops)


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


def _written(program):
    """A function of the program as its steps are set."""
    from .codegen import write

    return write(program)[1]


def _trial(program, choice, given):
    """(fixes, strides of the results, function) of the program with this choice."""
    apply(program.steps, choice)
    program.fixes = {}
    found = _written(program)(list(given))
    program.protect(found, given)
    strides = [
        v.fake.stride() if i in program.fixes else t.stride() if isinstance(t, torch.Tensor) else None
        for i, (t, v) in enumerate(zip(found, program.graph.outputs))
    ]  # fmt: skip
    return program.fixes, strides, _written(program)


def settle(program, given):
    """Sets the sides of all steps, which results are copied, and in which order images lie. given: the arguments of a call."""
    home, graphs = program.home, program.options.graphs
    choices = candidates(program.steps, home, graphs)
    before, layout = program.fixes, program.graph.layout
    if not _may_repeat(program) or (len(choices) < 2 and layout is None):
        return apply(program.steps, choices[0])
    plain = min(choices, key=lambda choice: choice.count("weft"))
    some = choices[:_MOST] if plain in choices[:_MOST] else [*choices[: _MOST - 1], plain]
    with as_later_calls(), KeptNumbers(program.graph.ops, program.home):
        try:
            own = _own_copies(program, given)
            tried = [_trial(program, choice, own) for choice in some]
            best = fastest(measure_whole([run for *_, run in tried], own, home, graphs))
            found = some[best], tried[best]
            if layout is not None:
                found = _with_images_turned(program, found, some, own)
        except Exception as raised:  # the sum of steps does as well
            _note(program, raised)
            program.fixes = before
            if layout is not None:
                layout.last = False
            return apply(program.steps, choices[0])
    apply(program.steps, found[0])
    program.fixes, program.later, _ = found[1]


def _in_order(layout, last, run):
    """The function with images in that order."""

    def call(args):
        layout.last = last
        return run(args)

    return call


def _with_images_turned(program, found, choices, given):
    """The best choice with what _trial gave for it, or a faster one with the channels of images last. Sets the order."""
    layout = program.graph.layout
    all_weft = ["weft" if "weft" in step.costs else "torch" for step in program.steps if step.costs]
    some = list({tuple(c): c for c in [found[0], all_weft, *choices]}.values())[:_MOST]
    layout.last = True
    tried = [_trial(program, choice, given) for choice in some]
    runs = [_in_order(layout, True, run) for *_, run in tried]
    runs.insert(0, _in_order(layout, False, found[1][2]))
    at = fastest(measure_whole(runs, given, program.home, program.options.graphs))
    layout.last = at > 0
    return (some[at - 1], tried[at - 1]) if at else found


def for_recording(program, given):
    """A function of the program whose sides are chosen for replays, where the host's time does not count; None where a second call may not be made. The program stays as it is."""
    if not _may_repeat(program):
        return None
    before, fixes = [(step.where, step.reason) for step in program.steps], program.fixes
    choice = candidates(program.steps, program.home, True)[0]
    try:
        with as_later_calls(), KeptNumbers(program.graph.ops, program.home):
            return _trial(program, choice, _own_copies(program, given))[2]
    except Exception as raised:
        _note(program, raised)
        return None
    finally:
        program.fixes = fixes
        for step, (where, reason) in zip(program.steps, before):
            step.where, step.reason = where, reason
