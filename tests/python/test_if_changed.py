# SPDX-License-Identifier: Apache-2.0
"""tools/if_changed: a long test program runs again only when its bytes or its arguments differ."""

import pathlib
import subprocess

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools/if_changed"


def run(program, *arguments):
    return subprocess.run([TOOL, program, *arguments], capture_output=True, text=True, check=False)


def write(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_it_runs_again_only_when_something_changed(tmp_path):
    program = tmp_path / "program"
    write(program, 'echo "ran $*"')
    assert run(program).stdout == "ran \n"
    again = run(program)
    assert again.returncode == 77
    assert "passed before" in again.stdout
    assert run(program, "--all").stdout == "ran --all\n"
    write(program, 'echo "ran another"')
    assert run(program, "--all").stdout == "ran another\n"


def test_a_failure_is_never_remembered(tmp_path):
    program = tmp_path / "program"
    write(program, "exit 3")
    assert run(program).returncode == 3
    assert run(program).returncode == 3
    write(program, "exit 0")
    assert run(program).returncode == 0
    write(program, "exit 3")
    assert run(program).returncode == 3
    write(program, "exit 0")
    assert run(program).returncode == 0, "a pass before the failure does not count"
