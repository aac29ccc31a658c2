# SPDX-License-Identifier: Apache-2.0
"""Runs random programs on targets, compares them with `ref` (and expressions with an evaluator of their own), and cuts
what differs down to a small program."""

import numpy as np
import weft

from . import expressions as X
from . import programs as P

# Kinds of refusals that say what a target cannot do; anything else that is raised is a finding.
REFUSALS = ("lower.", "emit.", "verify.", "qpu.", "vta.", "wse.", "target.", "build.")


def device_of(target):
    return {"opencl": "opencl:0"}.get(
        target, target.split(":")[0] if target.startswith("c:") else target
    )


def run(program, target, arrays):
    """Results by name, or the weft.Error that building or running raised."""
    text, names = P.text(program)
    outputs = program.outputs()
    device = device_of(target)
    try:
        module = weft.build(weft.script.from_source(text), target=target)
        given = {
            name: weft.asarray(arrays[name[2:]], device=device)
            if name.startswith("A_")
            else weft.zeros((P.N,), dtype=outputs[name], device=device)
            for name in names
        }
        module["main"](*given.values())
        return {name: given[name].numpy() for name in outputs}
    except weft.Error as error:
        return error


def expected(expression, arrays):
    """Of an expression over the inputs alone, by the evaluator."""

    def value(i):
        def environment(leaf):
            if leaf[0] == "iter":
                return X.wrap(i, leaf[1])
            index = eval(leaf[3].replace("T.min", "min"), {"v": i, "min": min})
            return arrays[leaf[2][2:]][index].item()

        return X.value(expression, environment)

    return np.array([value(i) for i in range(P.N)], expression[1])


def difference(program, target, arrays):
    """None where the target agrees with `ref` or refuses; else what is wrong."""
    wanted = run(program, "ref", arrays)
    if isinstance(wanted, weft.Error):
        # A program may race; then no target has a meaning for it.
        return None if wanted.code.startswith("verify.") else f"ref: {str(wanted)[:300]}"
    for what, _, name, value, extra in program.blocks:
        direct = "'S" not in str(value) and "'O" not in str(value)
        if target == "ref" and what == "map" and extra is None and direct and name[0] == "O":
            own = expected(value, arrays)
            if not np.array_equal(own, wanted[name]):
                k = np.flatnonzero(own != wanted[name])[0]
                return f"ref: {name}[{k}] is {wanted[name][k]}, by hand {own[k]}"
    if target == "ref":
        return None
    found = run(program, target, arrays)
    if isinstance(found, weft.Error):
        return None if found.code.startswith(REFUSALS) else f"{found.code}: {str(found)[:300]}"
    for name, want in wanted.items():
        if not np.array_equal(found[name], want):
            k = np.flatnonzero(found[name] != want)[0]
            return f"{name}[{k}] is {found[name][k]}, on ref {want[k]}"
    return None


def shrink(program, target, arrays, budget=400):
    said = difference(program, target, arrays)
    progress = True
    while progress:
        progress = False
        for other in P.smaller(program):
            budget -= 1
            if budget < 0:
                return program, said
            now = difference(other, target, arrays)
            if now:
                program, said, progress = other, now, True
                break
    return program, said


def case(seed):
    rng = P.rng_of(seed)
    arrays = P.inputs(rng)
    return P.program(rng), arrays


def story(seed, target, budget=400):
    """None, or the smallest program found, as text, and what is wrong with it."""
    program, arrays = case(seed)
    if difference(program, target, arrays) is None:
        return None
    program, said = shrink(program, target, arrays, budget)
    return f"seed {seed} on {target}: {said}\n{P.text(program)[0]}"
