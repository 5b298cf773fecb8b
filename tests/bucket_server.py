"""Buckets of the tests' own: as much of Cloud Storage's JSON API as its client uses for whole objects.

https://cloud.google.com/storage/docs/json_api/v1/objects. What asks for a bucket itself is refused: the jobs' account
may read and write objects and nothing else.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from loopback import serving

_OBJECTS = re.compile(r"/(?P<kind>upload/|download/)?storage/v1/b/(?P<bucket>[^/]+)/o(?:/(?P<name>[^/]+))?")


class Buckets(ThreadingHTTPServer):
    """All buckets of a server, and the environment that leads Google's client to it."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects: dict[str, bytes] = {}
        """By address, as `gs://bucket/name`."""
        self.environment = {"STORAGE_EMULATOR_HOST": f"http://127.0.0.1:{self.server_port}"}

    def below(self, folder: str) -> dict[str, bytes]:
        """The objects in the folder, by their names inside it."""
        return {key.removeprefix(f"{folder}/"): it for key, it in self.objects.items() if key.startswith(f"{folder}/")}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Buckets

    def do_GET(self) -> None:
        self._answer()

    do_POST = do_DELETE = do_GET  # noqa: N815 - the names that the server's library looks for

    def log_message(self, *_: Any) -> None:
        """Nothing on the terminal."""

    def _answer(self) -> None:
        address = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        found = _OBJECTS.fullmatch(address.path)
        if found is None:
            self._send(HTTPStatus.FORBIDDEN, {"error": {"code": 403, "message": "no access to the bucket itself"}})
            return
        folder = f"gs://{found['bucket']}/"
        name = folder + unquote(found["name"] or "")
        if self.command == "POST":
            self._written(folder, body)
        elif found["name"] is None:
            self._listed(folder, parse_qs(address.query).get("prefix", [""])[0])
        elif name not in self.server.objects:
            self._send(HTTPStatus.NOT_FOUND, {"error": {"code": 404, "message": "no such object"}})
        elif self.command == "DELETE":
            del self.server.objects[name]
            self._send(HTTPStatus.NO_CONTENT)
        else:
            self._send(HTTPStatus.OK, self.server.objects[name])

    def _written(self, folder: str, body: bytes) -> None:
        boundary = b"--" + self.headers["Content-Type"].partition('boundary="')[2].rstrip('"').encode()
        _, described, content, _ = body.split(boundary)
        name = json.loads(_part(described))["name"]
        data = _part(content)
        self.server.objects[folder + name] = data
        self._send(HTTPStatus.OK, {"name": name, "size": str(len(data))})

    def _listed(self, folder: str, prefix: str) -> None:
        """The objects right below the prefix, as with the delimiter `/`."""
        names = [key.removeprefix(folder) for key in sorted(self.server.objects) if key.startswith(folder + prefix)]
        items = [{"name": name} for name in names if "/" not in name.removeprefix(prefix)]
        self._send(HTTPStatus.OK, {"kind": "storage#objects", "items": items})

    def _send(self, status: HTTPStatus, content: bytes | dict[str, Any] = b"") -> None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header(
            "Content-Type", "application/octet-stream" if isinstance(content, bytes) else "application/json"
        )
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _part(text: bytes) -> bytes:
    """What stands below the headers of a part of a message."""
    return text.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n")


@contextmanager
def buckets() -> Iterator[Buckets]:
    """A server, until the end."""
    with serving(Buckets()) as server:
        yield server
