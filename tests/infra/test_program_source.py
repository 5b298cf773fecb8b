"""Names in the source of a stack program that make it behave differently under review."""

from pathlib import Path

import pytest

from spec_factory import ROOT
from tpucfg.infra.program_names import ALLOWED_MODULES
from tpucfg.infra.program_source import read_uses
from tpucfg.infra.stack_program import StackProgram


def uses(folder: Path, **files: str) -> list[str]:
    """Return the uses in a program of some files, as `file:line name`."""
    program = folder / "program"
    for name, text in files.items():
        path = program / f"{name.replace('__in__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return [f"{use.file}:{use.line} {use.name}" for use in read_uses(_program(program))]


def _program(folder: Path) -> StackProgram:
    return StackProgram(folder, "tpucfg", is_own=True, has_project=True, shown="program/__main__.py")


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("from pulumi.runtime.mocks import MockMonitor", "MockMonitor"),
        ("import pulumi.runtime.mocks as m", "pulumi.runtime"),
        ("getattr(runtime, 'MockMonitor')", "MockMonitor"),
        ("pulumi.runtime.is_dry_run()", "is_dry_run"),
        ("import os\nos.environ['X']", "environ"),
        ("from os import environ as e", "environ"),
        ("os.sys.modules", "sys.modules"),
        ("from tpucfg.infra.isolation import isolated_runner", "tpucfg"),
        ("import subprocess", "subprocess"),
        ("asyncio.subprocess.run", "subprocess"),
        ("eval('1')", "eval"),
        ("import urllib.request", "urllib"),
        ("import time", "time"),
        ("getattr(runtime, 'is_' + name)", "getattr"),
        ("type(monitor).__name__ == 'mockmonitor'", "mockmonitor"),
        ("open('/proc/self/status')", "open"),
        ("getattr(os, 'environ')", "os"),
        ("operator.attrgetter('environ')(os)", "os"),
        ("match os:\n  case object(environ=e): pass", "os"),
        ("os.__dict__['environ']", "__dict__"),
        ("import os as o", "os as o"),
        ("from os import access", "os.access"),
        ("os.path.isfile('/x')", "os.path.isfile"),
        ("sys.flags", "sys.flags"),
        ("import resource", "resource"),
        ("import threading", "threading"),
        ("import timeit", "timeit"),
        ("import yaml", "yaml"),
        ("map(getattr, [x], ['environ'])", "getattr"),
        ("x.__class__.__mro__", "__mro__"),
        ("pulumi.runtime.config", "pulumi.runtime"),
        ("bucket.id.apply(grant)", "apply"),
        ("bucket.id.apply(lambda name: grant() if name else None)", "apply"),
        ("run = bucket.id.apply", "apply"),
        ("if __file__.startswith('/tmp'): pass", "__file__"),
    ],
)
def test_name_is_found(tmp_path: Path, source: str, name: str) -> None:
    """A name is found as a module, an attribute, an import under another name, or a text."""
    assert any(use.endswith(f" {name}") for use in uses(tmp_path, __main__=source))


@pytest.mark.parametrize(
    "source",
    [
        "import re\nre.compile('x')",
        "resource.time, resource.secrets, resource.site, condition.random",
        "import pulumi\npulumi.get_stack()",
        "from tpucfg.plan.naming import bucket_of",
        "import pulumi_time, pulumi_random",
        "import os\nos.path.join('a', os.sep)",
        "super().__init__(type(self).__name__)",
        "bucket.id.apply(lambda name: f'gs://{name}/{json.dumps([name])}')",
        "getattr(resource, 'name')",
        "text = 'tested with mocks, not with an engine'",
        "text = 'it uses the environ and the time'",
    ],
)
def test_harmless_name_is_not_found(tmp_path: Path, source: str) -> None:
    """Methods and modules that only share a name with a dangerous one are not reported."""
    assert uses(tmp_path, __main__=source) == []


def test_imported_modules_are_searched(tmp_path: Path) -> None:
    """Modules of the program are searched if something imports them, also from packages and relatively."""
    names = uses(
        tmp_path,
        __main__="import a\nfrom package import deep",
        a="import socket",
        package__in____init__="",
        package__in__deep="from . import sibling",
        package__in__sibling="eval('1')",
        test_of_it="import pulumi.runtime.mocks",
    )

    assert names == ["program/a.py:1 socket", "program/package/sibling.py:1 eval"]


def test_unreadable_source_is_reported(tmp_path: Path) -> None:
    """Source that Python cannot parse, and compiled modules, are code that no review reads."""
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "fast.cpython-311-x86_64-linux-gnu.so").write_bytes(b"\x7fELF")

    names = uses(tmp_path, __main__="import fast, bad, deep", bad="def (", deep=f"x = {'(' * 5000}{')' * 5000}")

    assert [use.partition(" ")[2] for use in names] == ["a file without readable source"] * 3


def test_modules_that_shadow_others_are_found(tmp_path: Path) -> None:
    """A module with the name of an installed one runs in an update only, because a review has imported the other."""
    (tmp_path / "program" / "grpc").mkdir(parents=True)

    names = uses(tmp_path, __main__="", yaml="", json="", bucket="")

    assert names == ["program/grpc:1 grpc", "program/json.py:1 json", "program/yaml.py:1 yaml"]


def test_bundled_program_is_trusted_only_unchanged(tmp_path: Path) -> None:
    """The program that `init` writes has no use; one changed line in a file makes its uses count again."""
    assert read_uses(_program(ROOT / "stacks")) == ()
    source = (ROOT / "stacks" / "ml_service.py").read_text()

    assert uses(tmp_path, __main__="import ml_service", ml_service=source) == []
    assert any(
        use.endswith("MockMonitor")
        for use in uses(tmp_path / "b", __main__="import ml_service", ml_service=f"{source}#")
    )


def test_allowed_modules_are_those_of_the_bundled_program() -> None:
    """The bundled program imports each allowed module of tpucfg, and no other one."""
    sources = "".join(path.read_text() for path in (ROOT / "stacks").glob("*.py"))
    imported = {line.split()[1] for line in sources.splitlines() if line.startswith("from tpucfg.")}

    pairs = [(name, module) for name in ALLOWED_MODULES for module in imported if _covers(name, module, sources)]
    assert {name for name, _ in pairs} == ALLOWED_MODULES
    assert {module for _, module in pairs} == imported


def _covers(name: str, module: str, sources: str) -> bool:
    parent, _, last = name.rpartition(".")
    return f"{module}.".startswith(f"{name}.") or (module == parent and f"import {last}" in sources)
