"""The look-up of known holes, by the real pip-audit against a stand-in of its service on this machine."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import audit
import pytest

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


class Service(BaseHTTPRequestHandler):
    """Answers each question about a version as OSV does."""

    def do_POST(self) -> None:
        """A hole in one package, where the server is to have one, and nothing about the others."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        wanted = self.server.hole_in == asked["package"]["name"]  # type: ignore[attr-defined] # the server is the test's
        body = json.dumps({"vulns": [HOLE]} if wanted else {}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Keep quiet."""


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A service of this machine that knows of no hole, unless told, asked about one lock only."""
    monkeypatch.setattr(audit, "LOCKS", (LOCK,))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    made = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    made.hole_in = None  # type: ignore[attr-defined] # likewise
    thread = Thread(target=made.serve_forever)
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def _asked(service: Any, *options: str) -> int:
    return audit.main(["--service", f"http://127.0.0.1:{service.server_port}/v1/query", *options])


def test_a_lock_without_holes(service: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Every package of the lock is looked up, and the number says so."""
    assert _asked(service) == 0

    packages = sum(not line.startswith(" ") for line in (audit.ROOT / LOCK).read_text(encoding="utf-8").splitlines())
    said = capsys.readouterr().out
    assert said.startswith(f"{LOCK}: ")
    assert said.endswith(" packages, no known hole\n")
    assert 0 < int(said.split()[1]) <= packages


def test_a_lock_with_a_hole(service: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The package, the hole and the version that fixes it are said, and it is a failure, reachable or not."""
    service.hole_in = "jinja2"

    assert _asked(service, "--if-reachable") == 1
    said = capsys.readouterr().out
    assert f"{LOCK}: jinja2 " in said
    assert "GHSA-aaaa-bbbb-cccc, fixed in 99.1" in said


@pytest.mark.parametrize(("options", "status"), [((), 1), (("--if-reachable",), 0)])
def test_no_service(service: Any, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], status: int) -> None:
    """Where nothing answers, nothing passes for audited: it is said by name, and only an option makes it no failure."""
    service.shutdown()
    service.server_close()

    assert _asked(service, *options) == status
    said = capsys.readouterr().out
    assert f"{LOCK}: not audited: " in said
    assert "make audit" in said
