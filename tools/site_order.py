# SPDX-License-Identifier: Apache-2.0
"""A hook of mkdocs: the parts of the site in the order in which a reader needs them, not that of the alphabet."""

ORDER = ("Tutorial", "Guide", "Reference", "Targets", "Design", "Decisions")


def on_nav(nav, **_):
    def place(item):
        title = item.title if item.is_section else ""
        return ORDER.index(title) if title in ORDER else -1

    nav.items.sort(key=place)
    return nav
