# SPDX-License-Identifier: Apache-2.0
"""``weft asm`` and ``weft dis``: machine code of a target with an instruction set, as text and back."""

import pathlib
import sys

from weft import _core
from weft._whole_file import write_whole


def assemble(args):
    source = pathlib.Path(args.file)
    words = _core.assemble(args.target, source.read_text(encoding="utf-8"), str(source))
    output = pathlib.Path(args.output) if args.output else source.with_suffix(".bin")
    write_whole(output, [words])
    if sys.stderr.isatty():
        print(f"wrote {output}: {len(words)} bytes", file=sys.stderr)


def disassemble(args):
    content = pathlib.Path(args.file).read_bytes()
    if content.startswith(b"WEFTMOD"):
        text = _core.load_module(args.file).source()
    else:
        text = _core.disassemble(args.target, content)
    if args.output:
        write_whole(args.output, [text.encode()])
    else:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
