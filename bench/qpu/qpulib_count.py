# SPDX-License-Identifier: Apache-2.0
"""QPULib's own programs, compiled against QPULib and against weft: instructions that both emulators execute.

git clone https://github.com/mn416/QPULib; ninja weft_qpu; python bench/qpu/qpulib_count.py QPULib

Only the include and the namespace lines change (and a main that counts). A counter goes into a copy of QPULib's emulator;
retries of a semaphore that blocks are not counted. What the programs print is compared, numbers to 1e-3 of the largest
(QPULib's emulator rounds to nearest, the machine toward zero).
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

# name, file, changes to its text, limit on the ratio
PROGRAMS = [
    ("Hello", "Hello", [], 1.0),
    ("ID (12 QPUs)", "ID", [], 1.0),
    ("Tri", "Tri", [], 1.0),
    ("TriFloat", "TriFloat", [], 1.0),
    ("GCD", "GCD", [], 1.0),
    ("MultiTri (4 QPUs)", "MultiTri", [], 1.0),
    ("OET", "OET", [], 1.0),
    ("ReqRecv", "ReqRecv", [], 1.0),
    ("Print", "Print", [], 1.0),
] + [
    (
        f"Rot3D {version} ({qpus} QPUs, 19200)",
        "Rot3D",
        [
            (r"compile\(rot3D_3\)", f"compile(rot3D_{version})"),
            (r"setNumQPUs\(12\)", f"setNumQPUs({qpus})"),
            (r"//(for \(int i = 0; i < N; i\+\+\))", r"\1"),
            (r"//(  printf\(\"%f %f)", r"\1"),
        ],
        0.6,
    )
    for version, qpus in ((1, 1), (2, 1), (3, 12))
] + [
    (
        f"HeatMap ({qpus} QPUs, 512 x 504, one step)",
        "HeatMap",
        [(r"NSTEPS = 1500", "NSTEPS = 1"), (r"NQPUS  = 1\b", f"NQPUS = {qpus}")],
        0.6,
    )
    for qpus in (1, 12)
] + [("the first tour's GEMV, its weights given index() (4 QPUs, 100 x 1024)", None, [], 0.6)]

GEMV = """
#include <QPULib.h>
struct Stream {
  Ptr<Float> at;
  Float value, coming;
  void open(Ptr<Float> p) { gather(p); value = 0; at = p + 16; }
  void fill() { receive(coming); gather(at); }
  void step() { at = at + 16; gather(at); value = coming; receive(coming); }
  void close() { receive(coming); }
};
void product(Ptr<Float> a, Ptr<Float> x, Ptr<Float> out, Int pitch, Int width, Int height) {
  Stream row, w;
  a = a + pitch * me() + index();
  For (Int y = me(), y < height, y = y + numQPUs())
    Ptr<Float> p = out + y * 16;
    row.open(a); w.open(x + index());
    row.fill(); w.fill();
    Float sum = 0;
    For (Int i = 0, i < width, i = i + 16)
      row.step(); w.step();
      sum = sum + row.value * w.value;
    End
    store(sum, p + index());
    row.close(); w.close();
    a = a + pitch * numQPUs();
  End
}
int main() {
  const int H = 100, W = 1024;
  SharedArray<float> a(H * W + 32), x(W + 32), out(H * 16);
  for (int i = 0; i < H * W; i++) a[i] = (float)(i % 97) / 97.0f;
  for (int i = 0; i < W; i++) x[i] = (float)(i % 89) / 89.0f;
  auto k = compile(product);
  k.setNumQPUs(4);
  k(&a, &x, &out, W, W, H);
  for (int y = 0; y < H; y++) {
    float s = 0;
    for (int i = 0; i < 16; i++) s += out[16 * y + i];
    printf("%f\\n", s);
  }
  return 0;
}
"""


def run(command, **kw):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **kw)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done


def build_qpulib(source, work):
    """A shared library of QPULib whose emulator counts."""
    copy = work / "QPULib"
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns(".git"))
    emulator = copy / "Lib" / "Target" / "Emulator.cpp"
    text = emulator.read_text()
    text, starts = re.subn(r"(s->pc\+\+\];)", r"\1 executed++;", text)
    text, retries = re.subn(r"s->pc--;", "{ s->pc--; executed--; }", text)
    if (starts, retries) != (1, 2):
        sys.exit("this QPULib's emulator is not the one known")
    emulator.write_text("long executed = 0;\n" + text)
    header = copy / "Lib" / "Target" / "Emulator.h"  # room for HeatMap's maps
    header.write_text(header.read_text().replace("HEAP_SIZE 65536", "HEAP_SIZE 1048576"))
    objects = [f for f in sorted((copy / "Lib").rglob("*.cpp"))]
    library = work / "libqpulib.so"
    run(["g++", "-O1", "-w", "-fpermissive", "-std=c++11", "-DEMULATION_MODE", "-fPIC", "-shared", "-I", copy / "Lib"]
        + objects + ["-o", library])
    return copy, library


def numbers(text):
    return [float(x) for x in re.findall(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?|-?nan|-?inf", text)]


def same(a, b):
    a, b = ("\n".join(line for line in t.splitlines() if not re.fullmatch(r"(# )?\d+\.\d{6}s", line)) for t in (a, b))
    x, y = numbers(a), numbers(b)
    scale = max([1.0] + [abs(v) for v in x])
    words = re.sub(r"-?\d+(\.\d+)?", "", a) == re.sub(r"-?\d+(\.\d+)?", "", b)
    return words and len(x) == len(y) and all(abs(p - q) <= 1e-3 * scale for p, q in zip(x, y))


def main():
    source = pathlib.Path(sys.argv[1])
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        qpulib, library = build_qpulib(source, work)
        print("| QPULib's own program | instructions executed, QPULib | here | ratio |")
        print("|---|---|---|---|")
        for title, file, changes, limit in PROGRAMS:
            text = (qpulib / "Tests" / f"{file}.cpp").read_text() if file else GEMV
            for pattern, to in changes:
                text, found = re.subn(pattern, to, text)
                if not found:
                    sys.exit(f"{title}: nothing matches {pattern}")
            text = re.sub(r"\bint main\(\)", "int program()", text)
            old = work / "old.cpp"
            old.write_text(
                text + "\nextern long executed;\nint main() { int r = program(); "
                'fprintf(stderr, "%ld\\n", executed); return r; }\n'
            )
            new = work / "new.cpp"
            new.write_text(
                re.sub(r'#include [<"]QPULib.h[>"]', "#include <weft/qpu.h>\nusing namespace weft::qpu;", text)
                + "\n#include <cstdio>\nint main() { int r = program(); std::fprintf(stderr, "
                '"%lld\\n", (long long)device()->stats().get("instructions")); return r; }\n'
            )
            run(["g++", "-w", "-fpermissive", "-std=c++11", "-DEMULATION_MODE", "-I", qpulib / "Lib", old, library,
                 f"-Wl,-rpath,{work}", "-o", work / "old"])
            lib = ROOT / "python" / "weft" / "lib"
            run(["g++", "-w", "-std=c++20", "-I", ROOT / "src", new, f"-L{lib}", "-lweft_qpu", f"-Wl,-rpath,{lib}", "-o",
                 work / "new"])
            a, b = run([work / "old"]), run([work / "new"])
            x, y = int(a.stderr.split()[-1]), int(b.stderr.split()[-1])
            verdict = "" if y <= limit * x else f" more than {limit}"
            if not same(a.stdout, b.stdout):
                verdict += " PRINTS DIFFER"
            failed += bool(verdict)
            print(f"| {title} | {x:,} | {y:,} | {y / x:.2f}{verdict} |", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
