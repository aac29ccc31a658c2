# SPDX-License-Identifier: Apache-2.0
"""The documentation is true: its Python runs, its links lead somewhere, every flag of the command line is named."""

import argparse
import importlib.util
import linecache
import pathlib
import re
import shlex
import subprocess
import sys

import pytest
import weft
from weft.cli import parser

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(
        r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    ):
        if "://" not in target and not target.startswith("#"):
            assert (page.parent / target.partition("#")[0]).exists(), target


# Blocks that are not run, by the rest of the line that opens them: "python not-run: why".
BLOCK = re.compile(r"^( *)```(.*)\n((?:.*\n)*?)\1```$", re.M)
TESTED_ELSEWHERE = {  # language, or language and page: what looks at such blocks
    "cmake": "tests/package/run.cmake",
    "def": "tests/python/test_guide.py",
    "sh armhf": "tools/check_arm",
    "sh arm64": "tools/check_arm",
    ("cpp", "docs/guide/new-target.md"): "tests/targets/toy/toy_test.cpp",
    ("cpp", "docs/tutorial/06-qpu.md"): "tests/python/test_docs.py",
    ("cpp", "docs/guide/from-qpulib.md"): "tests/python/test_commands.py",
    ("csl", "docs/guide/debugging.md"): "tests/python/test_debug.py",
    ("python", "docs/guide/one-call.md"): "tests/python/test_guide.py",
}
NOT_PROGRAMS = {"", "text", "ini"}  # pictures, output (compared below), files of others


def blocks(page):
    """(language, code) of each block of a page."""
    for _, words, code in BLOCK.findall((ROOT / page).read_text()):
        yield words.strip(), code


def with_python(page):
    return any(
        words == "python" and ("python", page) not in TESTED_ELSEWHERE for words, _ in blocks(page)
    )


NAMES = [str(p.relative_to(ROOT)) for p in PAGES]


def like(shown, printed):
    """Whether the output is what the page shows; there, three points stand for any text."""
    pattern = ".*?".join(re.escape(part) for part in shown.strip().split("..."))
    return re.fullmatch(pattern, printed.strip(), re.S) is not None


# Pages that need more of a build than its core: targets, or the package's remote devices.
NEEDS = {
    "README.md": ["qpu", "wse"],
    "docs/index.md": ["qpu", "wse"],
    "docs/guide/torch.md": ["qpu"],
    "docs/guide/from-qpulib.md": ["qpu"],
    "docs/guide/from-csl.md": ["wse"],
    "docs/tutorial/05-wafer.md": ["wse"],
}
REMOTE = ["docs/tutorial/08-remote.md"]


def marks(page, needs=NEEDS, remote=REMOTE):
    wanted = [pytest.mark.targets(*needs[page])] if page in needs else []
    if page in remote:
        absent = importlib.util.find_spec("weft._rpc") is None
        wanted.append(pytest.mark.skipif(absent, reason="built without gRPC"))
    return wanted


