# SPDX-License-Identifier: Apache-2.0
"""The command `cslc`, with the Cerebras SDK's options."""

from __future__ import annotations

import os
import pathlib
import sys

from weft_wse.library import tool


def _pair(text: str, what: str) -> tuple[int, int]:
    try:
        a, b = text.split(",")
        return int(a), int(b)
    except ValueError:
        raise SystemExit(f"cslc: {what} wants two numbers such as 8,3, not {text!r}") from None


def _names(items: list[str], what: str) -> dict[str, int]:
    out: dict[str, int] = {}
    for item in items:
        for part in filter(None, item.split(",")):
            name, colon, value = part.partition(":")
            try:
                if not colon:
                    raise ValueError
                out[name.strip()] = int(value, 0)
            except ValueError:
                raise SystemExit(f"cslc: {what} wants name:integer pairs, not {part!r}") from None
    return out


def cslc_main(argv: list[str] | None = None) -> int:
    """Compiles a CSL layout: `cslc layout.csl --fabric-dims=8,3 --fabric-offsets=4,1 --memcpy --channels=1 -o out`."""
    try:
        status = _compile(sys.argv[1:] if argv is None else argv)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # the reader of our output has gone; the program is written
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _options():
    import argparse

    p = argparse.ArgumentParser(
        prog="cslc",
        description="Compiles a CSL program for the fabric simulator.",
        allow_abbrev=False,
    )
    p.add_argument("file", help="the layout file")
    p.add_argument("-o", dest="out", default="out", help="artifact directory")
    p.add_argument("--arch", default="wse2", choices=["wse2", "wse3"])
    p.add_argument("--fabric-dims", default="")
    p.add_argument("--fabric-offsets", default="0,0")
    p.add_argument("--params", action="append", default=[])
    p.add_argument("--colors", action="append", default=[])
    p.add_argument("--memcpy", action="store_true")
    p.add_argument("--channels", type=int, default=1)
    nothing = "accepted; the simulator needs none of it"
    p.add_argument("--width-west-buf", type=int, default=0, help=nothing)
    p.add_argument("--width-east-buf", type=int, default=0, help=nothing)
    p.add_argument("--import-path", action="append", default=[])
    p.add_argument("--fp16-format", default="f16", choices=["f16", "bf16", "cb16"])
    p.add_argument(
        "--output-json",
        nargs="?",
        const="",
        metavar="PATH",
        help="also write the resolved parameters there; default OUT.json",
    )
    p.add_argument("--max-inlined-iterations", type=int, default=None, help=nothing)
    p.add_argument("--comptime-func-depth-limit", type=int, default=None, help=nothing)
    p.add_argument(
        "--link-section-start-address-bytes",
        action="append",
        default=[],
        metavar="NAME:BYTES,...",
        help="where variables with linksection(NAME) lie",
    )
    p.add_argument("--max-parallelism", type=int, default=None, help=nothing)
    p.add_argument("--warnings-as-errors", action="store_true")
    p.add_argument("--verbose", action="store_true")
    p.add_argument("--out-routes", action="store_true", help="print every PE's colors and routes")
    p.add_argument("-g0", action="store_true", dest="no_debug", help=nothing)
    p.add_argument(
        "--sdk-version",
        default="detect",
        choices=["detect", "1.4", "2.10"],
        help="refuse what only the other version has",
    )
    p.add_argument(
        "--perturb",
        type=int,
        metavar="SEED",
        help="then run a program that needs no host under every order of ready tasks, and compare",
    )
    p.add_argument(
        "--version", action="version", version="cslc (weft), language of SDK 1.4 and 2.10"
    )
    # "-o=out" and "--channels=1" are both in use.
    return p


def _compile(argv: list[str]) -> int:
    args = [a.replace("-o=", "-o", 1) if a.startswith("-o=") else a for a in argv]
    a = _options().parse_args(args)
    if not pathlib.Path(a.file).is_file():
        print(f"cslc: there is no file {a.file!r}", file=sys.stderr)
        return 2
    try:
        result = tool(
            "compile",
            {
                "root": a.file,
                "out": a.out,
                "arch": a.arch,
                "fabric_dims": _pair(a.fabric_dims, "--fabric-dims") if a.fabric_dims else (0, 0),
                "fabric_offsets": _pair(a.fabric_offsets, "--fabric-offsets"),
                "params": _names(a.params, "--params"),
                "colors": _names(a.colors, "--colors"),
                "memcpy": a.memcpy,
                "channels": a.channels,
                "import_paths": [
                    *a.import_path,
                    *filter(None, os.environ.get("CSL_IMPORT_PATH", "").split(os.pathsep)),
                ],
                "fp16_format": a.fp16_format,
                "warnings_as_errors": a.warnings_as_errors,
                "routes": a.out_routes,
                "sdk_version": a.sdk_version,
                "sections": _names(
                    a.link_section_start_address_bytes, "--link-section-start-address-bytes"
                ),
            },
        )
    except Exception as e:
        from weft._wse_library import WseError

        if not isinstance(e, WseError):
            raise
        print(e, file=sys.stderr)
        return 1
    if a.output_json is not None:
        out = pathlib.Path(a.out)
        target = pathlib.Path(a.output_json) if a.output_json else out.with_name(out.name + ".json")
        target.write_text((out / "out.json").read_text())
    for line in result.get("printed", []):
        print(line)
    if result.get("warnings"):
        print(result["warnings"], file=sys.stderr)
    if a.out_routes:
        print(result["routes"], end="")
    if a.verbose:
        print(f"wrote {a.out}")
        print(f"language: {result['sdk_version']}")
    if a.perturb is not None:
        from weft._wse_perturb import of_program

        if a.memcpy:
            print(
                "cslc: --perturb runs programs without a host; for this one: "
                "cs_python --perturb SEED script.py",
                file=sys.stderr,
            )
            return 2
        return of_program(a.perturb, a.out)
    return 0
