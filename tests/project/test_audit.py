"""The audit for known vulnerabilities, with the real pip-audit and a local stand-in of OSV."""

from collections.abc import Iterator
from email.message import Message
from typing import Any

import audit
import pytest

from loopback import serving_json

pytestmark = pytest.mark.shell

LOCK = "requirements.txt"
VULNERABILITY = {
    "id": "GHSA-aaaa-bbbb-cccc",
    "summary": "A vulnerability.",
    "details": "A vulnerability.",
    "affected": [
        {
            "package": {"name": "jinja2", "ecosystem": "PyPI"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "99.1"}]}],
        }
    ],
}


class Service:
    """Answers queries about a version like OSV."""

    address = ""
    vulnerable_package: str | None = None
    """Name of the package with a vulnerability."""

    def answer(self, _: str, __: str, ___: Message, query: Any) -> tuple[int, Any]:
        """Return the vulnerability of that package, and none for any other."""
        return 200, {"vulns": [VULNERABILITY]} if query["package"][
            "name"
        ] == self.vulnerable_package else {}


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """Serve a local stand-in without vulnerabilities, and limit the audit to one lock."""
    monkeypatch.setattr(audit, "LOCKS", (LOCK,))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    osv = Service()
    with serving_json(osv.answer) as osv.address:
        yield osv


def _run_audit(service: Service, *options: str) -> int:
    return audit.main(["--service", f"{service.address}/v1/query", *options])


def test_lock_without_vulnerabilities_passes(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every package of the lock is audited and counted."""
    assert _run_audit(service) == 0

    packages = sum(
        not line.startswith(" ")
        for line in (audit.ROOT / LOCK).read_text(encoding="utf-8").splitlines()
    )
    output = capsys.readouterr().out
    assert output.startswith(f"{LOCK}: ")
    assert output.endswith(" packages, no known vulnerability\n")
    assert 0 < int(output.split()[1]) <= packages


def test_lock_with_a_vulnerability_fails(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    """A vulnerability is printed with its package and the fixed version, and fails the audit with either option."""
    service.vulnerable_package = "jinja2"

    assert _run_audit(service, "--if-reachable") == 1
    output = capsys.readouterr().out
    assert f"{LOCK}: jinja2 " in output
    assert "GHSA-aaaa-bbbb-cccc, fixed in 99.1" in output


@pytest.mark.parametrize(("options", "status"), [((), 1), (("--if-reachable",), 0)])
def test_unavailable_service_is_reported(
    service: Service, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], status: int
) -> None:
    """Without the service, the lock is reported as not audited, which only the option turns into a success."""
    with serving_json(service.answer) as service.address:
        pass  # the service ends with the block

    assert _run_audit(service, *options) == status
    output = capsys.readouterr().out
    assert f"{LOCK}: not audited: " in output
    assert "make audit" in output
