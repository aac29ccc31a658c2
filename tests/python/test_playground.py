# SPDX-License-Identifier: Apache-2.0
"""weft playground: what the page gets for programs, schedules and targets, who is refused, and what is ended."""

import http.client
import json
import pathlib
import re
import socket
import struct
import subprocess
import sys
import threading
import time

import pytest
import weft
from weft._child import environment
from weft.cli import playground

GEMM = """
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    for i, j, k in T.grid(16, 16, 16):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""
ADD = """
@T.prim_func
def main(a: T.handle, b: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n,), "int32")
    B = T.match_buffer(b, (n,), "int32")
    for i in range(n):
        with T.block("B"):
            vi = T.axis.remap("S", [i])
            B[vi] = A[vi] + A[vi]
"""


class Client:
    def __init__(self, here):
        self.here, self.port = here, here.server_address[1]

    def raw(self, method, path, body=None, **headers):
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=500)
        link.request(method, path, body, headers)
        reply = link.getresponse()
        out = reply.status, reply.read().decode(), dict(reply.getheaders())
        link.close()
        return out

    def ask(self, program=GEMM, schedule="", target="ref", page="", **values):
        body = {"program": program, "schedule": schedule, "target": target, "values": values}
        headers = {"X-Weft-Token": self.here.token, "X-Weft-Page": page}
        status, text, _ = self.raw("POST", "/answer", json.dumps(body), **headers)
        assert status == 200, text
        return json.loads(text)


@pytest.fixture(scope="module")
def client():
    here = playground.server(seconds=60)
    thread = threading.Thread(target=here.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield Client(here)
    here.shutdown()
    here.server_close()
    thread.join()


def short(**limits):
    here = playground.server(**limits)
    threading.Thread(target=here.serve_forever, daemon=True).start()
    return Client(here)


def states(answer):
    return {row["name"]: row["state"] for row in answer["checks"]}


@pytest.mark.parametrize(
    "target, text",
    [
        ("cpu", "define"),
        ("c", "#include"),
        ("cuda", "__global__"),
        ("opencl", "__kernel"),
        ("metal", "metal_stdlib"),
        ("qpu", "unif"),
        ("wse:4x4", "layout.csl"),
        ("ref", "T.prim_func"),
    ],
)
def test_every_target_shows_its_code_and_runs_where_it_can(client, target, text):
    answer = client.ask(target=target)
    assert answer["error"] == "" and text in answer["source"]
    assert "T.block" in answer["program"]
    present = weft.device(target).available
    assert ("result" in states(answer)) == present
    assert "failed" not in states(answer).values()
    if weft.device(target).kind == "simulator":
        assert answer["stats"]["cycles"] > 0 and "cycles" in states(answer)


@pytest.mark.targets("vta")
def test_vta_runs_integers_and_refuses_floats_by_name(client):
    answer = client.ask(
        ADD.replace("n = T.int64()", "").replace("(n,)", "(64,)").replace("range(n)", "range(64)"),
        target="vta",
    )
    assert answer["error"] == "" and answer["stats"]["cycles"] > 0
    refused = client.ask(target="vta")
    assert "error[target.dtype]" in refused["error"]
    assert states(refused) == {"program": "ok", "build": "failed"}
    assert "T.block" in refused["scheduled"] and refused["source"] == ""


def test_the_schedule_is_applied_and_what_it_prints_is_shown(client):
    answer = client.ask(
        schedule='i, j, k = sch.get_loops(sch.get_block("C"))\nsch.split(i, [None, 4])\nprint(2 + 3)'
    )
    assert answer["printed"] == "5\n" and "i_1" in answer["scheduled"]
    assert "i_1" not in answer["program"]
    assert states(answer)["result"] == "ok"
    lowered = client.ask(target="c")["passes"]
    assert len(lowered) > 2
    assert all(a["text"] != b["text"] for a, b in zip(lowered, lowered[1:]))


def test_mistakes_are_shown_and_earlier_parts_stay(client):
    split = 'i, j, k = sch.get_loops(sch.get_block("C"))\nsch.split(i, [3, 5])'
    answer = client.ask(schedule="sch.get_block('C')\n" + split)
    assert "error[schedule.split" in answer["error"] and "help" in answer["error"]
    assert "help: sch.split(i, [None, 5])" in answer["checks"][-1]["text"], answer["checks"]
    assert states(answer) == {"program": "ok", "schedule": "failed"} and answer["scheduled"]
    answer = client.ask(schedule="x = 1\nx.y")
    assert answer["error"].startswith("schedule, line 2: AttributeError")
    assert client.ask(schedule="(")["error"].startswith("schedule, line 1: SyntaxError")
    answer = client.ask(schedule="pass\nraise SystemExit(0)")
    assert answer["error"] == "schedule, line 2: SystemExit: 0" and "i" in answer["scheduled"]
    assert client.ask(schedule="raise KeyboardInterrupt")["error"].startswith(
        "schedule, line 1: Key"
    )
    assert "error[parse" in client.ask("def main(:")["error"]
    assert "error[target.unknown]" in client.ask(target="loom")["error"]


def test_symbolic_extents_come_with_the_request(client):
    assert "cli.run.unset" in client.ask(ADD)["error"]
    answer = client.ask(ADD, A="10", B="10")
    assert answer["error"] == "" and states(answer)["result"] == "ok"


def test_a_wrong_program_is_caught_by_the_reference(client):
    # The reference runs the program as written; a schedule that goes another way is compared with that.
    other = GEMM.replace("A[vi, vk] * B[vk, vj]", "A[vi, vk] + B[vk, vj]")
    schedule = f"from weft import script\nsch.__init__(script.from_source({other!r}, 'x'))"
    answer = client.ask(schedule=schedule, target="c")
    assert states(answer).get("result") == "failed"


def test_only_the_token_and_this_host_are_served(client):
    token = client.here.token
    assert len(token) >= 32 and client.here.server_address[0] == "127.0.0.1"
    status, page, headers = client.raw("GET", f"/?token={token}")
    assert status == 200 and "{{" not in page.replace("{{}}", "")
    policy = headers["Content-Security-Policy"]
    nonce = re.search("nonce-([^']+)'", policy)[1]
    assert f'<script nonce="{nonce}">' in page and "default-src 'none'" in policy
    assert headers["Referrer-Policy"] == "no-referrer" and headers["Cache-Control"] == "no-store"
    assert not re.search(r"(src|href)=|https?://", page), "nothing is fetched from anywhere"
    for path in ("/", "/?token=", f"/?token={token[:-1]}", f"/?other={token}", "/?token=%C3%A9"):
        status, text, _ = client.raw("GET", path)
        assert status == 403 and "token" in text
    assert client.raw("GET", f"/x?token={token}")[0] == 404
    assert client.raw("POST", "/answer", "{}")[0] == 403
    assert client.raw("POST", "/", "{}", **{"X-Weft-Token": token})[0] == 404
    assert client.raw("GET", f"/?token={token}", Host="evil.example")[0] == 403
    assert client.raw("PUT", "/answer", "{}")[0] == 501


def test_requests_that_cannot_be_read_are_refused(client):
    mine = {"X-Weft-Token": client.here.token}
    for body, text in [
        ("{", "no JSON object"),
        ("[1]", "no JSON object"),
        ("[" * 200_000, "no JSON object"),
        ('{"program": "\\ud800", "schedule": "", "target": "c"}', "half of a character"),
        ('{"program": 1}', '"program" is no text'),
        ('{"program": "", "schedule": "", "target": "c", "values": [1]}', '"values" does not map'),
    ]:
        status, said, _ = client.raw("POST", "/answer", body, **mine)
        assert status == 200 and "error[playground.request]" in said
        assert text in json.loads(said)["error"]
    big = {**mine, "Content-Length": str(playground.MAXIMUM + 1)}
    assert client.raw("POST", "/answer", "", **big)[0] == 413
    assert client.raw("POST", "/answer", "", **{**mine, "Content-Length": "-1"})[0] == 413


def test_arrays_without_memory_and_processes_that_are_left(client):
    answer = client.ask(ADD, target="ref", A="1" + "0" * 15, B="1" + "0" * 15)
    assert answer["error"].startswith("run: the program's arrays do not fit into memory")
    assert states(answer)["build"] == "ok"
    left = "import subprocess\nprint(subprocess.Popen(['sleep', '600']).pid)"
    pid = int(client.ask(schedule=left)["printed"])
    for _ in range(100):
        state = pathlib.Path(f"/proc/{pid}/stat")
        if not state.exists() or state.read_text().rsplit(")", 1)[1].split()[0] == "Z":
            return
        time.sleep(0.05)
    raise AssertionError(f"process {pid} of a schedule goes on")


def test_endless_and_greedy_schedules_are_ended():
    slow = short(seconds=2.0)
    begun = time.monotonic()
    with pytest.raises(weft.Error) as caught:
        slow.here.compiler.answer(
            {"program": GEMM, "schedule": "while True: pass", "target": "ref", "values": {}}
        )
    assert caught.value.code == "playground.time"
    assert "took more than 2 seconds" in caught.value.message and time.monotonic() - begun < 300
    assert "playground.time" in slow.ask(schedule="while True: pass")["error"]
    greedy = short(seconds=100, memory=400)
    said = greedy.ask(schedule="x = []\nwhile True: x.append(bytearray(b'1' * (1 << 24)))")
    assert "error[playground.memory]" in said["error"] and "more than 400 MiB" in said["error"]
    for status in (3, 0):
        died = greedy.ask(schedule=f"import os\nos._exit({status})")
        assert "error[playground.child]" in died["error"] and f"status {status}" in died["error"]
    assert greedy.ask()["error"] == "", "the next one works"


def begin(here, got, count, **request):
    """A request that does not end, of which there are `count` then."""
    thread = threading.Thread(
        target=lambda: got.append(here.ask(schedule="import time\ntime.sleep(600)", **request))
    )
    thread.start()
    while len(here.here.compiler._children) < count:
        time.sleep(0.01)
    return thread


def test_a_newer_request_ends_the_older_one():
    here, got = short(seconds=100), []
    first = begin(here, got, 1)
    assert here.ask()["error"] == ""
    first.join(60)
    assert got == [{"superseded": True}]


def test_pages_do_not_end_each_other_s_requests():
    """Two browsers: one page's program goes on to its limit while another page is answered."""
    here, got = short(seconds=100), []
    threads = [begin(here, got, n + 1, page=f"page {n}") for n in range(playground.PAGES - 1)]
    assert here.ask(page="another")["error"] == "" and got == []
    threads.append(begin(here, got, playground.PAGES, page="the last"))
    assert here.ask(page="one more")["error"] == "", "the oldest makes room"
    threads[0].join(60)
    assert "error[playground.pages]" in got[0]["error"]
    assert "because 4 other pages of this playground compile" in got[0]["error"]
    here.here.compiler.stop()
    for thread in threads:
        thread.join(60)
    assert len(got) == playground.PAGES


