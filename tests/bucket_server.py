"""A stand-in for Cloud Storage: the part of its JSON API that its client uses for whole objects.

https://cloud.google.com/storage/docs/json_api/v1/objects. Requests about a bucket itself are refused, because the
jobs' account may only read and write objects.
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
    """A server of buckets, and the environment variables that direct Google's client to it."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects: dict[str, bytes] = {}
        """Content by URL, such as `gs://bucket/name`."""
        self.environment = {"STORAGE_EMULATOR_HOST": f"http://127.0.0.1:{self.server_port}"}

    def below(self, folder: str) -> dict[str, bytes]:
        """Return the objects in a folder, by their names inside it."""
        prefix = f"{folder}/"
        return {url.removeprefix(prefix): data for url, data in self.objects.items() if url.startswith(prefix)}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Buckets

    def do_GET(self) -> None:
        self._respond()

    do_POST = do_DELETE = do_GET  # noqa: N815 - the names that http.server calls

    def log_message(self, *_: Any) -> None:
        """Log nothing."""

    def _respond(self) -> None:
        address = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        match = _OBJECTS.fullmatch(address.path)
        if match is None:
            self._send(HTTPStatus.FORBIDDEN, {"error": {"code": 403, "message": "no access to the bucket itself"}})
            return
        folder = f"gs://{match['bucket']}/"
        name = folder + unquote(match["name"] or "")
        if self.command == "POST":
            self._store(folder, body)
        elif match["name"] is None:
            self._list(folder, parse_qs(address.query).get("prefix", [""])[0])
        elif name not in self.server.objects:
            self._send(HTTPStatus.NOT_FOUND, {"error": {"code": 404, "message": "no such object"}})
        elif self.command == "DELETE":
            del self.server.objects[name]
            self._send(HTTPStatus.NO_CONTENT)
        else:
            self._send(HTTPStatus.OK, self.server.objects[name])

    def _store(self, folder: str, body: bytes) -> None:
        boundary = b"--" + self.headers["Content-Type"].partition('boundary="')[2].rstrip('"').encode()
        _, metadata_part, content_part, _ = body.split(boundary)
        name = json.loads(_content_of_part(metadata_part))["name"]
        data = _content_of_part(content_part)
        self.server.objects[folder + name] = data
        self._send(HTTPStatus.OK, {"name": name, "size": str(len(data))})

    def _list(self, folder: str, prefix: str) -> None:
        """Send the names of the objects directly below the prefix, as with the delimiter `/`."""
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


def _content_of_part(part: bytes) -> bytes:
    """Return a part of a multipart body without its headers."""
    return part.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n")


@contextmanager
def buckets() -> Iterator[Buckets]:
    """Run a server of buckets until the block ends."""
    with serving(Buckets()) as server:
        yield server
