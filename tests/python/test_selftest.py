# SPDX-License-Identifier: Apache-2.0
"""weft selftest and weft docs: what they print, their exit status, what they say when something is missing."""

import argparse
import re
import subprocess
import sys
import urllib.error
import urllib.request
import webbrowser

import pytest
import weft
from weft._child import environment
from weft._errors import error
from weft.cli import main, manual, parser, selftest


@pytest.mark.targets("qpu", "vta", "wse")
def test_every_present_device_passes(capsys):
    assert selftest.run(None) == 0, capsys.readouterr().out
    printed = capsys.readouterr().out
    present = [d.name for d in weft.devices() if d.available and d.name != "null"]
    for name in [*present, "schedules", "files", "errors", "csl"]:
        assert re.search(rf"^ok +{re.escape(name)} ", printed, re.M), name
    for device in weft.devices():
        if not device.available:
            assert re.search(rf"^absent +{re.escape(device.name)} ", printed, re.M)
    assert "error[" not in printed and ", 0 failed, " in printed


def test_what_fails_is_named_and_the_rest_runs(monkeypatch, capsys):
    def wrong():
        raise AssertionError("differs from NumPy by 7")

    rows = [("first", wrong), ("second", lambda: "still runs")]
    monkeypatch.setattr(selftest, "checks", lambda: (rows, [("loom", "no such machine")]))
    assert selftest.run(None) == 1
    printed = capsys.readouterr().out
    assert "FAILED  first      AssertionError: differs from NumPy by 7" in printed
    assert "ok      second     still runs" in printed and "absent  loom" in printed
    assert "1 passed, 1 failed, 1 absent" in printed


def test_a_library_that_is_not_installed_is_no_failure(monkeypatch, capsys):
    def compile():
        raise error("emit", "jit.llvm.absent", "compiling needs libLLVM", help="install libllvm19")

    monkeypatch.setattr(selftest, "checks", lambda: ([("loom", compile)], []))
    assert selftest.run(None) == 0
    printed = capsys.readouterr().out
    assert "absent  loom       compiling needs libLLVM: install libllvm19" in printed
    assert "0 passed, 0 failed, 1 absent" in printed


def test_a_wrong_product_is_seen(monkeypatch):
    program = selftest._product
    monkeypatch.setattr(selftest, "_product", lambda integers: program(integers))
    monkeypatch.setattr(
        selftest.te, "sum", lambda value, axis: weft.te.max(value, axis=axis), raising=True
    )
    with pytest.raises(AssertionError, match="differs from NumPy"):
        selftest._program(weft.device("ref"))


def test_docs_open_a_page_of_the_site(tmp_path, monkeypatch, capsys):
    package = tmp_path / "weft"
    (package / "site/guide").mkdir(parents=True)
    (package / "site/index.html").write_text("first")
    (package / "site/guide/torch.html").write_text("second")
    opened = []
    monkeypatch.setattr(weft, "__file__", str(package / "__init__.py"))
    monkeypatch.setattr(webbrowser, "open", opened.append)

    def docs(*words):
        manual.docs(parser().parse_args(["docs", *words]))
        return capsys.readouterr().out.strip()

    assert docs() == (package / "site/index.html").as_uri() == opened.pop()
    assert docs("guide/torch.md").endswith("/site/guide/torch.html") and len(opened) == 1
    assert docs("guide/torch", "--path") == str(package / "site/guide/torch.html")
    assert docs("torch", "--path") == str(package / "site/guide/torch.html")
    assert len(opened) == 1
    for asked, near in (("guide/torsh", "guide/torch"), ("../../secret", "")):
        with pytest.raises(weft.Error) as caught:
            docs(asked)
        assert caught.value.code == "cli.docs.page"
        assert f'no page "{asked}"' in caught.value.message and near in caught.value.help


def test_a_page_by_its_last_name_is_the_only_one_called_so(tmp_path, monkeypatch, capsys):
    for folder in ("guide", "design"):
        (tmp_path / "site" / folder).mkdir(parents=True)
        (tmp_path / "site" / folder / "torch.html").write_text("")
    (tmp_path / "site/index.html").write_text("")
    monkeypatch.setattr(weft, "__file__", str(tmp_path / "__init__.py"))
    with pytest.raises(weft.Error, match="guide/torch"):
        manual.docs(parser().parse_args(["docs", "torch", "--path"]))


def test_without_a_verb_the_verbs_are_listed(capsys):
    assert main([]) == 2
    said = capsys.readouterr().err
    assert "selftest" in said and "run the example programs" in said


def test_docs_are_served_to_this_machine(tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    (site / "index.html").write_text("first page")
    (site / "search").mkdir()
    (site / "search/search_index.js").write_text(
        'var __index = {"docs": []}'
    )  # all that packages have
    code = f"import pathlib; from weft.cli import manual; s = pathlib.Path({str(site)!r}); manual._serve(s, s / 'index.html')"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment()
    )
    try:
        address = process.stdout.readline().split()[1]
        assert address.startswith("http://127.0.0.1:") and address.endswith("/index.html")
        assert urllib.request.urlopen(address, timeout=60).read() == b"first page"
        index = address.replace("index.html", "search/search_index.json")
        assert urllib.request.urlopen(index, timeout=60).read() == b'{"docs": []}'
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(address.replace("index.html", "other/search_index.json"))
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_docs_that_were_not_built_say_what_builds_them(tmp_path, monkeypatch):
    monkeypatch.setattr(weft, "__file__", str(tmp_path / "python/weft/__init__.py"))
    with pytest.raises(weft.IOError) as caught:
        manual.docs(argparse.Namespace(page=None, path=True, serve=False))
    assert caught.value.code == "cli.docs.absent" and "not been built" in caught.value.message
    assert "tools/site" in caught.value.help
