# SPDX-License-Identifier: Apache-2.0
"""``weft serve``: one line on standard output when connections are accepted, the log on standard error."""

import contextlib
import os
import queue
import signal
import threading

from weft import rpc
from weft._errors import error
from weft.cli import content


def _key(args):
    if not args.key_file:
        return os.environ.get("WEFT_RPC_KEY", "")
    key = content(args.key_file).decode("utf-8").strip()
    if not key:
        raise error(
            "value",
            "cli.serve.key",
            f"the key file {args.key_file} is empty",
            help="write a random key into it: head -c 32 /dev/urandom | base64 > FILE",
        )
    return key


class _Log:
    """Lines for standard error, written by a thread of their own: a reader that stops reading, or goes, does not stop the server."""

    _MOST = 10000  # lines that wait; more are dropped

    def __init__(self):
        self._lines = queue.Queue(self._MOST)
        threading.Thread(target=self._write, daemon=True).start()

    def _write(self):
        while True:
            rest = (self._lines.get() + "\n").encode()
            try:
                while (
                    rest
                ):  # not through sys.stderr, whose lock the end of the process would wait for
                    rest = rest[os.write(2, rest) :]
            except OSError:  # nobody reads
                pass
            self._lines.task_done()

    def add(self, lines):
        for line in lines:
            with contextlib.suppress(queue.Full):
                self._lines.put_nowait(line)

    def settle(self, seconds=1.0):
        """Waits until all is written, no longer than so many seconds."""
        with self._lines.all_tasks_done:
            self._lines.all_tasks_done.wait_for(lambda: not self._lines.unfinished_tasks, seconds)


_GRACE = 10.0  # seconds that running work has to end


def _leave(log):
    log.add([f"work did not end within {_GRACE:g} s of the signal: leaving without it"])
    log.settle()
    os._exit(1)


def serve(args):
    stopped = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.append(True))
    key, log = _key(args), _Log()
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
            log.add(server.log(0.2))
        # One kernel in machine code cannot be interrupted: the process does not wait for ever.
        deadline = threading.Timer(_GRACE, _leave, [log])
        deadline.daemon = True
        deadline.start()
        server.stop()
        deadline.cancel()
        log.add(server.log())
    log.settle()
    return 0
