# SPDX-License-Identifier: Apache-2.0
"""The command line: ``weft <verb>``, the same as ``python -m weft <verb>``.

Exit status: 0 done, 1 the work failed, 2 the command line was wrong. Results go to standard output, errors and
progress to standard error; progress only to a terminal.
"""

import argparse
import difflib
import errno
import io
import os
import re
import sys

import weft
from weft import _terminal
from .._core import shown
from .._errors import error


# What to do about a file that cannot be used, by the system's reason.
_FILE_REPAIRS = {
    **dict.fromkeys(
        (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM),
        "free some space, or name a place that can be written (-o, --output, TMPDIR)",
    ),
    errno.ENOENT: "name a file that exists, or a folder that can be made",
    errno.EISDIR: "this is a folder: name a file in it",
    **dict.fromkeys(
        (errno.ENOTDIR, errno.EEXIST), "this is a file, and a folder is needed: give another name"
    ),
    errno.EMFILE: "allow more open files: ulimit -n 4096",
    errno.EBADF: "leave it open, or send it to a file: weft ... > FILE",
}
_MOST_BYTES = 1 << 28  # of a file that is read: a device has no end


def content(path):
    """The bytes of a file that a verb is given. Raises weft.IOError cli.file.size."""
    with open(path, "rb") as file:
        found = file.read(_MOST_BYTES + 1)
    if len(found) > _MOST_BYTES:
        raise error(
            "io",
            "cli.file.size",
            f"{shown(os.fspath(path))} has more than {_MOST_BYTES} bytes",
            help="name a file with a program, assembly text, words or a saved module",
        )
    return found


def _lazy(module, function):
    """The verb's function, imported when it runs."""

    def run(args):
        import importlib

        return getattr(importlib.import_module(f"weft.cli.{module}"), function)(args)

    return run


def _whole(text):
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None


