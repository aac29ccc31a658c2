# SPDX-License-Identifier: Apache-2.0
"""Test files are collected in builds that leave targets or remote devices out: such a build runs the tests of what it has."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
LACKS = {
    "remote devices": """
import sys

sys.modules["weft._rpc"] = None
""",
    "targets": """
import weft._core as core

limits = core.target_limits


def target_limits(name, *more):
    return limits("none" if name in ("qpu", "vta", "wse") else name, *more)


core.target_limits = target_limits
core.targets = lambda found=core.targets(): [t for t in found if t not in ("qpu", "vta", "wse")]
""",
}


@pytest.mark.parametrize("lacking", LACKS)
def test_every_file_is_collected_in_a_lean_build(lacking, tmp_path):
    (tmp_path / "lean.py").write_text(LACKS[lacking])
    paths = os.pathsep.join([str(tmp_path), str(HERE), *(p for p in sys.path if p)])
    lists = [f"--skips={HERE.parent / name}" for name in ("skips.txt", "skips-lean.txt")]
    words, kept, absent = {
        "remote devices": ("rpc|remote|present", "test_devices.py", "test_rpc.py"),
        "targets": ("vta|qpu|wse|wafer|present", "test_bad_input.py", "test_vta_examples.py"),
    }[lacking]
    concerned = re.compile(words)
    files = [p for p in sorted(HERE.glob("test_*.py")) if concerned.search(p.read_text())]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "lean", "-p", "no:cacheprovider", *lists, *files],
        cwd=HERE.parents[1], env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    collected = {line.split("::")[0] for line in done.stdout.splitlines() if "::" in line}
    assert {f"tests/python/{name}" for name in (kept, "test_builds.py")} <= collected
    assert f"tests/python/{absent}" not in collected


def test_a_name_that_is_imported_later_keeps_its_own_error():
    code = "import sys, weft\nsys.modules['weft._rpc'] = None\ntry: weft.rpc\nexcept weft.IOError as e: print(e)"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.startswith("error[rpc.absent]: this build of weft has no remote devices")
    assert done.stdout.rstrip().endswith("then build again")
