# SPDX-License-Identifier: Apache-2.0
"""Calls into a card's libraries in a process that has compiled nothing: kernels that prepare their operands wait for the compiler,
and the libraries must wait for those kernels."""

import os
import subprocess
import sys

import pytest
from present import present

present("cuda:0")

PROGRAM = """
import sys
import numpy as np
import weft

name, seed = sys.argv[1], int(sys.argv[2])
rng = np.random.default_rng(seed)
n = 200 + seed  # beyond what programs of our own take
a = rng.standard_normal((n, n)) + 1j * rng.standard_normal((n, n))
a = a @ a.conj().T + n * np.eye(n)
x = rng.standard_normal((n, 30))
ours = lambda v: weft.asarray(v).to("cuda:0")
near = lambda got, want: np.testing.assert_allclose(got.numpy(), want, rtol=1e-8, atol=1e-8 * np.abs(want).max())
if name == "inv":
    near(weft.linalg.inv(ours(a).mT), np.linalg.inv(a.T))
elif name == "solve":
    near(weft.linalg.solve(ours(a + 0), ours(x + 0j)), np.linalg.solve(a, x))
elif name == "svd":
    near(weft.linalg.svd(ours(a.real)[:, ::2])[1], np.linalg.svd(a.real[:, ::2])[1])
elif name == "eigh":
    near(weft.linalg.eigh(ours(a) * 2)[0], np.linalg.eigh(a * 2)[0])
elif name == "qr":
    near(abs(weft.linalg.qr(ours(x) * 3)[1]), abs(np.linalg.qr(x * 3)[1]))
elif name == "cholesky":
    near(weft.linalg.cholesky(ours(a.real) * 2), np.linalg.cholesky(a.real * 2))
elif name == "fftn":
    near(weft.fft.fftn(ours(x) + 1), np.fft.fftn(x + 1))
elif name == "rfft":
    near(weft.fft.rfft(ours(x) * 2, axis=0), np.fft.rfft(x * 2, axis=0))
"""


@pytest.mark.targets("cuda")
@pytest.mark.parametrize("name", ["inv", "solve", "svd", "eigh", "qr", "cholesky", "fftn", "rfft"])
def test_first_call_of_a_library_cuda(name, tmp_path):
    for seed in (1, 2):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, name, str(seed)],
            env={**os.environ, "WEFT_CACHE_DIR": str(tmp_path / str(seed))},
            capture_output=True,
            text=True,
            timeout=500,
        )
        assert done.returncode == 0, done.stderr[-2000:]
