# SPDX-License-Identifier: Apache-2.0
"""tools/if_changed: what passed is run again only when something that it depends on differs, and then it is run."""

import json
import mmap
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools/if_changed"


def run(*arguments, **variables):
    known = {k: v for k, v in os.environ.items() if k != "WEFT_ALL"}
    return subprocess.run(
        [TOOL, *arguments], capture_output=True, text=True, check=False, env={**known, **variables}
    )


def write(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_it_runs_again_only_when_something_changed(tmp_path):
    program = write(tmp_path / "program", 'echo "ran $*"')
    assert run(program).stdout == "ran \n"
    again = run(program)
    assert again.returncode == 77
    assert "not run: it passed before" in again.stdout
    assert run("--status", "0", program).returncode == 0
    assert run(program, "--all").stdout == "ran --all\n"
    assert run(program).returncode == 77, "each set of arguments is remembered"
    write(program, 'echo "ran another"')
    assert run(program, "--all").stdout == "ran another\n"
    assert run(program, "--all", WEFT_ALL="1").stdout == "ran another\n"
    assert run(program, "--all").returncode == 77


def test_a_failure_is_never_remembered(tmp_path):
    program = write(tmp_path / "program", "exit 3")
    assert run(program).returncode == 3
    assert run(program).returncode == 3
    write(program, "exit 0")
    assert run(program).returncode == 0
    write(program, "exit 3")
    assert run(program).returncode == 3
    write(program, "exit 0")
    assert run(program).returncode == 0, "a pass before the failure does not count"
    assert run(write(program, "kill -9 $$")).returncode == -9
    assert run(write(program, "exit 77")).stdout == "", "skipped by itself: no pass either"
    assert run(program).returncode == 77 and "not run" not in run(program).stdout


def test_files_that_it_reads_count(tmp_path):
    program = write(tmp_path / "program", "echo ran")
    folder, page = tmp_path / "folder", tmp_path / "page.md"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep/table.def").write_text("1")
    command = ("--reads", folder, f"--reads={tmp_path}/*.md", "--", program)
    assert run(*command).stdout == "ran\n"
    assert run(*command).returncode == 77
    (folder / "deep/table.def").write_text("2")
    assert run(*command).stdout == "ran\n"
    page.write_text("new")
    assert run(*command).stdout == "ran\n"
    page.write_text("changed")
    assert run(*command).stdout == "ran\n"
    page.unlink()
    assert run(*command).stdout == "ran\n"
    assert run(*command).returncode == 77


def test_this_machine_counts(tmp_path):
    program = write(tmp_path / "program", "echo ran")
    assert run(program, LD_LIBRARY_PATH=str(tmp_path)).stdout == "ran\n"
    assert run(program, LD_LIBRARY_PATH=str(tmp_path), UNRELATED="1").stdout == "ran\n", (
        "the folder now holds the note of the pass"
    )
    libraries = tmp_path / "lib"
    libraries.mkdir()
    assert run(program, LD_LIBRARY_PATH=str(libraries)).stdout == "ran\n"
    assert run(program, LD_LIBRARY_PATH=str(libraries), UNRELATED="1").returncode == 77
    (libraries / "libnvrtc.so").write_text("another version")
    assert run(program, LD_LIBRARY_PATH=str(libraries)).stdout == "ran\n"
    assert run(program, WEFT_RANDOM_SCALE="2").stdout == "ran\n"


def test_a_change_during_the_run_is_not_lost(tmp_path):
    page = tmp_path / "page"
    page.write_text("before")
    program = write(tmp_path / "program", f"echo ran; echo during > {page}")
    assert run("--reads", page, program).stdout == "ran\n"
    assert run("--reads", page, program).stdout == "ran\n", "what passed was neither page alone"
    assert run("--reads", page, program).returncode == 77


def test_the_repositorys_files_count(tmp_path):
    program = write(tmp_path / "program", "echo ran")
    command = ("--tree", "--except", "src/*.cpp", "--stamp", tmp_path / "stamp", program)
    assert run(*command).stdout == "ran\n"
    assert run(*command).returncode == 77
    new = ROOT / "tests/python/if_changed_wrote_this.txt"
    try:
        new.write_text("a file that git would add")
        assert run(*command).stdout == "ran\n"
        new.write_text("its content")
        assert run(*command).stdout == "ran\n"
    finally:
        new.unlink()


def registered():
    """(name, command) of each test of the build in ./build."""
    if not (ROOT / "build/CTestTestfile.cmake").exists():
        pytest.skip("there is no build with C++ tests in build/")
    said = subprocess.run(
        ["ctest", "--test-dir", ROOT / "build", "--show-only=json-v1"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    tests = [(t["name"], t.get("command", [])) for t in json.loads(said)["tests"]]
    assert tests or pytest.skip("build/ was configured without C++ tests")
    return tests


def test_every_program_names_the_files_of_the_tree_that_it_reads():
    """A program that can open a file of the repository holds its path."""
    paths, seen = str(ROOT).encode() + b"/", 0
    for name, command in registered():
        assert command[0] == str(TOOL), f"{name} is registered without weft_run"
        reads = [word for word in command if word.startswith("--reads=")]
        program = pathlib.Path(command[command.index("--") + 1])
        if not program.exists() or not program.is_relative_to(ROOT):
            continue
        seen += 1
        with open(program, "rb") as file:
            held = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            at = held.find(str(ROOT).encode())
            while at >= 0:
                end = held.find(b"\0", at)
                text = held[at : min(end, at + 400)]
                path = text.decode(errors="replace").partition('"')[
                    0
                ]  # of __FILE__ in a macro's text
                own = text.startswith(paths) and path.endswith((".cpp", ".h", ".inl"))
                assert own or reads, f"{name} holds {path} and names no file with READS"
                at = held.find(str(ROOT).encode(), end)
    assert seen > 10 or not (ROOT / "build/tests/unit/base_test").exists()
