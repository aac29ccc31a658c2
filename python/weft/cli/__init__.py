# SPDX-License-Identifier: Apache-2.0
"""The command line: ``weft <verb>``, the same as ``python -m weft <verb>``.

Exit status: 0 done, 1 the work failed, 2 the command line was wrong.
"""

import argparse
import sys

import weft


def _devices(args):
    for d in weft.devices():
        state = "present" if d.available else "absent"
        print(
            f"{d.name:<12} {d.kind:<12} {state:<8} {d.description.splitlines()[0] if d.available else _first(d.reason)}"
        )


def _first(text):
    return text.splitlines()[0] if text else ""


def _program(path):
    from weft import script

    with open(path, encoding="utf-8") as file:
        return script.from_source(file.read(), path)


def _compile(args):
    after = None
    if args.print_after:

        def after(name, function, seconds):
            if args.print_after in ("all", name):
                print(f"# after {name} ({seconds * 1e3:.2f} ms)\n{function.script()}")

    program = _program(args.file)
    if args.emit == "ir":
        text = program.script()
    else:
        module = weft.build(program, target=args.target, after=after)
        if args.emit == "binary":
            output = args.output or "out.weft-mod"
            module.save(output)
            print(f"wrote {output}", file=sys.stderr)
            return
        text = module.source()
    if args.output:
        with open(args.output, "w", encoding="utf-8") as file:
            file.write(text)
    else:
        print(text)


def _run(args):
    import numpy

    module = weft.build(_program(args.file), target=args.target)
    device = weft.device(args.device or args.target)
    name = args.function or module.functions[0]
    plan = module._core.plan(name)
    rng = numpy.random.default_rng(args.seed)
    values = []
    for parameter in plan["params"]:
        if not parameter.get("tensor"):
            raise weft.ArgumentError(
                f"parameter {parameter} is a scalar; weft run fills tensors only"
            )
        tensor = parameter["tensor"]
        shape = [_constant(e) for e in tensor["shape"]]
        data = rng.integers(0, 5, shape) if "int" in tensor["dtype"] else rng.random(shape)
        values.append(weft.asarray(data.astype(tensor["dtype"]), device=device))
    result = module.time_evaluator(name, number=args.number, repeat=3)(*values)
    print(f"{name} on {device.name}: {result}")
    if args.stats:
        for key, value in device.stats().items():
            print(f"  {key:<32} {value}")


def _constant(code):
    if len(code) == 1 and isinstance(code[0], (list, tuple)):
        return code[0][1]
    raise weft.ArgumentError(f"the extent {code} is symbolic; weft run needs constant shapes")


def _errors(args):
    import pathlib

    for folder in (
        pathlib.Path(weft.__file__).parent,
        *pathlib.Path(weft.__file__).resolve().parents[:3],
    ):
        page = folder / "docs" / "errors.md"
        if page.exists():
            break
    else:
        raise weft.IOError("docs/errors.md is not part of this installation")
    rows = [line for line in page.read_text().splitlines() if line.startswith("| `")]
    if args.slug:
        rows = [r for r in rows if f"`{args.slug}" in r]
        if not rows:
            raise weft.ArgumentError(f"no error has the slug {args.slug!r}")
    print("\n".join(rows))


def _demo(args):
    from .demo import run

    return run(args)


def _parser():
    parser = argparse.ArgumentParser(
        prog="weft", description="One tensor program, woven onto every accelerator."
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")

    def verb(name, run, text):
        p = verbs.add_parser(name, help=text, description=text)
        p.set_defaults(run=run)
        return p

    verb("devices", _devices, "list every device, present or not")
    p = verb("demo", _demo, "run the tour on every device present")
    p.add_argument("--quick", action="store_true", help="smaller sizes")
    p.add_argument("--output", default="out", help="folder for report.html and trace.json")
    p = verb("compile", _compile, "compile a .weft file")
    p.add_argument("file")
    p.add_argument("--target", required=True, help='for example "cpu", "cuda:arch=sm_90a"')
    p.add_argument("--emit", choices=("ir", "source", "asm", "binary"), default="source")
    p.add_argument("--print-after", metavar="PASS", help='print the program after a pass, or "all"')
    p.add_argument("-o", "--output")
    p = verb("run", _run, "build a .weft file and time it on random data")
    p.add_argument("file")
    p.add_argument("--target", required=True)
    p.add_argument("--device", help="default: the target's own")
    p.add_argument("--function")
    p.add_argument("--number", type=int, default=10)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--stats", action="store_true", help="print the device's statistics")
    p = verb("errors", _errors, "the manual of errors")
    p.add_argument("slug", nargs="?")
    return parser


def main(argv=None):
    args = _parser().parse_args(argv)
    try:
        return args.run(args) or 0
    except (weft.Error, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 1
