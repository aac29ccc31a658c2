# SPDX-License-Identifier: Apache-2.0
"""Test programs of the build with one object replaced: a source is compiled with the build's own command, and the program
is linked again with that object before the libraries, so that it replaces the sound one. The tree stays as it is."""

import functools
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"


def run(command, **more):
    return subprocess.run(
        command,
        check=False,
        cwd=BUILD,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **more,
    )


def link_command(program):
    """The build's command that links a program or a Python module, without ninja's wrapping."""
    name = str(program.relative_to(BUILD) if program.is_relative_to(BUILD) else program)
    out = subprocess.run(
        ["ninja", "-C", str(BUILD), "-t", "commands", "-s", name],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    return out.splitlines()[-1]


@functools.cache
def compile_commands():
    rows = json.loads((BUILD / "compile_commands.json").read_text())
    return {row["file"]: row["command"] for row in rows}


def compile_command(source):
    if command := compile_commands().get(str(ROOT / source)):
        return command
    raise SystemExit(f"no compile command for {source}; run ./test first")


@functools.cache
def programs_by_name():
    """Executable files of the build's test and example folders."""
    found = {}
    for top in ("tests", "examples"):
        for folder, folders, names in os.walk(BUILD / top):
            folders[:] = [f for f in folders if f != "CMakeFiles"]
            for name in names:
                if os.access(path := pathlib.Path(folder) / name, os.X_OK):
                    found.setdefault(name, path)
    return found


def program_path(name):
    if name not in programs_by_name():
        raise SystemExit(f"{name} is not built; run ./test first")
    return programs_by_name()[name]


def compile_object(like, source, out, includes):
    """Compiles `source` with the command of the file `like` of the tree; `includes` comes before the tree's headers."""
    words = shlex.split(re.sub(r" -o \S+ -c \S+$", "", compile_command(like)))
    words += ["-w", "-o", str(out), "-c", str(source)]
    first = next(i for i, w in enumerate(words) if w.startswith("-I"))
    words[first:first] = ["-I", str(includes)]
    if shutil.which("ccache"):  # as the build does: the faulty file itself hardly ever changes
        sloppiness = "pch_defines,time_macros,include_file_mtime,include_file_ctime"
        words = ["env", f"CCACHE_SLOPPINESS={sloppiness}", "ccache", *words]
    return run(words)


def link(program, extra, out):
    """Links the program to `out` with the object `extra` before the libraries."""
    command = re.sub(r"^:? *&& ", "", link_command(program)).removesuffix(" && :")
    return run(re.sub(r" -o \S+ ", f" -o {out} {extra} ", command, count=1), shell=True)
