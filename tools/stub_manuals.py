# SPDX-License-Identifier: Apache-2.0
"""Docstrings for the stubs of tools/make_stubs.py: editors show them where the pointer rests on a name.

Functions get their first paragraph. Steps of a schedule are made at run time, so no editor finds their text elsewhere: they get all of it.
"""

import inspect
import re

LINE = re.compile(r"^( *)def (\w+)\((.*): \.\.\.((?:  #.*)?)$")


def manual(value, whole):
    """The docstring without the signature that bindings put first."""
    paragraphs = (inspect.getdoc(value) or "").split("\n\n")
    if len(paragraphs) > 1 and re.fullmatch(r"\w+\(.*\)(?: -> .*)?", paragraphs[0].strip()):
        paragraphs = paragraphs[1:]
    return "\n\n".join(paragraphs) if whole else paragraphs[0]


def with_manuals(text, module, whole=()):
    """The text of a stub with docstrings. `whole`: classes whose methods get all of theirs."""
    out, owner = [], None
    for line in text.splitlines():
        if opened := re.match(r"class (\w+)", line):
            owner = opened[1]
        found = LINE.match(line)
        if found and not found[1]:
            owner = None
        holder = getattr(module, owner, None) if owner else module
        value = inspect.getattr_static(holder, found[2], None) if found and holder else None
        value = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        own = value is not None and not (owner and found[2].startswith("__"))
        said = (
            manual(value, owner in whole).replace("\\", "\\\\").replace('"""', "'''") if own else ""
        )
        if not said:
            out.append(line)
            continue
        indent = found[1] + "    "
        shown = f"\n{indent}".join(said.splitlines()).replace(f"\n{indent}\n", "\n\n")
        end = f"\n{indent}" if "\n" in said or said.endswith('"') else ""
        out += [f"{found[1]}def {found[2]}({found[3]}:{found[4]}", f'{indent}"""{shown}{end}"""']
    return "\n".join(out) + ("\n" if text.endswith("\n") else "")
