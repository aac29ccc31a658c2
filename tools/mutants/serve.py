# SPDX-License-Identifier: Apache-2.0
"""Runs pytest in forks of one process that has imported weft: one JSON command a line, one answer a line.

{"args": [...], "limit": seconds, "env": {...}, "log": file}   ->   {"status": exit status or "limit", "seconds": ...}

With "log" each test gets a line: its id, seconds, 1 if it passed, and the numbers of the places it reached; "import" first."""

import builtins
import json
import os
import signal
import sys
import time

import pytest
import weft  # noqa: F401

PAGE = builtins._weft_mutant.page


def reached():
    data = bytes(PAGE)
    found = [i for i, state in enumerate(data) if state & 1] if any(data) else []
    for number in found:
        PAGE[number] = 0
    return found


class Reached:
    def __init__(self, path):
        self.out = open(path, "a", buffering=1)  # noqa: SIM115 - open as long as the process
        self.passed, self.start = True, 0.0

    def pytest_collection_finish(self):
        print("import", 0.0, 1, *reached(), file=self.out)

    def pytest_runtest_logstart(self):
        self.passed, self.start = True, time.time()

    def pytest_runtest_logreport(self, report):
        self.passed = self.passed and (
            report.passed if report.when != "call" else report.outcome == "passed"
        )

    def pytest_runtest_logfinish(self, nodeid):
        print(
            nodeid.replace(" ", "\x01"),
            f"{time.time() - self.start:.3f}",
            int(self.passed),
            *reached(),
            file=self.out,
        )


def child(command):
    os.setsid()
    os.environ.update(command["env"])
    sink = os.open(
        os.environ.get("WEFT_MUTANT_OUT", os.devnull), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600
    )
    null = os.open(os.devnull, os.O_RDONLY)
    for number, to in ((null, 0), (sink, 1), (sink, 2)):
        os.dup2(number, to)
    status = pytest.main(
        command["args"], plugins=[Reached(command["log"])] if command.get("log") else []
    )
    sys.stdout.flush()
    os._exit(int(status))


def serve():
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    for line in sys.stdin:
        command = json.loads(line)
        start = time.time()
        pid = os.fork()
        if pid == 0:
            child(command)
        status = None
        while status is None:
            done, raw = os.waitpid(pid, os.WNOHANG)
            if done:
                status = os.waitstatus_to_exitcode(raw)
            elif time.time() - start > command["limit"]:
                status = "limit"
            else:
                time.sleep(0.02)
        try:
            os.killpg(
                pid, signal.SIGKILL
            )  # what the tests have left running, and the child that took too long
        except ProcessLookupError:
            pass
        if status == "limit":
            os.waitpid(pid, 0)
        print(json.dumps({"status": status, "seconds": time.time() - start}), file=answers)


if __name__ == "__main__":
    serve()