def test_a_reader_that_goes_away_is_no_error(capfd):
    here = short(seconds=60)
    body = json.dumps({"program": GEMM, "schedule": "", "target": "ref", "values": {}}).encode()
    head = f"POST /answer HTTP/1.0\r\nHost: 127.0.0.1:{here.port}\r\nX-Weft-Token: {here.here.token}\r\n"
    link = socket.create_connection(("127.0.0.1", here.port))
    link.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    link.close()
    answer = here.ask()
    if answer == {
        "superseded": True
    }:  # the request that is gone was read after this one: the latest counts
        answer = here.ask()
    assert answer["error"] == "", "the next one is served"
    time.sleep(0.2)
    assert "Traceback" not in capfd.readouterr().err


def test_a_port_in_use_is_refused_with_the_way_out():
    here = playground.server()
    port = here.server_address[1]
    with pytest.raises(weft.IOError) as caught:
        playground.server(port)
    assert caught.value.code == "playground.port"
    assert (
        f"cannot listen on port {port}" in caught.value.message and "--port 0" in caught.value.help
    )
    here.server_close()


def test_the_command_prints_its_address_and_ends():
    process = subprocess.Popen(
        [sys.executable, "-m", "weft", "playground"],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    line = process.stdout.readline()
    port, token = re.match(r"open http://127\.0\.0\.1:(\d+)/\?token=(\S+)\n", line).groups()
    link = http.client.HTTPConnection("127.0.0.1", int(port), timeout=300)
    link.request("GET", f"/?token={token}")
    assert link.getresponse().status == 200
    link.close()
    process.send_signal(2)
    assert process.wait(60) == 0
    process.stdout.close()
