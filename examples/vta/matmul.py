# SPDX-License-Identifier: Apache-2.0
# %% [markdown]
# Simple matrix multiply on VTA, cell by cell: declare, schedule, print, build, save, upload to a device that another
# process serves, run, compare. `python examples/vta/matmul.py [m n]` runs all cells; m = n = 4 is the tutorial's size,
# 16 its sibling.

# %% RPC setup: a process that serves the device; on a board this is `weft serve --device vta:hw` on its ARM host
import contextlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

import weft
from weft import te

config = None  # or "vta_config.json"
env = weft.vta.env(config)


@contextlib.contextmanager
def served(device="vta"):
    """`weft serve` in a process of its own, on a free port of this host; yields the port."""
    command = [
        sys.executable,
        "-m",
        "weft",
        "serve",
        "--device",
        device,
        "--host",
        "127.0.0.1",
        "--port",
        "0",
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            for line in process.stdout:
                found = re.search(r"127\.0\.0\.1:(\d+)", line) or re.search(r"port (\d+)", line)
                if found:
                    break
            else:
                raise RuntimeError("the server ended before it listened")
            yield int(found.group(1))
        finally:
            process.terminate()
            process.wait(10)


# %% Computation declaration: data in the machine's own tiles
def declare(o, m, n):
    A = te.placeholder((o, n, env.BATCH, env.BLOCK_IN), env.inp_dtype, name="A")
    B = te.placeholder((m, n, env.BLOCK_OUT, env.BLOCK_IN), env.wgt_dtype, name="B")
    # Copies that will live in the chip's buffers
    A_buf = te.compute((o, n, env.BATCH, env.BLOCK_IN), lambda *i: A[i], "A_buf")
    B_buf = te.compute((m, n, env.BLOCK_OUT, env.BLOCK_IN), lambda *i: B[i], "B_buf")
    ko = te.reduce_axis((0, n), name="ko")
    ki = te.reduce_axis((0, env.BLOCK_IN), name="ki")
    C_buf = te.compute(
        (o, m, env.BATCH, env.BLOCK_OUT),
        lambda bo, co, bi, ci: te.sum(
            A_buf[bo, ko, bi, ki].astype(env.acc_dtype)
            * B_buf[co, ko, ci, ki].astype(env.acc_dtype),
            axis=[ko, ki],
        ),
        name="C_buf",
    )
    C = te.compute(
        (o, m, env.BATCH, env.BLOCK_OUT), lambda *i: C_buf[i].astype(env.inp_dtype), name="C"
    )
    return te.create_prim_func([A, B, C])


# %% Scheduling the computation
def schedule(o, m, n, show=print):
    s = weft.Schedule(declare(o, m, n))
    show("---- the default schedule\n" + s.script())

    # Buffer scopes
    A_buf, B_buf, C_buf, C = (s.get_block(name) for name in ("A_buf", "B_buf", "C_buf", "C"))
    s.set_scope(A_buf, 0, env.inp_scope)
    s.set_scope(B_buf, 0, env.wgt_scope)
    s.set_scope(C_buf, 0, env.acc_scope)

    # DMA transfers: the copies move into the sum's outermost reduction loop, and are marked
    bo, co, bi, ci, ko, ki = s.get_loops(C_buf)
    s.reorder(ko, bo, co, bi, ci, ki)
    s.compute_at(A_buf, ko)
    s.compute_at(B_buf, ko)
    for block in (A_buf, B_buf, C):
        s.annotate(s.get_loops(block)[-1], env.dma_copy, 1)
    show("---- with scopes and DMA\n" + s.script())

    # Tensorization: the sum begins at 0 before ko; the innermost loops are one GEMM
    s.decompose_reduction(C_buf, ko)
    s.tensorize(bi, env.gemm)
    show("---- tensorized\n" + s.script())
    return s


# %% Running it
def main(o=1, m=4, n=4, show=print):
    show(env.TARGET)
    show(env.describe())
    s = schedule(o, m, n, show)
    module = weft.build(s, target=env.target)
    show(
        "---- instructions, micro-operations and tokens (upstream's debug_flag=0x6)\n"
        + module.source()
    )

    with tempfile.TemporaryDirectory() as folder, served() as port:
        path = pathlib.Path(folder, "gemm.weft-mod")
        module.save(path)
        remote = weft.rpc.connect("127.0.0.1", port, key=os.environ.get("WEFT_RPC_KEY"))
        if (
            env.TARGET != "sim"
        ):  # a board: its runtime follows the configuration, then its FPGA is programmed
            remote.reconfigure(config)
            remote.program(bitstream=None)
        show(remote)
        remote.upload(path)
        f = remote.load_module("gemm.weft-mod")
        device = remote.device("vta")

        rng = np.random.default_rng(1)
        a = rng.integers(-128, 128, (o * env.BATCH, n * env.BLOCK_IN)).astype(env.inp_dtype)
        b = rng.integers(-128, 128, (m * env.BLOCK_OUT, n * env.BLOCK_IN)).astype(env.wgt_dtype)
        a_packed = a.reshape(o, env.BATCH, n, env.BLOCK_IN).transpose(0, 2, 1, 3).copy()
        b_packed = b.reshape(m, env.BLOCK_OUT, n, env.BLOCK_IN).transpose(0, 2, 1, 3).copy()
        A, B = weft.asarray(a_packed, device=device), weft.asarray(b_packed, device=device)
        C = weft.zeros((o, m, env.BATCH, env.BLOCK_OUT), dtype=env.out_dtype, device=device)
        f["main"](A, B, C)

        # Verifying correctness: the low 8 bits of the int32 sums
        expected = (a.astype(np.int32) @ b.astype(np.int32).T).astype(env.out_dtype)
        expected = expected.reshape(o, env.BATCH, m, env.BLOCK_OUT).transpose(0, 2, 1, 3)
        np.testing.assert_array_equal(C.numpy(), expected)
        time = f.time_evaluator("main", number=1, repeat=1)(A, B, C)
        show(
            f"Successful matrix multiply test! {time.cycles:.0f} cycles, {time.mean * 1e6:.2f} us at "
            f"{env.clock_hz / 1e6:.0f} MHz"
        )
        return time.cycles


if __name__ == "__main__":
    main(1, *(int(x) for x in sys.argv[1:3]))
