# SPDX-License-Identifier: Apache-2.0
"""``weft tune``: a search, and databases merged and exported."""

import sys

import weft
from weft import tuning
from weft._errors import error

from .programs import _emit, _program


def tune(args):
    if args.file is None and not (args.merge or args.export):
        raise error(
            "value",
            "cli.tune.nothing",
            "no file, no --merge and no --export were given",
            help="name a program to tune, or one of the two options",
        )
    if args.file is not None and args.target is None:
        raise error("value", "cli.tune.target", "--target is not given", help="--target cpu")
    if args.merge:
        rows = tuning.merge(args.merge, database=args.database)
        print(f"merged {rows} trials of {args.merge}", file=sys.stderr)
    if args.file is not None:
        _search(args)
    if args.export:
        rows = tuning.export(args.export, database=args.database)
        print(f"exported {rows} trials to {args.export}", file=sys.stderr)


def _search(args):
    program, devices = _program(args.file), args.device or [None]
    sch = weft.tune(
        program,
        target=args.target,
        trials=args.trials,
        database=args.database,
        seed=args.seed,
        device=devices if len(devices) > 1 else devices[0],
        function=args.function,
        seconds=args.seconds,
        limit=args.limit,
    )
    _emit(sch.mod.script(), args.output)
    if args.picture:
        tuning.picture(args.picture, program, args.target, args.database, devices[0], args.function)
