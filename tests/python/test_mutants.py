# SPDX-License-Identifier: Apache-2.0
"""tools/mutants: what is planted, and that a fault is there only when it is turned on."""

import pathlib
import subprocess
import sys

import pytest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools/mutants"
sys.path.insert(0, str(TOOLS))
import points  # noqa: E402

PYTHON = '''
"""1 + 1 in a text"""
LIMIT = 1 + 1

def f(x, least=0):
    if not x > least and x != 3:
        return [x - 1, True][least]
    total = f"{x + 1}"
    for i in range(3):
        if i == 1:
            continue
        total += "@"
    raise ValueError(0 if x else 1)
'''


def test_places_in_python():
    found = {line: {p.new for p in places} for line, places in points.python_points(PYTHON).items()}
    lines = PYTHON.split("\n")
    assert [lines[n].strip()[:11] for n in sorted(found)] == [
        "if not x > ",
        "return [x -",
        "if i == 1:",
        "continue",
        'total += "@',
    ]  # no default, no text, nothing outside of functions, no text of an error
    assert found[5] == {"not x > least or x != 3", "x > least", "x >= least", "x == 3"}
    assert found[6] == {"x + 1", "0", "False"}


def test_every_fault_in_python_is_there_when_it_is_turned_on():
    """Each alone, against the function without one."""
    source = "def f(a, b):\n    out = [a + b, a < b]\n    if a and not b:\n        out.append(1)\n    return out\n"
    cases = [(a, b) for a in range(3) for b in range(3)]
    places = [p for line in points.python_points(source).values() for p in line]
    assert len(places) == 6
    for point in places:
        text = points.plant(source.encode(), {7: point})
        on = []
        space = {"_weft_mutant": lambda number: number in on}
        exec(compile(text, "f", "exec"), space)
        sound = {}
        exec(source, sound)
        assert all(space["f"](*case) == sound["f"](*case) for case in cases)
        on.append(7)
        assert any(space["f"](*case) != sound["f"](*case) for case in cases), point


CPP = r"""// 1 + 1
#include <algorithm>
#include <cstdio>
#include <vector>
constexpr int kOne = 0 + 1;
template <typename T> T id(T x) { return x; }
int count(const std::vector<int>& all, int least) {
  int sum = 0;
  for (int i = 0; i < 5; ++i) {
    if (all[i] == '1' || least > 2) continue;
    sum = sum + std::max(all[i], id<int>(least)) * 2;
  }
  const char* text = "a == b";
  const char* raw = R"(a " < 1)";
  std::puts(text), std::puts(raw);
  return sum;
}
int main() { return count({6, 7, '1', 4, 5}, 2) == 44 ? 1'0 : 11; }
"""


def test_places_in_cpp(tmp_path):
    """All are planted in one program; each changes its status when it is turned on, and without one it is as before."""
    text = CPP.replace("'1'", "49")
    found = points.cpp_points(text)
    assert {n + 1 for n in found} == {8, 9, 10, 11, 15}
    chosen = {}
    for point in (p for line in found.values() for p in line):
        if not any(point.begin < o.end and o.begin < point.end for o in chosen.values()):
            chosen[len(chosen) + 40] = point
    assert {p.new for p in chosen.values()} >= {"1", "i <= 5", "all[i] != 49 || least > 2"}
    source, page = tmp_path / "f.cpp", tmp_path / "page"
    source.write_text('extern "C" bool weft_mutant(int) noexcept; ' + points.plant(text, chosen))
    program = str(tmp_path / "f")
    build = ["c++", "-std=c++20", "-w", str(source), str(TOOLS / "mark.cpp"), "-o", program]
    subprocess.run(build, check=True)

    def run(number):
        data = bytearray(1 << 16)
        if number is not None:
            data[number] = 2
        page.write_bytes(data)
        done = subprocess.run([program], env={"WEFT_MUTANTS": str(page)}, capture_output=True)
        return done.returncode, done.stdout, {n for n in chosen if page.read_bytes()[n] & 1}

    sound = run(None)
    assert sound == (10, b'a == b\na " < 1\n', {*chosen})
    silent = {chosen[n].new for n in chosen if run(n)[:2] == sound[:2]}
    assert silent <= {"i <= 5"}  # reads behind the end, which may go unseen


@pytest.mark.parametrize("text", ["x = '\\''; y = 1'000 < z;", 'R"x(a )" < b)x" < c;'])
def test_texts_are_left_alone(text):
    assert len(points.quiet(text)) == len(text)
    assert points.quiet(text).count(" < ") == 1
