# SPDX-License-Identifier: Apache-2.0
"""``weft playground``: a page on this machine where a program and its schedule are edited.

The server listens on the loopback address only and answers only requests that carry the token of the address it
prints. Each program is compiled in a process of its own with a limit of time and of memory; a newer request of a page
ends the page's older one.
"""

import hmac
import json
import os
import pathlib
import secrets
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from weft._child import environment
from weft._errors import error

MAXIMUM = 256 * 1024  # bytes of a request
PAGES = 4  # that compile at the same time
TARGETS = ("cpu", "c", "cuda", "opencl", "metal", "qpu", "vta", "wse:4x4", "ref")


def _resident(pid):
    """Bytes of a process that are in memory; None where the system does not say."""
    try:
        pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


class Compiler:
    """Runs one child at a time for each page, of PAGES pages at most; `answer` returns what the page shows."""

    def __init__(self, seconds, memory):
        self._seconds, self._memory = seconds, memory
        self._lock, self._children = threading.Lock(), {}  # page: its child, the oldest first
        self._crowded = set()  # children that were ended for those of other pages

    def _end(self, child):
        try:
            os.killpg(child.pid, signal.SIGKILL)  # compilers that it has started, too
        except (ProcessLookupError, PermissionError):
            child.kill()

    def stop(self):
        with self._lock:
            for child in self._children.values():
                self._end(child)
            self._children.clear()

    def _start(self, page):
        with self._lock:
            if page in self._children:
                self._end(self._children.pop(page))
            elif len(self._children) >= PAGES:  # the oldest may be of a page that is closed
                oldest = self._children.pop(next(iter(self._children)))
                self._crowded.add(oldest)
                self._end(oldest)
            child = self._children[page] = subprocess.Popen(
                [sys.executable, "-m", "weft.cli.playground_child"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment(),
                start_new_session=True,
            )
            return child

    def _watch(self, child, verdict, done):
        """Ends the child when it takes too long or too much; says which in `verdict`."""
        end = time.monotonic() + self._seconds
        while not done.wait(0.02):
            if time.monotonic() > end:
                verdict.append("time")
            elif (_resident(child.pid) or 0) > self._memory:
                verdict.append("memory")
            else:
                continue
            self._end(child)
            return

    def answer(self, request, page=""):
        child = self._start(page)
        verdict, done = [], threading.Event()
        watcher = threading.Thread(target=self._watch, args=(child, verdict, done), daemon=True)
        watcher.start()
        said, _ = child.communicate(json.dumps(request).encode())
        done.set()
        watcher.join()
        self._end(child)  # what it started and left
        with self._lock:
            superseded = self._children.get(page) is not child
            if not superseded:
                del self._children[page]
            crowded = child in self._crowded
            self._crowded.discard(child)
        if verdict == ["time"]:
            raise error(
                "value",
                "playground.time",
                f"the program and its schedule took more than {self._seconds:g} seconds and were ended",
                help="take smaller extents, or weft playground --seconds N",
            )
        if verdict == ["memory"]:
            raise error(
                "memory",
                "playground.memory",
                f"the program and its schedule took more than {self._memory >> 20} MiB and were ended",
                help="take smaller extents, or weft playground --memory MIB",
            )
        if crowded:
            raise error(
                "value",
                "playground.pages",
                f"the program was ended, because {PAGES} other pages of this playground compile",
                help="close pages that are not needed, then edit again",
            )
        if superseded:
            return {"superseded": True}
        try:
            return json.loads(said)
        except (ValueError, RecursionError):  # it crashed, or the schedule ended it
            raise error(
                "value",
                "playground.child",
                f"the compiling process ended with status {child.returncode} and no answer",
                help="run the same program with weft run to see why",
            ) from None


def _checked(text):
    """The request, or a refusal that names the part that is wrong."""
    try:
        request = json.loads(text)
    except (ValueError, RecursionError):
        request = None
    wrong = "it is no JSON object" if not isinstance(request, dict) else ""
    for part in ("program", "schedule", "target"):
        if not wrong and not isinstance(request.get(part), str):
            wrong = f'"{part}" is no text'
    if not wrong:
        values = request.get("values", {})
        if not isinstance(values, dict) or not all(isinstance(v, str) for v in values.values()):
            wrong = '"values" does not map names to texts'
    if not wrong:
        texts = [
            request["program"],
            request["schedule"],
            request["target"],
            *values,
            *values.values(),
        ]
        if any("\ud800" <= c <= "\udfff" for text in texts for c in text):
            wrong = "it holds half of a character (a lone surrogate)"
    if wrong:
        raise error(
            "value",
            "playground.request",
            f"the request cannot be read: {wrong}",
            help="reload the page; requests are JSON with the program's text",
        )
    return {
        "program": request["program"],
        "schedule": request["schedule"],
        "target": request["target"],
        "values": values,
    }


class Handler(BaseHTTPRequestHandler):
    """GET / is the page, POST /answer compiles. Everything else, and all without the token, is refused."""

    server_version, sys_version = "weft", ""
    timeout = 30

    def log_message(self, *words):
        pass

    def _reply(self, status, kind, body, nonce=""):
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        allowed = f"script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; " if nonce else ""
        self.send_header(
            "Content-Security-Policy",
            f"default-src 'none'; {allowed}connect-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'",
        )
        self.end_headers()
        self.wfile.write(body)

    def _refuse(self, status, text):
        self.close_connection = True
        self._reply(status, "text/plain", text.encode())

    def _allowed(self, token):
        host = self.headers.get("Host", "")
        if host not in self.server.hosts:  # another name that points here: not our page
            self._refuse(403, "open the address that weft playground printed\n")
            return False
        if not hmac.compare_digest(token.encode(), self.server.token.encode()):
            self._refuse(403, "the token is missing or wrong: open the address that was printed\n")
            return False
        return True

    def do_GET(self):
        path, _, query = self.path.partition("?")
        if path != "/":
            return self._refuse(404, "there is only one page here\n")
        if not self._allowed(query[6:] if query.startswith("token=") else ""):
            return None
        nonce = secrets.token_urlsafe(16)
        page = pathlib.Path(__file__).with_name("playground.html").read_text("utf-8")
        page = page.replace("{{nonce}}", nonce).replace("{{targets}}", json.dumps(TARGETS))
        return self._reply(200, "text/html", page.encode(), nonce)

    def do_POST(self):
        if not self._allowed(self.headers.get("X-Weft-Token", "")):
            return None
        if self.path != "/answer":
            return self._refuse(404, "requests go to /answer\n")
        try:
            length = int(self.headers.get("Content-Length", ""))
        except ValueError:
            length = -1
        if not 0 <= length <= MAXIMUM:
            return self._refuse(413, f"a request has at most {MAXIMUM} bytes\n")
        import weft

        try:
            request = _checked(self.rfile.read(length))
            answer = self.server.compiler.answer(request, self.headers.get("X-Weft-Page", ""))
        except weft.Error as refusal:
            answer = {"error": str(refusal)}
        return self._reply(200, "application/json", json.dumps(answer).encode())


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """A reader that has gone needs no answer; anything else is a mistake of ours and is shown."""
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)


def server(port=0, seconds=20.0, memory=2048):
    """A server that is bound and not yet running; `.address` is what to open."""
    try:
        out = Server(("127.0.0.1", port), Handler)
    except OSError as reason:
        raise error(
            "io",
            "playground.port",
            f"cannot listen on port {port} of 127.0.0.1: {reason.strerror}",
            help="--port 0 takes any free port",
        ) from None
    out.token = secrets.token_urlsafe(24)
    out.compiler = Compiler(seconds, memory << 20)
    number = out.server_address[1]
    out.hosts = {f"127.0.0.1:{number}", f"localhost:{number}"}
    out.address = f"http://127.0.0.1:{number}/?token={out.token}"
    return out


def run(args):
    here = server(args.port, args.seconds, args.memory)
    print(f"open {here.address}\n(only this machine can; Ctrl-C ends it)", flush=True)
    if args.browser:
        import webbrowser

        webbrowser.open(here.address)
    try:
        here.serve_forever(poll_interval=0.2)
    except KeyboardInterrupt:
        pass
    finally:
        here.compiler.stop()
        here.server_close()
    return 0
