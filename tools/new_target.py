#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the skeleton of a target from the toy machine of docs/guide/new-target.md: tools/new_target.py NAME

A folder src/weft/targets/NAME with a working back end, a line in targets.list, a test, a page under docs/targets. It
builds and runs at once; change one function at a time.
"""

import pathlib
import re
import shutil
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parent.parent

PAGE = """# {name}

What it is. Source of the facts.

## Table
Element types, memories, axes, instructions, limits: what `info()` says and why.

## What it cannot do
Each refusal of `accepts()`, by slug.

## Lowering
The list of passes, the private ones.

## Device
Hardware, simulator or both; what is counted.

## Figures
Each with its command, machine and date.
"""

TEST = """// SPDX-License-Identifier: Apache-2.0
#include "../../expect_error.h"
#include "../run_program.h"
#include "weft/ir/build.h"
#include "weft/ir/text.h"

namespace weft {{
namespace {{

using namespace testing;

TEST({Name}Target, runs_the_seeds_programs) {{
  Ref<runtime::Device> device = open_device("{name}");
  for (const Program& p :
       {{vector_add_program(100, 10), matmul_program(8, 8, 8, 1, 2, 2, 2, 2, 2)}})
    EXPECT_LE(run_and_compare(p, build(ir::make_module(p.meaning), "{name}"), device, 3), 1e-5)
        << p.name;
}}

TEST({Name}Target, refuses_what_it_cannot_do) {{
  expect_error(ErrorKind::value, "{name}.option.unknown", {{"\\"fast\\""}},
               [] {{ open_device("{name}:fast"); }});
  auto scaled = ir::make_module(ir::parse_func(
      "@T.prim_func\\ndef main(A: T.Buffer((4,), \\"float32\\"), s: T.float32):\\n"
      "    for i in range(4):\\n        with T.block(\\"A\\"):\\n"
      "            vi = T.axis.spatial(4, i)\\n            A[vi] = A[vi] * s\\n"));
  expect_error(ErrorKind::lower, "{name}.accepts.scalar", {{"\\"s\\" of main"}},
               [&] {{ build(scaled, "{name}"); }});
}}

}}  // namespace
}}  // namespace weft
"""


def main():
    if len(sys.argv) != 2 or not re.fullmatch(r"[a-z][a-z0-9_]*", sys.argv[1]):
        print(__doc__, file=sys.stderr)
        return 2
    name = sys.argv[1]
    target, test = root / "src/weft/targets" / name, root / "tests/targets" / name
    listed = (root / "src/weft/targets/targets.list").read_text()
    if target.exists() or name in listed.split():
        print(f"there is already a target {name}", file=sys.stderr)
        return 1
    code = (root / "tests/targets/toy/backend.cpp").read_text()
    code = re.sub(r"\btoy\b", name, code).replace("Toy", name.capitalize())
    code = code.replace("docs/guide/new-target.md", f"docs/targets/{name}.md")
    target.mkdir()
    (target / "backend.cpp").write_text(code)
    (target / "CMakeLists.txt").write_text(
        f"weft_target({name} DEPS base ir pass target runtime SOURCES backend.cpp)\n"
    )
    (root / "src/weft/targets/targets.list").write_text(listed.rstrip("\n") + f"\n{name}\n")
    test.mkdir()
    (test / f"{name}_test.cpp").write_text(TEST.format(name=name, Name=name.capitalize()))
    (test / "CMakeLists.txt").write_text(
        f"weft_test({name}_test SOURCES {name}_test.cpp COMPONENTS registry schedule LABELS target)\n"
    )
    (root / f"docs/targets/{name}.md").write_text(PAGE.format(name=name))
    if shutil.which("clang-format"):  # lines break elsewhere under another name
        subprocess.run(
            ["clang-format", "-i", target / "backend.cpp", test / f"{name}_test.cpp"], check=True
        )
    print(f"wrote {target.relative_to(root)}, {test.relative_to(root)}, docs/targets/{name}.md")
    print(
        f"now: tools/setup test && cmake --preset fast -DWEFT_TESTS=ON && ninja -C build {name}_test && ctest --test-dir build -R {name}_test"
        "\n     (without the target's name ninja builds everything, which takes many minutes);"
        "\n     tools/check_errors.py, tools/check_layers.py and tools/check_format are green from the start"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