@pytest.mark.parametrize("page", [pytest.param(n, marks=marks(n)) for n in NAMES if with_python(n)])
def test_python_blocks_print_what_the_page_shows(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    namespace, printed, ran = {"__name__": page}, "", 0
    for words, code in blocks(page):
        if words == "python":
            place = f"<{page}, block {ran + 1}>"
            # T.prim_func reads its function's text, as inspect does.
            linecache.cache[place] = (len(code), None, code.splitlines(True), place)
            exec(compile(code, place, "exec"), namespace)  # noqa: S102
            printed, ran = capsys.readouterr().out, ran + 1
        elif words == "text" and ran:
            assert like(code, printed), f"{page}: the page shows\n{code}\nbut it prints\n{printed}"
    assert ran


def test_every_block_is_run_or_says_why_not():
    seen = set()
    for page in NAMES:
        for words, _ in blocks(page):
            language, _, reason = words.partition(" not-run: ")
            # tests/python/test_commands.py looks at consoles
            known = language in NOT_PROGRAMS | {"python", "console"} or any(
                key in TESTED_ELSEWHERE for key in (language, (language, page))
            )
            assert known or len(reason) > 10, f"{page}: ```{words} is neither run nor marked"
            seen.add(language)
    assert {"python", "console", "cpp", "sh armhf"} <= seen
    for checker in TESTED_ELSEWHERE.values():
        assert (ROOT / checker).exists()


COMMANDS = (
    "python",
    "pip",
    "weft",
    "cslc",
    "cs_python",
    "cmake",
    "ninja",
    "git",
    "sudo",
    "apt-get",
    "./",
    "tools/",
    "$ ",
)


def hidden(code):
    """Why a block without a language should have one: it is a program, or lines of a terminal."""
    for line in code.splitlines():
        if line.startswith(COMMANDS):
            return f"a command: {line}"
    try:
        return "Python" if compile(code, "block", "exec").co_code and code.strip() else ""
    except SyntaxError:
        return ""


def test_no_command_or_program_hides_in_a_block_without_a_language():
    for page in NAMES:
        for words, code in blocks(page):
            if words == "":
                assert not hidden(code), f"{page}: {hidden(code)}\n{code}"
    for page in PAGES:  # four spaces would be a block, too
        outside = BLOCK.sub("", page.read_text())
        for line in re.findall(r"^\n    (\S.*)$", outside, re.M):
            assert not line.startswith(COMMANDS), f"{page}: {line}"
    assert hidden("weft devices\n") and hidden("x = f(1)\n")
    assert not hidden("a, b ──► c\n") and not hidden("src/x.cpp   everything\n")


def spoken_commands(page):
    """The commands of weft in a page's sentences and tables that could be typed as they are."""
    prose = BLOCK.sub("", (ROOT / page).read_text())
    for text in re.findall(r"`(?:python3? -m )?(weft [^`\n]*)`", prose):
        # A pattern stands for several commands: alternatives, parts that may be left out, points.
        if not re.search(r"[\[\]<>…]|\.\.\.|\\?\||\b[A-Z]+_[A-Z]+\b", text):
            yield shlex.split(text)[1:]


def test_commands_in_sentences_parse():
    found, names = [], {a for s in verbs().values() for a in (s.prog.split()[-1],)}
    for page in NAMES:
        for words in spoken_commands(page):
            if words and words[0] in names:
                needed = {
                    "errors",
                    "docs",
                    "devices",
                    "demo",
                    "bench",
                    "selftest",
                    "playground",
                    "debug",
                }
                if len(words) == 1 and words[0] not in needed:
                    continue  # the verb's name
                try:
                    parser().parse_args(words)
                except SystemExit:
                    raise AssertionError(f"{page}: weft {' '.join(words)}") from None
                found.append(words[0])
            else:
                assert words and words[0].isupper(), f"{page}: weft {' '.join(words)}"
    assert len(found) > 40 and {"compile", "run", "serve", "debug", "new"} <= set(found)


def test_the_tutorials_kernel_compiles(tmp_path):
    (code,) = [code for words, code in blocks("docs/tutorial/06-qpu.md") if words == "cpp"]
    (tmp_path / "triple.cpp").write_text(code + "\nauto kernel = compile(triple);\n")
    done = subprocess.run(
        ["c++", "-std=c++20", "-fsyntax-only", f"-I{ROOT / 'src'}", tmp_path / "triple.cpp"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_output_that_differs_is_seen():
    assert like("(3, ...)\nyes\n", "(3, 1)\nyes\n")
    assert not like("(3, 1)\nyes\n", "(3, 1)\nno\n")
    assert not like("yes", "yes\nand more")


def test_weft_commands_of_console_blocks_parse():
    lines = [
        line
        for page in NAMES
        for words, code in blocks(page)
        if words.startswith("console")
        for line in code.splitlines()
    ]
    found = []
    for line in lines:
        line = line.partition("  #")[0]
        command = re.match(r"\$ (?:\w+=\S+ )*(?:weft|\S*python -m weft) (.*)", line)
        if command:
            found.append(parser().parse_args(shlex.split(command[1])).verb)
        local = re.match(r"\$ (?:git \S+.*&& cd weft|\./(demo|test|tools/\w+)\b)", line)
        assert not local or not local[1] or (ROOT / local[1]).exists(), line
    assert {"devices", "serve"} <= set(found)


def verbs():
    """The parser of each verb of `weft`."""
    return next(a for a in parser()._actions if isinstance(a, argparse._SubParsersAction)).choices


def test_every_flag_is_documented():
    page = (ROOT / "docs/guide/command-line.md").read_text()
    for name, verb in verbs().items():
        assert f"`weft {name}" in page, name
        for action in verb._actions:
            for option in action.option_strings:
                if option not in ("-h", "--help"):
                    assert f"{option}" in page, f"weft {name} {option}"
            assert action.help or not action.option_strings or action.dest == "output", (
                name,
                action.dest,
            )


def test_the_version_is_one():
    assert f'version = "{weft.__version__}"' in (ROOT / "pyproject.toml").read_text()
    assert f"VERSION {weft.__version__}" in (ROOT / "CMakeLists.txt").read_text()


@pytest.mark.targets("qpu", "vta", "wse")  # their tables fill pages too
def test_the_generated_pages_are_the_tables():
    done = subprocess.run(
        [sys.executable, ROOT / "tools/reference.py", "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_options_that_errors_recommend_exist():
    """A repair such as "--set NAME=4x8" names an option of some verb of weft, cslc, cs_python, pip or cmake."""
    known = {o for verb in verbs().values() for a in verb._actions for o in a.option_strings}
    said = set()
    for source in (ROOT / "python/weft/cli").glob("*.py"):
        for text in re.findall(r'help=f?"([^"]*)"', source.read_text()):
            if "--" in text and source.name != "__init__.py":
                said |= {(source.name, option) for option in re.findall(r"--[a-z-]+", text)}
    assert len(said) >= 4 and not {(f, o) for f, o in said if o not in known}
