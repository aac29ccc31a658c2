# SPDX-License-Identifier: Apache-2.0
"""Modules of array programs are kept on disk: a second process takes them, damaged ones are made again, processes may share a folder."""

import os
import subprocess
import sys

import pytest
from present import present

WORK = """
import sys
import numpy as np
import weft
weft._core.set_cache_directory(sys.argv[1])
d = weft.device(sys.argv[2])
rng = np.random.default_rng(1)
a = rng.standard_normal((37, 53)).astype(np.float32)
x = weft.asarray(a).to(d)
np.testing.assert_allclose(np.asarray((x @ x.T).to("cpu")), a @ a.T, rtol=1e-4, atol=1e-4)
np.testing.assert_allclose(np.asarray(weft.exp(x).sum(axis=1).to("cpu")), np.exp(a).sum(1), rtol=1e-5)
np.testing.assert_allclose(np.asarray(weft.nn.functional.softmax(x, -1).to("cpu")).sum(1), np.ones(37), rtol=1e-5)
"""


def start(folder, device):
    return subprocess.Popen(
        [sys.executable, "-c", WORK, str(folder), device],
        stderr=subprocess.PIPE,
        text=True,
    )


def run(folder, device):
    process = start(folder, device)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said


def contents(folder):
    return {name: (folder / name).read_bytes() for name in os.listdir(folder)}


@pytest.fixture(params=["cuda:0", "opencl:0"])
def device(request):
    present(request.param)
    return request.param


@pytest.fixture
def folder(tmp_path):
    home = tmp_path / "own"
    home.mkdir(mode=0o700)
    return home / "cache"


def test_a_second_process_takes_what_the_first_one_built(folder, device):
    run(folder, device)
    first = contents(folder)
    assert len(first) >= 3
    for name in first:
        os.utime(folder / name, (1, 1))
    run(folder, device)
    assert contents(folder) == first
    used = [name for name in first if os.stat(folder / name).st_mtime > 1]
    assert len(used) >= 3, "entries that are read are marked as used"


@pytest.mark.parametrize("fault", ["short", "bits", "empty"])
def test_damaged_modules_are_made_again(folder, device, fault):
    run(folder, device)
    first = contents(folder)
    for name, bytes_ in first.items():
        broken = {
            "short": bytes_[: len(bytes_) // 2],
            "bits": bytes_[:-20] + bytes([bytes_[-20] ^ 1]) + bytes_[-19:],
            "empty": b"",
        }[fault]
        (folder / name).write_bytes(broken)
    run(folder, device)
    assert contents(folder) == first


def test_processes_fill_one_folder_at_once(folder, device):
    all_of = [start(folder, device) for _ in range(3)]
    for process in all_of:
        _, said = process.communicate(timeout=300)
        assert process.returncode == 0, said
    assert not [name for name in os.listdir(folder) if len(name) != 32], "no leftovers"
