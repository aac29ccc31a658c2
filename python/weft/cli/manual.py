# SPDX-License-Identifier: Apache-2.0
"""``weft devices`` and ``weft errors``."""

import pathlib
import re

import weft
from weft._errors import error


def devices(args):
    def first(text):
        return text.splitlines()[0] if text else ""

    for d in weft.devices():
        state = "present" if d.available else "absent"
        what = first(d.description) if d.available else first(d.reason)
        print(f"{d.name:<12} {d.kind:<12} {state:<8} {what}")


def _names(known, asked):
    """Whether the slug begins so, or is one of the family, as array.{…}.dtype is of array.add.dtype."""
    family = re.escape(known).replace(re.escape("{…}"), "[a-z0-9_]+")
    return known.startswith(asked) or re.fullmatch(family, asked)


def errors(args):
    package = pathlib.Path(weft.__file__).resolve().parent
    places = [package / "errors.md", *(p / "docs/errors.md" for p in package.parents[:2])]
    page = next((p for p in places if p.exists()), None)
    if page is None:
        raise error(
            "io",
            "cli.errors.page",
            "the manual of errors is not part of this installation",
            notes=["looked for " + ", ".join(map(str, places))],
        )
    rows = [line for line in page.read_text().splitlines() if line.startswith("| `")]
    if args.slug:
        rows = [r for r in rows if _names(r.split("`")[1], args.slug)]
        if not rows:
            import difflib

            known = [line.split("`")[1] for line in page.read_text().splitlines() if "| `" in line]
            near = difflib.get_close_matches(args.slug, known, 3)
            raise error(
                "value",
                "cli.errors.slug",
                f'no error has the slug "{args.slug}", and none begins so',
                help=f"nearest: {', '.join(near)}" if near else "weft errors lists all",
            )
    print("\n".join(rows))
