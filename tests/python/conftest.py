# SPDX-License-Identifier: Apache-2.0
"""Seeds are fixed and printed: a failure is reproduced by the same command."""

import fnmatch
import os
import pathlib
import sys
import tempfile

import numpy as np
import pytest

_package = os.path.join(os.path.dirname(__file__), "..", "..", "python")
if os.environ.get("WEFT_TEST_INSTALLED") != "1":
    sys.path.insert(0, os.path.abspath(_package))
sys.path.append(os.path.abspath(os.path.join(_package, "..", "compat", "needle")))

# PoCL translates each kernel for one processor and one size of groups: most of the time of the tests of cards. They compare
# results, not speed, and what its optimiser leaves alone runs in a third of the time. ./test says the same to the C++ tests.
os.environ.setdefault("POCL_EXTRA_BUILD_FLAGS", "-cl-opt-disable")

# What somebody tuned on this machine is no part of a test.
os.environ["WEFT_TUNE_DB"] = os.path.join(os.path.dirname(__file__), "no folder", "tune.db")

SEED = int(os.environ.get("WEFT_TEST_SEED", "20261121"))


def pytest_report_header(config):
    return f"weft seed: {SEED} (WEFT_TEST_SEED)"


def pytest_addoption(parser):
    parser.addoption(
        "--skips",
        metavar="FILE",
        action="append",
        help="fail when a test is skipped for a reason that is not in FILE; may be given several times",
    )


def known_skips(*paths):
    """(pattern of test, pattern of reason) of each row of lists of skips."""
    lines = [line for path in paths for line in pathlib.Path(path).read_text().splitlines()]
    return [
        tuple(part.strip() for part in line.split("|", 1))
        for line in lines
        if line.strip() and line[0] != "#"
    ]


def unlisted_skips(reports, rows):
    """[(test, reason)] of the reports of skipped tests that no row allows."""
    out = []
    for report in reports:
        reason = report.longrepr[2].removeprefix("Skipped: ").splitlines()[0]
        if not any(
            fnmatch.fnmatchcase(report.nodeid, t) and fnmatch.fnmatchcase(reason, r)
            for t, r in rows
        ):
            out.append((report.nodeid, reason))
    return out


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    paths, reporter = (
        session.config.getoption("--skips"),
        session.config.pluginmanager.getplugin("terminalreporter"),
    )
    if not paths or reporter is None:  # a worker of xdist: the controller sees all reports
        return
    skipped = reporter.stats.get("skipped", [])
    unlisted = unlisted_skips(skipped, known_skips(*paths))
    session.config.unlisted = unlisted, len(skipped)
    if unlisted:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter, config):
    unlisted, count = getattr(config, "unlisted", ((), 0))
    if config.getoption("--skips"):
        terminalreporter.section("skips")
        terminalreporter.line(
            f"{count} skipped, {len(unlisted)} of them for a reason that {', '.join(config.getoption('--skips'))} does not list"
        )
        for test, reason in unlisted:
            terminalreporter.line(f"UNLISTED {test} | {reason}")


def pytest_configure(config):
    config.addinivalue_line("markers", "targets(*names): skipped where one of them was not built")


def pytest_collection_modifyitems(items):
    """A build may leave targets out (WEFT_TARGETS): what names one of those, as a parameter or by
    the mark `targets`, is skipped. Names that no build knows are left to the tests."""
    from weft import _core

    listed = pathlib.Path(__file__).parents[2] / "src/weft/targets/targets.list"
    lines = listed.read_text().splitlines()
    absent = {line for line in lines if line and not line.startswith("#")} - set(_core.targets())
    for item in items:
        named = [name for mark in item.iter_markers("targets") for name in mark.args]
        if hasattr(item, "callspec"):
            named += [v for v in item.callspec.params.values() if isinstance(v, str)]
        missing = sorted({n.split(":")[0] for n in named} & absent)
        if missing:
            reason = f"built without the target {', '.join(missing)}"
            item.add_marker(pytest.mark.skip(reason=reason))


# Files whose builds interpret the program before and after each pass (docs/design/testing.md).
VALIDATED = (
    "test_builds test_generated_programs test_program_text test_schedule_check test_schedule_steps test_swizzle test_te"
).split()


@pytest.fixture(autouse=True)
def validated(request, monkeypatch):
    if request.node.path.stem in VALIDATED and "WEFT_VALIDATE" not in os.environ:
        monkeypatch.setenv("WEFT_VALIDATE", "100000")


@pytest.fixture
def rng(request):
    return np.random.default_rng([SEED, sum(map(ord, request.node.name))])


@pytest.fixture(scope="session")
def jobs():
    """jobs("mpirun" or "torchrun", ranks, program, *arguments): (status, what it printed)."""
    from launchers import Jobs

    of = os.environ.get("PYTEST_XDIST_TESTRUNUID", os.getpid())  # one for all workers
    made = Jobs(pathlib.Path(tempfile.gettempdir()) / f"weft-jobs-{of}")
    yield made
    made.end()
