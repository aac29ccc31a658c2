# SPDX-License-Identifier: Apache-2.0
"""``weft asm`` and ``weft dis``: machine code of a target with an instruction set, as text and back."""

import os
import pathlib
import sys

from weft import _core
from weft.cli import content
from weft._whole_file import write_whole


def assemble(args):
    source = pathlib.Path(args.file)
    name = os.fsencode(source).decode("utf-8", "backslashreplace")  # as errors print it
    words = _core.assemble(args.target, content(source).decode("utf-8"), name)
    output = pathlib.Path(args.output) if args.output else source.with_suffix(".bin")
    write_whole(output, [words])
    if sys.stderr.isatty():
        print(f"wrote {output}: {len(words)} bytes", file=sys.stderr)


def disassemble(args):
    found = content(args.file)
    if found.startswith(b"WEFTMOD"):
        text = _core.load_module(args.file).source()
    else:
        text = _core.disassemble(args.target, found)
    if args.output:
        write_whole(args.output, [text.encode()])
    else:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
