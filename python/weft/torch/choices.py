# SPDX-License-Identifier: Apache-2.0
"""Which side computes each step of a program: torch's kernels or weft's.

A step costs the host time to issue and, on a card, the card time to compute. The two overlap across steps, so a call takes
about the larger of the two sums. Replayed graphs cost no host time: there the card's time alone decides.
"""

from __future__ import annotations

import contextlib
import time

import torch
from torch.utils._python_dispatch import _disable_current_modes

import weft

SIDES = ("torch", "weft")

_CLOCKS = 2e9  # of a card, a second; how long it is kept busy need not be exact
# How many times faster weft must be alone, (single operators, groups): caches are warmer there than in a whole call.
_MARGINS = ((1.05, 1.0), (1.4, 1.1), (float("inf"), 1.0))
_WHOLE_SECONDS = 0.4  # for the comparison of whole programs, at least two turns
_MOST_TURNS = 20
_NOISE = 0.02  # of a whole program's time: what differs by less is decided by the sum of steps
_WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)  # of the host's time, in the choices that are compared


class Cost:
    """Seconds of one run: until the host has issued it, and until the device has computed it. On the host they are one."""

    __slots__ = ("host", "device")

    def __init__(self, host, device):
        self.host, self.device = host, device

    @property
    def seconds(self):
        return max(self.host, self.device)


def _wall(run, args):
    start = time.perf_counter()
    run(args)
    return time.perf_counter() - start


def _taken_on_host(run, args):
    """Seconds of a run; with one thread its processor time, which other programs of the machine lengthen least."""
    clock = time.thread_time if torch.get_num_threads() == weft.get_threads() == 1 else time.perf_counter  # fmt: skip
    start = clock()
    run(args)
    return clock() - start


def _on_host(runs, args, most, budget):
    """The least time of a few interleaved runs."""
    runs["torch"](args)
    best, spent, count = {}, 0.0, 0
    while count < 4 or (count < most and spent < budget):
        for side, run in runs.items():
            taken = _taken_on_host(run, args)
            best[side] = min(best.get(side, taken), taken)
            spent += taken
        count += 1
        if spent > 0.5:
            break
    return {side: Cost(t, t) for side, t in best.items()}


def _card_cost(run, args, home, host):
    """Cost of a run among others: the card is kept busy until the host has issued all of them."""
    number = max(2, min(12, int(4e-4 / max(host, 1e-6))))
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(int((2 * number * host + 2e-5) * _CLOCKS))
    start.record()
    began = time.perf_counter()
    for _ in range(number):
        run(args)
    issued = time.perf_counter() - began
    stop.record()
    torch.cuda.synchronize(home)
    return Cost(issued / number, start.elapsed_time(stop) * 1e-3 / number)


def _on_card(runs, args, home, rounds):
    found = {}
    for run in runs.values():
        run(args)
    for _ in range(rounds):
        for side, run in runs.items():
            torch.cuda.synchronize(home)
            once = found[side].host if side in found else _wall(run, args)
            cost = _card_cost(run, args, home, once)
            best = found.setdefault(side, cost)
            best.host, best.device = min(best.host, cost.host), min(best.device, cost.device)
    return found


def as_later_calls():
    """Neither gradients nor the mode in which torch watches the operators of a first call: it would slow torch's side."""
    stack = contextlib.ExitStack()
    stack.enter_context(torch.no_grad())
    stack.enter_context(_disable_current_modes())
    return stack


class KeptNumbers:
    """A block that leaves random generators where they were, if one of the operators draws."""

    def __init__(self, ops, home):
        self.card = home if home.type == "cuda" else None
        tags = (getattr(op.target, "tags", ()) for op in ops)
        self.drawn = any(torch.Tag.nondeterministic_seeded in t for t in tags)

    def __enter__(self):
        if self.drawn:
            self.host = torch.get_rng_state()
            self.cards = None if self.card is None else torch.cuda.get_rng_state(self.card)

    def __exit__(self, *unused):
        if self.drawn:
            torch.set_rng_state(self.host)
            if self.card is not None:
                torch.cuda.set_rng_state(self.cards, self.card)


def measure(runs, args, home, patient):
    """{side: Cost} of functions of a list of tensors. patient: up to 0.1 s for each."""
    with as_later_calls():
        if home.type == "cuda":
            return _on_card(runs, args, home, 12 if patient else 3)
        return _on_host(runs, args, *((100, 0.1) if patient else (12, 0.004)))


def _weighed(step, side, weight, margin):
    cost = step.costs[side]
    margin = margin[step.kind == "fused"] if side == "weft" else 1.0
    return margin * (weight * cost.host + (1 - weight) * cost.device)


def _choice(steps, weight, margin):
    return [
        min((s for s in SIDES if s in step.costs), key=lambda s: _weighed(step, s, weight, margin))
        for step in steps
    ]


def _total(steps, choice, graphs):
    """Seconds of a call with this choice, and for equal ones the sum of both sides' work."""
    costs = [step.costs[side] for step, side in zip(steps, choice)]
    host, device = sum(c.host for c in costs), sum(c.device for c in costs)
    return (device if graphs else max(host, device)), host + device


def candidates(steps, home, graphs):
    """Choices of sides that may be best, as lists for the steps with costs, the best by the costs of single steps first."""
    known = [step for step in steps if step.costs]
    weights = _WEIGHTS if home.type == "cuda" and not graphs else (0.0,)
    found = [_choice(known, weight, margin) for weight in weights for margin in _MARGINS]
    found.append(["torch" if "torch" in step.costs else "weft" for step in known])
    distinct = list({tuple(choice): choice for choice in found}.values())
    return sorted(distinct, key=lambda choice: _total(known, choice, graphs))


def apply(steps, choice):
    """Sets `where` of the steps whose costs are known on both sides."""
    for step, side in zip([step for step in steps if step.costs], choice):
        if len(step.costs) == len(SIDES):
            step.where = side
            step.reason = "torch's kernels are faster here" if side == "torch" else ""


def choose(steps, home, graphs):
    """Sets `where` by the costs of single steps."""
    apply(steps, candidates(steps, home, graphs)[0])


def measure_whole(runs, given, home, graphs):
    """Seconds of each of the functions of a list of tensors, one after another in turns; least of a few."""
    best = [float("inf")] * len(runs)
    spent, turns = 0.0, 0
    while turns < _MOST_TURNS and (turns < 2 or spent < _WHOLE_SECONDS):
        order = list(enumerate(runs))
        for i, run in order if turns % 2 else reversed(order):  # none always runs behind the same
            if home.type == "cuda":
                torch.cuda.synchronize(home)
                once = _wall(lambda args: run(list(args)), given)  # noqa: B023 - called at once
                if graphs:
                    taken = _card_cost(lambda args: run(list(args)), given, home, once).device  # noqa: B023
                else:
                    torch.cuda.synchronize(home)
                    start = time.perf_counter()
                    for _ in range(3):
                        run(list(given))
                    torch.cuda.synchronize(home)
                    taken = (time.perf_counter() - start) / 3
            else:
                taken = _taken_on_host(lambda args: run(list(args)), given)  # noqa: B023
            best[i] = min(best[i], taken)
            spent += taken
        turns += 1
    return best


def fastest(seconds):
    """Which of the choices to take, whose order is that of the sums of their steps."""
    bound = (1 + _NOISE) * min(seconds)
    return next(i for i, s in enumerate(seconds) if s <= bound)
