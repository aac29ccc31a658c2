#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a skeleton into the tree, with a test that fails until it is filled in: tools/new.py op|step|pass|target|rule NAME

The same as `weft new`. The skeletons are in tools/skeletons; the places of each kind are explained in docs/guide/adding.md.
Nothing is written when the name is taken or a place is not found.
"""

import pathlib
import re
import shutil
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parent.parent
# Commands as they are typed at the top of the tree.
PYTHON = ".venv/bin/python"
DOCUMENT = (
    f"ninja -C build weft_core && {PYTHON} tools/make_stubs.py && {PYTHON} tools/reference.py"
)
ONCE = "tools/setup test && cmake build -DWEFT_TESTS=ON"  # after ./demo, which builds no tests


class Refused(Exception):
    """Why nothing was written."""


class Changes:
    """Files to write, all at the end."""

    def __init__(self):
        self.texts = {}

    def read(self, path):
        return self.texts.get(path) or (root / path).read_text("utf-8")

    def create(self, path, skeleton, name):
        if (root / path).exists():
            raise Refused(f"{path} exists already")
        text = (root / "tools/skeletons" / f"{skeleton}.in").read_text("utf-8")
        self.texts[path] = re.sub(r"\bTitle(?=\b|Decisions)", title(name), text).replace(
            "NAME", name
        )

    def insert(self, path, line, after):
        """Puts a line behind the last match of a pattern that begins a line."""
        text = self.read(path)
        found = list(re.finditer(rf"^(?:{after}).*\n", text, re.MULTILINE))
        if not found:
            raise Refused(f"{path} has no line that begins with {after}")
        self.texts[path] = text[: found[-1].end()] + line + "\n" + text[found[-1].end() :]

    def include(self, path, header):
        """Puts an include among the sorted ones of the same folder."""
        text, line = self.read(path), f'#include "{header}"\n'
        folder = re.escape(header.rsplit("/", 1)[0])
        found = list(re.finditer(rf'^#include "{folder}/[^/"]+"\n', text, re.MULTILINE))
        own = f'"{path.removeprefix("src/").removesuffix(".cpp")}.h"'
        found = [m for m in found if own not in m[0]]  # a source's own header stays first
        if not found:
            raise Refused(f"{path} includes nothing of {header.rsplit('/', 1)[0]}")
        later = next((m for m in found if m[0] > line), None)
        at = later.start() if later else found[-1].end()
        self.texts[path] = text[:at] + line + text[at:]

    def source(self, path, name):
        """Adds a source to the weft_component of a CMakeLists.txt."""
        text = self.read(path)
        end = re.search(r"\.cpp\)", text)
        if not text.startswith("weft_component(") or not end:
            raise Refused(f"{path} has no list of sources that ends in .cpp)")
        self.texts[path] = text[: end.start()] + f".cpp {name})" + text[end.end() :]

    def write(self):
        for path, text in self.texts.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, "utf-8")
        code = [path for path in self.texts if path.endswith((".h", ".cpp"))]
        if code and shutil.which("clang-format"):  # lines break elsewhere under another name
            subprocess.run(["clang-format", "-i", *code], cwd=root, check=True)


def title(name):
    return "".join(word.capitalize() for word in name.split("_"))


def add_test(changes, name, components):
    changes.create(
        f"tests/unit/{name}_test.cpp", f"{name.split('_')[0]}_test.cpp", name.split("_", 1)[1]
    )
    line = f"weft_test({name}_test SOURCES {name}_test.cpp COMPONENTS {components} LABELS pure)"
    changes.insert("tests/unit/CMakeLists.txt", line, r"weft_test\(")
    return f"ninja -C build {name}_test && ctest --test-dir build -R '^{name}_test$' --output-on-failure"


def new_op(name, changes):
    table = "src/weft/elements/elementwise.def"
    if re.search(rf"\((?:{name}),", changes.read(table)):
        raise Refused(f"{table} has an operation {name} already")
    row = f'UNARY({name}, same, F, (x), (g), any, "Say what {name} computes.")'
    changes.insert(table, row, r"UNARY\(")
    tests = "tests/python/test_ops.py"
    text = changes.read(tests)
    if "\nOWN = {\n" not in text:
        raise Refused(f"{tests} has no table OWN")
    own = f'    "{name}": lambda x: np.full_like(x, np.nan),  # its values, in NumPy\n'
    changes.texts[tests] = text.replace("\nOWN = {\n", "\nOWN = {\n" + own)
    return (
        "tools/setup test",
        DOCUMENT,
        f"PYTHONPATH=python {PYTHON} -m pytest tests/python/test_ops.py -k {name}",
    )


def new_pass(name, changes):
    changes.create(f"src/weft/pass/{name}.h", "pass.h", name)
    changes.create(f"src/weft/pass/{name}.cpp", "pass.cpp", name)
    pipeline = "src/weft/target/pipeline.cpp"
    changes.include(pipeline, f"weft/pass/{name}.h")
    changes.insert(pipeline, f'  add("{name}", pass::{name});', r'  add\("simplify"')
    return (
        ONCE,
        add_test(changes, f"pass_{name}", "target pass arith ir base"),
        DOCUMENT,
    )


def new_step(name, changes):
    folder = "src/weft/schedule"
    changes.create(f"{folder}/primitives/{name}.h", "step.h", name)
    changes.create(f"{folder}/primitives/{name}.cpp", "step.cpp", name)
    changes.insert(
        f"{folder}/primitives.def", f"WEFT_PRIMITIVE({title(name)})", r"WEFT_PRIMITIVE\("
    )
    changes.include(f"{folder}/primitives/all.h", f"weft/schedule/primitives/{name}.h")
    return (
        ONCE,
        add_test(changes, f"step_{name}", "schedule arith ir base"),
        DOCUMENT,
    )


def new_rule(name, changes):
    changes.create(f"src/weft/rules/{name}.h", "rule.h", name)
    changes.create(f"src/weft/rules/{name}.cpp", "rule.cpp", name)
    changes.source("src/weft/rules/CMakeLists.txt", f"{name}.cpp")
    table = "src/weft/rules/grid.cpp"
    changes.include(table, f"weft/rules/{name}.h")
    row = f"""    {{"{name}",
     [](const Nest& nest, const Facts& facts, bool) {{ return match_{name}(nest, facts).has_value(); }},
     [](Schedule& sch, const Nest& nest, const Asked& asked) {{
       schedule_{name}(sch, nest, *match_{name}(nest, asked.facts));
     }}}},"""
    changes.insert(table, row, r"constexpr Rule kRules\[\]")
    page = "docs/design/rules.md"
    text = changes.read(page)
    if "\n**fallback.**" not in text:
        raise Refused(f"{page} has no paragraph **fallback.**")
    text = text.replace(
        "\n**fallback.**", f"\n**{name}.** Say which blocks it takes.\n\n**fallback.**"
    )
    changes.texts[page] = text
    return ONCE, add_test(changes, f"rule_{name}", "rules schedule pass arith ir base")


def new_target(name, changes):
    done = subprocess.run([sys.executable, root / "tools/new_target.py", name])
    raise SystemExit(done.returncode)


KINDS = {
    "op": new_op,
    "step": new_step,
    "pass": new_pass,
    "target": new_target,
    "rule": new_rule,
}


def main(words):
    named = len(words) == 2 and re.fullmatch(r"[a-z][a-z0-9_]*", words[1])
    if not named or words[0] not in KINDS:
        print(f"usage: weft new {'|'.join(KINDS)} NAME", file=sys.stderr)
        if len(words) == 2 and not named:
            print(
                f'weft new: error: "{words[1]}" names no file and no function:\n'
                "  small letters, digits and _, a letter first (two_words)",
                file=sys.stderr,
            )
        return 2
    kind, name = words
    changes = Changes()
    try:
        commands = KINDS[kind](name, changes)
    except Refused as refusal:
        print(f"nothing was written: {refusal}", file=sys.stderr)
        return 1
    changes.write()
    print(f"{kind} {name}:")
    for path in changes.texts:
        print(f"  {path}")
    print("The test fails until the skeleton is filled in; the first line is needed once:")
    for command in commands:
        print(f"  {command}")
    print("docs/guide/adding.md explains each place.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
