# SPDX-License-Identifier: Apache-2.0
"""Prepares a copy of docs/ for the site: tools/site_pages.py FOLDER

Links to files outside docs/ (sources, README.md) have no page there: their text stays, with the file's place in the tree.
A page of which notebooks/ holds a notebook gets a link to it.
In code of tables, a bar needs no backslash for the site's Markdown, which would show it.
"""

import pathlib
import re
import sys

LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")
ROW = re.compile(r"^ *\|.*$", re.M)
CODE = re.compile(r"(`+).+?\1")


def prepare(page, folder):
    def replace(match):
        text, target = match.groups()
        path = target.partition("#")[0]
        if "://" in target or not path:
            return match[0]
        there = (page.parent / path).resolve()
        if there.is_relative_to(folder) and there.is_file():
            return match[0]
        name = re.sub(r"^(\.\./)+", "", path)
        return f"{text}" if name in text else f"{text} (`{name}`)"

    parts = re.split(r"(^```.*?^```)", page.read_text("utf-8"), flags=re.M | re.S)

    def bars(row):
        return CODE.sub(lambda code: code[0].replace(r"\|", "|"), row[0])

    parts[::2] = [ROW.sub(bars, LINK.sub(replace, part)) for part in parts[::2]]
    # What tests read after the language is no part of a fence to the site's Markdown.
    parts[1::2] = [re.sub(r"\A(```\w+).*", r"\1", part) for part in parts[1::2]]
    made = folder / "notebooks" / f"{page.stem}.ipynb"
    if made.exists():
        parts.append(f"\n[This page as a notebook](../notebooks/{made.name})\n")
    page.write_text("".join(parts), "utf-8")


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    for page in folder.rglob("*.md"):
        prepare(page, folder)


if __name__ == "__main__":
    main()
