# SPDX-License-Identifier: Apache-2.0
"""Which side computes each step of a program: torch's kernels or weft's.

A step costs the host time to issue and, on a card, the card time to compute. The two overlap across steps, so a call takes
about the larger of the two sums. Replayed graphs cost no host time: there the card's time alone decides.
"""

from __future__ import annotations

import time

import torch

SIDES = ("torch", "weft")

_CLOCKS = 2e9  # of a card, a second; how long it is kept busy need not be exact
_MARGIN = 1.05  # single operators: timing a library call in a few runs is no more exact than this
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


def _on_host(runs, args, most, budget):
    """The least time of a few interleaved runs."""
    runs["torch"](args)
    best, spent, count = {}, 0.0, 0
    while count < 4 or (count < most and spent < budget):
        for side, run in runs.items():
            taken = _wall(run, args)
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


def measure(runs, args, home, patient):
    """{side: Cost} of functions of a list of tensors. patient: up to 0.1 s for each."""
    with torch.no_grad():
        if home.type == "cuda":
            return _on_card(runs, args, home, 12 if patient else 3)
        return _on_host(runs, args, *((100, 0.1) if patient else (12, 0.004)))


def _weighed(step, side, weight):
    cost = step.costs[side]
    margin = _MARGIN if side == "weft" and step.kind != "fused" else 1.0
    return margin * (weight * cost.host + (1 - weight) * cost.device)


def _choice(steps, weight):
    return [
        min((s for s in SIDES if s in step.costs), key=lambda s: _weighed(step, s, weight))
        for step in steps
    ]


def _total(steps, choice, graphs):
    """Seconds of a call with this choice, and for equal ones the sum of both sides' work."""
    costs = [step.costs[side] for step, side in zip(steps, choice)]
    host, device = sum(c.host for c in costs), sum(c.device for c in costs)
    return (device if graphs else max(host, device)), host + device


def choose(steps, home, graphs):
    """Sets `where` of the steps whose costs are known on both sides."""
    known = [step for step in steps if step.costs]
    weights = _WEIGHTS if home.type == "cuda" and not graphs else (0.0,)
    choices = [_choice(known, weight) for weight in weights]
    choices.append(["torch" if "torch" in step.costs else "weft" for step in known])
    best = min(choices, key=lambda choice: _total(known, choice, graphs))
    for step, side in zip(known, best):
        if step.where == "weft" and side == "torch":
            step.where, step.reason = "torch", "torch's kernels are faster here"
