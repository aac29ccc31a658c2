# SPDX-License-Identifier: Apache-2.0
"""``weft debug``: a program whose launches on simulated machines stop at breakpoints."""

import os
import sys

from .._core import shown
from .. import _debug
from .._errors import error
from .._script import run_script
from ..wse_tools import add_sdk_modules

_PYTHONS = ("python", "python3", "cs_python")


def _commands(files):
    lines = []
    for name in files:
        with open(name, encoding="utf-8") as file:
            lines += file.read().splitlines()
    return lines


def _run_csl(directory):
    from .. import wse

    try:
        runner = wse.SdkRuntime(directory, memcpy_required=False)
        runner.load()
        runner.run()
        runner.stop()
    except wse.WseError as reason:
        if _debug.has_quit(reason):
            return 0
        print(reason, file=sys.stderr)
        return 1
    return 0


def run(args):
    """Runs the program in this process, so that the debugger sees its launches."""
    program = list(args.program)
    if program and program[0] == "--":
        program.pop(0)
    if program and os.path.basename(program[0]) in _PYTHONS and not os.path.exists(program[0]):
        program.pop(0)
    if args.csl and program:
        raise error(
            "value",
            "cli.debug.program",
            f"--csl {args.csl} and the program {shown(program[0])} are both given",
            notes=["--csl is for a program that needs no host"],
            help=f"weft debug {' '.join(program)}, with the directory as the script's own argument",
        )
    if program and program[0].endswith(".weft"):
        raise error(
            "value",
            "cli.debug.program",
            f"{program[0]} is a tensor program, which no debugger runs by itself",
            notes=["legal: weft debug SCRIPT.py [ARGUMENT...], weft debug --csl DIRECTORY"],
            help=f"weft run {program[0]} --target ref, or debug a script that calls weft.build",
        )
    if not args.csl and not program:
        raise error(
            "value",
            "cli.debug.program",
            "there is no program to debug",
            notes=["legal: weft debug SCRIPT.py [ARGUMENT...], weft debug --csl DIRECTORY"],
        )
    if program and not os.path.isfile(program[0]):
        raise error(
            "value",
            "cli.debug.program",
            f"there is no file {shown(program[0])}",
            notes=["legal: a Python script and its arguments"],
        )
    commands = _commands(args.command)
    add_sdk_modules()
    _debug.begin(commands)
    return _run_csl(args.csl) if args.csl else run_script(program)
