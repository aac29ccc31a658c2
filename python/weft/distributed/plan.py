# SPDX-License-Identifier: Apache-2.0
"""How a training step scales to many cards: python -m weft.distributed.plan [--parameters N] [--step SECONDS] [--picture FILE]

The model: a step computes for `step` seconds on one card (measured there), of which the backward pass is two thirds. Gradients travel in buckets as backward
makes them, so that only what exceeds the rest of backward, and the last bucket, is waited for. A ring over n cards moves 2 (n - 1) / n of the bytes (all_reduce;
each of all_gather and reduce_scatter half of that) at the slowest link's rate, and every hop adds a latency. While NCCL's kernels run they take multiprocessors
from the computation: each second of communication costs it `slowdown` seconds. Inside a host the links are NVLink, between hosts the
network; over several hosts the sum is hierarchical: reduce_scatter in the host, all_reduce of the parts between hosts, all_gather in the host.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import sys

import weft

from .._errors import error


@dataclasses.dataclass(frozen=True)
class Machine:
    """Rates in bytes a second and latencies in seconds; `cards` in one host.

    The defaults: 294e9 is all_reduce of 256 MiB on two H200s (bench/gpu/distributed.py: bytes over time, of which a card sends as many);
    21e-6 is its latency at 4 KiB there. `slowdown` is fitted to the step of 12 transformer blocks on those two (37.19 ms alone, 38.58 ms together); with it
    ResNet-50's is predicted at 27.74 ms, and 27.95 ms were measured. 50e9 is one 400 Gb/s port for each card, as in NVIDIA's DGX H200 (its data sheet: eight ConnectX-7 ports), of
    which 0.9 is assumed to be reached; 10e-6 a hop is an assumption.
    """

    cards: int = 8
    link: float = 294e9
    latency: float = 21e-6
    network: float = 0.9 * 50e9
    network_latency: float = 10e-6
    slowdown: float = 0.88


@dataclasses.dataclass(frozen=True)
class Job:
    """A training step on one card: seconds without communication, parameters and bytes of each."""

    parameters: float
    step: float
    bytes: int = 4
    bucket: int = 25 << 20
    stage: int = 0


def _one_way(size, ranks, rate, latency):
    """Seconds of reduce_scatter or of all_gather of `size` bytes over a ring."""
    return 0.0 if ranks == 1 else size * (ranks - 1) / ranks / rate + latency * (ranks - 1) / ranks


def all_reduce_seconds(size, n, machine):
    """Seconds of an all_reduce of `size` bytes over n cards."""
    local = min(n, machine.cards)
    hosts = -(-n // local)
    inside = _one_way(size, local, machine.link, machine.latency)
    hops = machine.network_latency * math.log2(hosts) if hosts > 1 else 0.0  # a tree
    between = 2 * _one_way(size / local, hosts, machine.network, hops)
    return 2 * inside + between


def exposed_seconds(job, n, machine):
    """Seconds that communication adds to a step: those that it waits for, and those that it takes from the computation."""
    size = job.parameters * job.bytes
    bucket = min(size, job.bucket)
    whole = all_reduce_seconds(bucket, n, machine) * size / bucket
    last = all_reduce_seconds(bucket, n, machine)
    forward, backward = job.step / 3, 2 * job.step / 3
    if job.stage < 3:
        return max(whole - backward, last) + machine.slowdown * whole
    # Parameters are gathered in forward and again in backward; gradients are scattered in backward.
    gather = whole / 2
    waited = max(gather - forward, last / 2) + max(2 * gather - backward, last / 2)
    return waited + machine.slowdown * 3 * gather


def plan(job, counts=(1, 2, 8, 64, 512), machine=None):
    """(cards, seconds a step, efficiency) for each number of cards, with the same batch on each card.

    Raises ArgumentError `distributed.plan` for numbers that are not positive.
    """
    machine = Machine() if machine is None else machine
    numbers = (
        job.parameters,
        job.step,
        job.bytes,
        job.bucket,
        machine.link,
        machine.network,
        *counts,
    )
    if min(numbers, default=0) <= 0 or machine.cards < 1:
        raise error(
            weft.ArgumentError,
            "distributed.plan",
            f"a plan for {job} on {list(counts)} cards",
            ["legal: numbers above 0"],
        )
    rows = []
    for n in counts:
        seconds = job.step + (exposed_seconds(job, n, machine) if n > 1 else 0.0)
        rows.append((n, seconds, job.step / seconds))
    return rows


def _picture(jobs, machine):
    """An SVG with the efficiency of each job over the number of cards."""
    counts = [2**i for i in range(10)]
    width, height, left, top = 560, 300, 50, 20
    x = lambda n: left + (width - left - 130) * (n.bit_length() - 1) / 9  # noqa: E731
    y = lambda e: top + (height - 60) * (1 - e)  # noqa: E731
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="11">'
    ]
    for e in (0, 0.25, 0.5, 0.75, 1):
        out.append(f'<path d="M{left} {y(e):.0f}H{x(512):.0f}" stroke="#ddd"/><text x="10" y="{y(e) + 4:.0f}">{e:.0%}</text>')  # fmt: skip
    for n in counts:
        out.append(f'<text x="{x(n) - 6:.0f}" y="{height - 22}">{n}</text>')
    out.append(f'<text x="{left}" y="{height - 5}">cards, the same batch on each</text>')
    for color, (name, job) in zip(("#1b6ca8", "#c0392b", "#2c7a3f", "#8e44ad"), jobs.items()):
        rows = plan(job, counts, machine)
        points = " ".join(f"{x(n):.0f},{y(e):.1f}" for n, _, e in rows)
        out.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>')
        at = y(rows[-1][2]) + 4
        out.append(f'<text x="{x(512) + 6:.0f}" y="{at:.0f}" fill="{color}">{name}</text>')
    return "\n".join([*out, "</svg>", ""])


# Steps measured on one H200 by bench/gpu/distributed.py: 12 blocks of 768 channels, 8 x 512 tokens; ResNet-50, 32 x 224 x 224; float32.
EXAMPLES = {
    "12 blocks": Job(85_054_464, 37.19e-3),
    "ResNet-50": Job(25_557_032, 27.25e-3),
    "12, sharded": Job(85_054_464, 37.19e-3, stage=3),
}


def main(arguments=None):
    """The command line: a table on standard output, and a picture where one is asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m weft.distributed.plan", description="A scaling plan"
    )
    parser.add_argument("--parameters", type=float)
    parser.add_argument("--step", type=float, help="seconds of a step on one card")
    parser.add_argument("--stage", type=int, default=0, choices=(0, 1, 2, 3))
    parser.add_argument("--cards", type=int, default=8, help="cards in one host")
    parser.add_argument("--picture", help="an SVG file to write")
    given = parser.parse_args(arguments)
    machine, jobs = Machine(cards=given.cards), EXAMPLES
    if given.parameters is not None or given.step is not None:
        if given.parameters is None or given.step is None:
            parser.error("--parameters and --step go together")
        jobs = {"the job": Job(given.parameters, given.step, stage=given.stage)}
    lines = []
    for name, job in jobs.items():
        for n, seconds, efficiency in plan(job, machine=machine):
            lines.append(f"{name:14s} {n:4d} cards  {seconds * 1e3:8.2f} ms a step  efficiency {efficiency:.3f}  factor {n * efficiency:8.2f}")  # fmt: skip
    sys.stdout.write("\n".join(lines) + "\n")
    if given.picture:
        with open(given.picture, "w") as file:
            file.write(_picture(jobs, machine))


if __name__ == "__main__":
    main()
