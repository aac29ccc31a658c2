# SPDX-License-Identifier: Apache-2.0
"""A hook of mkdocs: the parts of the site in the order in which a reader needs them, and the guides in the order of docs/index.md."""

import pathlib
import re

ORDER = ("Tutorial", "Guide", "Reference", "Targets", "Design", "Decisions")
INDEX = pathlib.Path(__file__).resolve().parent.parent / "docs/index.md"


def guides():
    """The files of the guides, as the table of docs/index.md lists them."""
    return re.findall(r"^\|.*\(guide/([\w-]+\.md)\)", INDEX.read_text("utf-8"), re.M)


def on_nav(nav, **_):
    def place(item):
        title = item.title if item.is_section else ""
        return ORDER.index(title) if title in ORDER else -1

    nav.items.sort(key=place)
    order = guides()

    def page(item):
        name = pathlib.PurePath(item.file.src_uri).name
        return order.index(name) if name in order else len(order)

    for section in nav.items:
        if section.is_section and section.title == "Guide":
            section.children.sort(key=page)
    return nav