def _positive(text):
    value = _whole(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not 1 or more")
    return value


def _seed(text):
    value = _whole(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text} is not 0 or more")
    return value


def _port(text):
    value = _whole(text)
    if not 0 <= value <= 65535:
        raise argparse.ArgumentTypeError(f"{text} is not in 0 to 65535")
    return value


def _pair(text):
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def _add_programs(verb):
    p = verb("compile", "programs", "compile_file", "compile a .weft file")
    p.add_argument("file", help="a text file holding T.prim_func functions")
    p.add_argument("--target", required=True, help='for example "cpu", "cuda:arch=sm_90a"')
    p.add_argument(
        "--emit",
        choices=("ir", "source", "asm", "binary"),
        default="source",
        help="ir: the program; source: the target's text; asm: machine code as text; binary: a module file",
    )
    p.add_argument(
        "--print-after",
        metavar="PASS",
        help='print the program after this pass ("all": after each) on standard error',
    )
    p.add_argument("--trace", metavar="FILE", help="write the time of each pass as a trace")
    p.add_argument("-o", "--output", help="file to write; binary: out.weft-mod by default")

    p = verb("run", "programs", "run_file", "build a .weft file and time it on random data")
    p.add_argument("file", help="a .weft file, or a saved module")
    p.add_argument("--target", required=True, help="what to build for")
    p.add_argument("--device", help="where to run; default: the target's own device")
    p.add_argument("--function", help="default: the first of the file")
    p.add_argument("--number", type=_positive, default=10, help="calls in a sample (10)")
    p.add_argument("--repeat", type=_positive, default=3, help="samples (3)")
    p.add_argument("--seed", type=_seed, default=0, help="of the random data (0)")
    p.add_argument(
        "--set",
        type=_pair,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="value of a scalar parameter, or extents of a tensor: n=1000, A=100x200",
    )
    p.add_argument("--check", action="store_true", help="compare with the reference interpreter")
    p.add_argument("--stats", action="store_true", help="print the device's statistics")
    p.add_argument("--trace", metavar="FILE", help="write a trace of passes, calls and units")

    p = verb("tune", "tuning", "tune", "search for a fast schedule of a function")
    p.add_argument("file", nargs="?", help="a .weft file")
    p.add_argument("--target", help="what to build for")
    p.add_argument(
        "--device",
        action="append",
        help="where to measure; default: the target's own; may be repeated: on all at once",
    )
    p.add_argument("--function", help="default: the first of the file")
    p.add_argument("--trials", type=_positive, default=64, help="candidates to measure (64)")
    p.add_argument(
        "--database", help="what was measured; resumed; default: the user's own, used by weft.build"
    )
    p.add_argument("--seed", type=_seed, default=0, help="of the search (0)")
    p.add_argument("--seconds", type=float, help="budget of time for the whole search")
    p.add_argument("--limit", type=float, help="seconds that one candidate may take")
    p.add_argument("--picture", metavar="FILE", help="draw the search as SVG (needs matplotlib)")
    p.add_argument("--merge", metavar="FILE", help="add the trials of FILE to the database first")
    p.add_argument(
        "--export", metavar="FILE", help="write the database's trials to FILE at the end"
    )
    p.add_argument("-o", "--output", help="file for the scheduled program; default: print it")


def _add_machines(verb):
    p = verb("asm", "machine", "assemble", "assemble a text file to words")
    p.add_argument("file", help="assembly text, as weft dis prints it")
    p.add_argument("--target", required=True, help="a target with an instruction set: qpu, vta")
    p.add_argument("-o", "--output", help="default: the file's name with .bin")
    p = verb("dis", "machine", "disassemble", "words, or the kernels of a saved module, as text")
    p.add_argument("file", help="words (weft asm writes FILE.bin), or a saved module")
    p.add_argument("--target", required=True, help="a target with an instruction set: qpu, vta")
    p.add_argument("-o", "--output", help="default: print")
    p = verb("debug", "debug", "run", "run a program with the debugger for simulated machines")
    p.add_argument(
        "--command",
        action="append",
        default=[],
        metavar="FILE",
        help="debugger commands to begin with, one a line; may be repeated; then standard input",
    )
    p.add_argument(
        "--csl",
        metavar="DIR",
        help="run the compiled CSL program in DIR, which needs no host, instead of a script",
    )
    p.add_argument(
        "program",
        nargs=argparse.REMAINDER,
        metavar="PROGRAM [ARGUMENT...]",
        help="a Python script and its arguments; it finds the Cerebras SDK's modules, too",
    )
    p = verb("serve", "serve", "serve", "serve a device to other processes and hosts")
    p.add_argument("--device", required=True, help='for example "cpu", "vta:config.json"')
    p.add_argument("--host", default="127.0.0.1", help="address to bind (127.0.0.1)")
    p.add_argument("--port", type=_port, default=9091, help="0: any free one (9091)")
    p.add_argument("--key-file", help="file with the key; otherwise $WEFT_RPC_KEY")
    p.add_argument("--tls-cert", help="PEM file")
    p.add_argument("--tls-key", help="PEM file")
    p.add_argument(
        "--session-bytes",
        type=_positive,
        default=1 << 30,
        help="what a connection may hold (1 GiB)",
    )
    p.add_argument("--sessions", type=_positive, default=64, help="connections at a time (64)")
    p.add_argument(
        "--module",
        action="append",
        default=[],
        help="serve only this module file, loaded by its name; may be repeated",
    )


class _Parser(argparse.ArgumentParser):
    """Says which word was meant where a choice or an option is misspelt."""

    def error(self, message):
        found = re.search(r"invalid choice: '?([\w-]+)'? \(choose from (.*)\)$", message)
        near = found and difflib.get_close_matches(found[1], re.findall(r"[\w-]+", found[2]), 1)
        if near:
            message = message.replace(" (choose from", f"; did you mean {near[0]!r}? (choose from")
        self.print_usage(sys.stderr)
        text = f"{self.prog}: error: {message}"
        self.exit(2, _terminal.filled(text, "  ", sys.stderr) + "\n")

    def unknown(self, words):
        """Ends with the usage of this verb: no option of it is spelt so."""
        message = f"unrecognized arguments: {' '.join(words)}"
        near = difflib.get_close_matches(words[0].split("=")[0], self._option_string_actions, 1)
        self.error(f"{message}; did you mean {shown(near[0])}?" if near else message)


def parser():
    """The whole command line, one function for each group of verbs."""
    out = _Parser(
        prog="weft",
        description="Compiles tensor programs for processors, graphics cards and simulated accelerators, runs them and measures them.",
        epilog="weft VERB --help lists the options of one. Exit status: 0 done, 1 the work failed, 2 the command line was wrong.",
    )
    out.add_argument("--version", action="version", version=f"weft {weft.__version__}")
    verbs = out.add_subparsers(dest="verb", required=True, metavar="VERB")

    def verb(name, module, function, text):
        p = verbs.add_parser(name, help=text, description=text)
        p.set_defaults(run=_lazy(module, function))
        return p

    verb(
        "devices",
        "manual",
        "devices",
        "list every device, and what is missing for those that are absent",
    )
    p = verb(
        "demo",
        "demo",
        "run",
        "run the example programs on every device present, and write a report",
    )
    p.add_argument("--quick", action="store_true", help="smaller sizes")
    p.add_argument("--output", default="out", help="folder for report.html and trace.json (out)")
    _add_programs(verb)
    _add_machines(verb)
    p = verb("selftest", "selftest", "run", "check this installation on every device present")
    p = verb("docs", "manual", "docs", "open the documentation, offline")
    p.add_argument("page", nargs="?", help="a page, for example guide/torch")
    p.add_argument("--path", action="store_true", help="print where it is instead")
    p.add_argument("--serve", action="store_true", help="on 127.0.0.1, where search works")
    p = verb("new", "skeleton", "new", "write a skeleton with a failing test into a source tree")
    p.add_argument("kind", choices=("op", "step", "pass", "target", "rule"), help="what to add")
    p.add_argument("name", help="lower case, for example two_words")
    p = verb(
        "playground",
        "playground",
        "run",
        "edit programs and schedules in the browser, on this machine only",
    )
    p.add_argument("--port", type=_port, default=0, help="of 127.0.0.1; 0: any free one (0)")
    p.add_argument("--seconds", type=float, default=20.0, help="for one program (20)")
    p.add_argument(
        "--memory", type=_positive, default=2048, metavar="MIB", help="for one program (2048)"
    )
    p.add_argument("--browser", action="store_true", help="open the page in a browser, too")
    p = verb("bench", "bench", "run", "measure weft beside NumPy, PyTorch and others")
    p.add_argument("names", nargs="*", metavar="NAME", help="default: all; --list names them")
    p.add_argument("--list", action="store_true", help="list the benchmarks")
    p.add_argument("--json", metavar="F", help="write the figures to a file")
    p = verb("errors", "manual", "errors", "explain an error, or list all of them")
    p.add_argument("slug", nargs="?", help="or the beginning of one")
    return out


class _Closed(io.TextIOBase):
    """Standard output that the caller has closed."""

    def write(self, text):
        raise OSError(errno.EBADF, os.strerror(errno.EBADF), "standard output")


def _streams():
    """Standard output and standard error as they can be used: closed ones, and terminals that lack a character."""
    if sys.stdout is None:
        sys.stdout = _Closed()
    if sys.stderr is None:
        sys.stderr = open(
            os.devnull, "w", encoding="utf-8"
        )  # print(file=None) would mean standard output
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # shows "?" in the place of the character
            stream.reconfigure(errors="replace")


def main(argv=None):
    _streams()
    try:
        return _run(argv)
    except BrokenPipeError:  # the reader of our output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except weft.Error as refusal:
        print(_terminal.filled_error(str(refusal), sys.stderr), file=sys.stderr)
        return 1
    except OSError as reason:
        what = reason.strerror or str(reason)
        text = f'cannot use "{reason.filename}": {what}' if reason.filename else what
        text = f"error[cli.file]: {text}"
        if reason.errno in _FILE_REPAIRS:
            text += f"\n = help: {_FILE_REPAIRS[reason.errno]}"
        print(_terminal.filled_error(text, sys.stderr), file=sys.stderr)
        return 1
    except UnicodeDecodeError as reason:
        print(
            f"error[cli.text]: byte {reason.start} of the file is not UTF-8 text", file=sys.stderr
        )
        print(" = help: weft dis shows saved modules", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 1


def _run(argv):
    whole = parser()
    if not (sys.argv[1:] if argv is None else argv):
        whole.print_help(sys.stderr)
        return 2
    args, unknown = whole.parse_known_args(argv)
    if unknown:
        verbs = next(a.choices for a in whole._actions if a.dest == "verb")
        verbs[args.verb].unknown(unknown)
    status = args.run(args) or 0
    sys.stdout.flush()  # a full disk is an error, not a word at the end of the process
    return status
