# SPDX-License-Identifier: Apache-2.0
"""``weft serve``: one line on standard output when connections are accepted, the log on standard error."""

import os
import pathlib
import signal
import sys
import threading

from weft import rpc
from weft._errors import error


def _key(args):
    if not args.key_file:
        return os.environ.get("WEFT_RPC_KEY", "")
    key = pathlib.Path(args.key_file).read_text(encoding="utf-8").strip()
    if not key:
        raise error("value", "cli.serve.key", f"the key file {args.key_file} is empty")
    return key


def _print(lines):
    for line in lines:
        print(line, file=sys.stderr, flush=True)


_GRACE = 10.0  # seconds that running work has to end


def _leave():
    _print([f"work did not end within {_GRACE:g} s of the signal: leaving without it"])
    os._exit(1)


def serve(args):
    stopped = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.append(True))
    key = _key(args)
    with rpc.Server(
        args.device,
        host=args.host,
        port=args.port,
        key=key,
        tls_cert=args.tls_cert,
        tls_key=args.tls_key,
        session_bytes=args.session_bytes,
        sessions=args.sessions,
        modules=args.module,
    ) as server:
        how = ", ".join(
            ["with a key" if key else "no key", "TLS" if args.tls_cert else "plain text"]
        )
        print(f"serving {args.device} on {args.host}:{server.port} ({how})", flush=True)
        while not stopped:
            _print(server.log(0.2))
        # One kernel in machine code cannot be interrupted: the process does not wait for ever.
        deadline = threading.Timer(_GRACE, _leave)
        deadline.daemon = True
        deadline.start()
        server.stop()
        deadline.cancel()
        _print(server.log())
    return 0
