# SPDX-License-Identifier: Apache-2.0
"""Every ```python block of the documents runs, one page one namespace, in order; a ```text block right behind one is what
it prints (`...` stands for anything). A block that must not run says why in the line above it: `<!-- not run: reason -->`."""

import contextlib
import doctest
import io
import linecache
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = sorted(p for p in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)


def blocks(text):
    """(language, body, line of the body, reason for not running or None, what it must print or None)"""
    found = [(m.group(1), m.group(2), m.start(), m.end()) for m in FENCE.finditer(text)]
    for index, (language, body, start, end) in enumerate(found):
        if language != "python":
            continue
        above = text[:start].rstrip("\n").rsplit("\n", 1)[-1]
        skip = re.fullmatch(r"<!-- not run: (.+) -->", above)
        expected = None
        if index + 1 < len(found):
            next_language, next_body, next_start, _ = found[index + 1]
            if next_language == "text" and not text[end:next_start].strip():
                expected = next_body
        yield body, text[:start].count("\n") + 2, skip and skip.group(1), expected


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_page(page, tmp_path, monkeypatch):
    text = page.read_text()
    assert text.count("```") % 2 == 0, "a fence is not closed"
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__page__"}
    for number, (body, line, skip, expected) in enumerate(blocks(text)):
        if skip:
            continue
        # The text form reads its own source: the page's block must be findable by inspect.
        name = f"{page.relative_to(ROOT)}[{number}]"
        source = "\n" * (line - 1) + body
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(source, name, "exec"), namespace)
        if expected is not None:
            checker = doctest.OutputChecker()
            flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            got = out.getvalue()
            assert checker.check_output(expected, got, flags), (
                f"{name} line {line}: printed\n{got}\ninstead of\n{expected}"
            )


def test_the_harness_sees_a_wrong_page(tmp_path):
    text = "```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n"
    ((body, line, skip, expected),) = blocks(text)
    assert (body, line, skip, expected) == ("print(1 + 1)\n", 2, None, "3\n")
    assert not doctest.OutputChecker().check_output(expected, "2\n", 0)
    ((_, _, skip, _),) = blocks("<!-- not run: needs a card -->\n```python\n1\n```\n")
    assert skip == "needs a card"
