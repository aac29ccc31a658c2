# SPDX-License-Identifier: Apache-2.0
"""tools/setup with an apt-get, a dpkg-query and a pip that only write down what they are asked for."""

import pathlib
import shutil
import subprocess

import pytest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
PROGRAMS = {
    "dpkg-query": 'for last; do :; done; grep -qx "$last" "$STATE/has" && echo "install ok installed"',
    "apt-cache": 'grep -qx "$2" "$STATE/archive"',
    "apt-get": 'echo "apt-get $*" >>"$STATE/asked"; [ ! -e "$STATE/refuse" ] || ! grep -qFf "$STATE/refuse" <<<"$*"',
    "id": "echo 0",
    "find": '[ -e "$STATE/old" ] || echo lists',
}
PYTHON = 'case "$*" in *importlib.metadata*) grep -qx "${@: -1}" "$STATE/python" ;; *) echo "$*" >>"$STATE/asked"; ! grep -qFf "$STATE/refuse" <<<"$*" ;; esac'
PACKAGES = "[one]\nalpha\nbeta|gamma\n?delta\n[two]\nepsilon\n"
PIP = "[one]\nneeded==1\n?spare==2\n[two]\nlater==3\n"


@pytest.fixture
def setup(tmp_path):
    """A function that runs tools/setup in a tree of its own: setup(groups, **files of the state) -> (process, what was asked)."""
    state = tmp_path / "state"
    for folder in ("tree/tools", "tree/.venv/bin", "bin", "state"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(TOOLS / "setup", tmp_path / "tree/tools/setup")
    (tmp_path / "tree/tools/packages.txt").write_text(PACKAGES)
    (tmp_path / "tree/tools/pip.txt").write_text(PIP)
    programs = {tmp_path / "bin" / name: text for name, text in PROGRAMS.items()}
    programs[tmp_path / "tree/.venv/bin/python"] = PYTHON
    for path, text in programs.items():
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)

    def run(*groups, more=None, **files):
        for name, text in {
            "has": "",
            "archive": "",
            "python": "",
            "refuse": "",
            "asked": "",
            **files,
        }.items():
            (state / name).write_text(text)
        done = subprocess.run(
            [tmp_path / "tree/tools/setup", *groups], capture_output=True, text=True, check=False,
            env={"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "STATE": str(state), **(more or {})},
        )  # fmt: skip
        return done, (state / "asked").read_text().splitlines()

    return run


ALL = "alpha\ngamma\ndelta\nepsilon\n"


def test_only_what_is_missing_of_the_asked_groups(setup):
    done, asked = setup("one", has="alpha\n", archive=ALL)
    assert done.returncode == 0, done.stderr
    assert len(asked) == 2 and asked[0].startswith("apt-get install")
    # The second name where the archive has not the first; nothing of the other group.
    assert asked[0].endswith(" gamma delta")
    assert asked[1].endswith(" needed==1 spare==2") and "pip install" in asked[1]
    done, asked = setup("one", has=ALL)
    assert (
        done.returncode == 0 and asked == []
    )  # nothing is missing, and pip's part was done before


def test_what_may_be_absent(setup):
    done, asked = setup("one", has="alpha\n", archive="gamma\n", python="spare\n")
    assert done.returncode == 0, done.stderr
    assert "this release has no delta" in done.stderr and asked[0].endswith(" gamma")
    assert asked[1].endswith(" needed==1")  # any version of the other one will do
    done, asked = setup("two", archive="alpha\n")
    assert done.returncode == 1 and "epsilon (not in this release)" in done.stderr
    assert not any("install" in line for line in asked)


def test_one_that_cannot_be_installed_is_named(setup):
    done, asked = setup("one", archive=ALL, refuse="delta\n")
    assert done.returncode == 0 and "could not install delta" in done.stderr, done.stderr
    assert any(line.endswith(" update -qq") for line in asked)  # the lists may have been too old
    done, _ = setup("one", archive=ALL, refuse="alpha\n")
    assert done.returncode == 1 and "could not install: alpha" in done.stderr
    done, _ = setup("two", has=ALL, refuse="later\n")
    assert done.returncode == 1 and "could not install later==3" in done.stderr


def test_lists_that_are_old_are_read_again(setup):
    _, asked = setup("two", archive=ALL)
    assert not any(line.endswith(" update -qq") for line in asked)
    done, asked = setup("two", archive=ALL, old="")
    assert done.returncode == 0 and asked[0].endswith(" update -qq")
    done, _ = setup("two", archive=ALL, old="", refuse="update\n")
    assert done.returncode == 1 and "cannot be read, and these are needed: epsilon" in done.stderr


def test_nothing_is_installed_when_asked_to_complain(setup):
    done, asked = setup("one", more={"WEFT_NO_INSTALL": "1"})
    assert done.returncode == 1 and "missing packages: alpha beta|gamma delta" in done.stderr
    done, more = setup("one", has=ALL, more={"WEFT_NO_INSTALL": "1"})
    assert done.returncode == 1 and "missing Python packages" in done.stderr and asked == more == []


def test_a_system_without_dpkg(setup, tmp_path):
    """Only what building needs is looked for, and Debian's names say what to install."""
    few = tmp_path / "few"
    few.mkdir()
    for name in ("bash", "env", "dirname", "id", "cat", "sha256sum", "cut"):
        (few / name).symlink_to(shutil.which(name))
    done, asked = setup("one", more={"PATH": str(few)})
    assert done.returncode == 1 and asked == [], done.stderr
    assert "this system has no dpkg, and no c++ cmake ninja python3" in done.stderr
    assert done.stderr.strip().endswith("then run this again: alpha beta|gamma delta")
    for name in ("c++", "cmake", "ninja", "python3"):
        (few / name).symlink_to(shutil.which("true"))
    done, asked = setup("one", more={"PATH": str(few)})
    assert done.returncode == 0 and "pip install" in asked[0], done.stderr
