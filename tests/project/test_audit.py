"""The look-up of known holes, by the real pip-audit against a stand-in of its service on this machine."""

from collections.abc import Iterator
from email.message import Message
from typing import Any

import audit
import pytest

from loopback import answering

LOCK = "requirements.txt"
HOLE = {
    "id": "GHSA-aaaa-bbbb-cccc",
    "summary": "A hole.",
    "details": "A hole.",
    "affected": [
        {
            "package": {"name": "jinja2", "ecosystem": "PyPI"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "99.1"}]}],
        }
    ],
}


class Service:
    """Answers each question about a version as OSV does."""

    address = ""
    hole_in: str | None = None
    """The package that has one."""

    def answer(self, _: str, __: str, ___: Message, asked: Any) -> tuple[int, Any]:
        """The hole of that package, and nothing about the others."""
        return 200, {"vulns": [HOLE]} if asked["package"]["name"] == self.hole_in else {}


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """A service of this machine that knows of no hole, unless told, asked about one lock only."""
    monkeypatch.setattr(audit, "LOCKS", (LOCK,))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    made = Service()
    with answering(made.answer) as made.address:
        yield made


def _asked(service: Service, *options: str) -> int:
    return audit.main(["--service", f"{service.address}/v1/query", *options])


def test_a_lock_without_holes(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    """Every package of the lock is looked up, and the number says so."""
    assert _asked(service) == 0

    packages = sum(not line.startswith(" ") for line in (audit.ROOT / LOCK).read_text(encoding="utf-8").splitlines())
    said = capsys.readouterr().out
    assert said.startswith(f"{LOCK}: ")
    assert said.endswith(" packages, no known hole\n")
    assert 0 < int(said.split()[1]) <= packages


def test_a_lock_with_a_hole(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    """The package, the hole and the version that fixes it are said, and it is a failure, reachable or not."""
    service.hole_in = "jinja2"

    assert _asked(service, "--if-reachable") == 1
    said = capsys.readouterr().out
    assert f"{LOCK}: jinja2 " in said
    assert "GHSA-aaaa-bbbb-cccc, fixed in 99.1" in said


@pytest.mark.parametrize(("options", "status"), [((), 1), (("--if-reachable",), 0)])
def test_no_service(
    service: Service, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], status: int
) -> None:
    """Where nothing answers, nothing passes for audited: it is said by name, and only an option makes it no failure."""
    with answering(service.answer) as service.address:
        pass  # and no longer

    assert _asked(service, *options) == status
    said = capsys.readouterr().out
    assert f"{LOCK}: not audited: " in said
    assert "make audit" in said
