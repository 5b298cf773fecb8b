"""A stand-in for Cloud Storage, as tests have no bucket: the part of its JSON API that checkpoint libraries call.

https://cloud.google.com/storage/docs/json_api/v1, as gcsfs, TensorStore and google-cloud-storage call it. It enforces
IAM: a request needs the permissions that Google lists for its method, and gets those of the roles on the bucket.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from email import message_from_bytes
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

from loopback import serving

ROLES: Final[Mapping[str, frozenset[str]]] = {
    role: frozenset(f"storage.{permission}" for permission in permissions.split())
    for role, permissions in {
        "roles/storage.objectUser": "objects.create objects.delete objects.get objects.list objects.update",
        "roles/storage.objectViewer": "objects.get objects.list",
        "roles/storage.legacyBucketReader": "buckets.get objects.list",
    }.items()
}
"""Permissions of each role on buckets and objects: https://cloud.google.com/storage/docs/access-control/iam-roles."""
_PERMISSIONS: Final = {
    ("bucket", "GET"): "storage.buckets.get",
    ("objects", "GET"): "storage.objects.list",
    ("objects", "POST"): "storage.objects.create",
    ("object", "GET"): "storage.objects.get",
    ("object", "DELETE"): "storage.objects.delete",
}
"""The permission of each method; replacing an object needs `storage.objects.delete` too.

https://cloud.google.com/storage/docs/access-control/iam-json
"""
_REPLACE: Final = "storage.objects.delete"
_PATH: Final = re.compile(
    r"/(?:upload/|download/)?storage/v1/b/(?P<bucket>[^/]+)(?P<objects>/o(?:/(?P<name>[^/]+))?)?"
)
_TIME: Final = "2026-01-01T00:00:00.000Z"
"""The time at which each object was created and updated."""


class Buckets(ThreadingHTTPServer):
    """A server of buckets, and the environment variables that direct the clients to it."""

    daemon_threads = True
    request_queue_size = 64  # TensorStore opens many connections at once

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects: dict[str, bytes] = {}
        """Content by URL, such as `gs://bucket/name`."""
        self.uploads: list[bytearray] = []
        """Content that each upload in chunks has received so far."""
        self.roles: dict[str, frozenset[str]] = defaultdict(
            lambda: frozenset(["roles/storage.objectUser"])
        )
        """The roles that the caller has, by bucket."""
        self.used: set[tuple[str, str]] = set()
        """Each bucket with each permission that a request needed."""
        self.refused: set[tuple[str, str]] = set()
        """Those of them that the caller did not have."""
        address = f"http://127.0.0.1:{self.server_port}"
        self.environment = {
            "STORAGE_EMULATOR_HOST": address,
            "TENSORSTORE_GCS_HTTP_URL": address,
            "GOOGLE_AUTH_TOKEN_FOR_TESTING": "token",
        }

    def below(self, folder: str) -> dict[str, bytes]:
        """Return the objects in a folder, by their names inside it."""
        prefix = f"{folder}/"
        return {
            url.removeprefix(prefix): data
            for url, data in self.objects.items()
            if url.startswith(prefix)
        }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = (
        True  # otherwise, each response waits for 40 ms between its headers and its content
    )
    server: Buckets

    def handle(self) -> None:
        """Handle the requests of a connection, which a client may close at any time."""
        with suppress(ConnectionError):
            super().handle()

    def do_GET(self) -> None:
        self._respond()

    do_POST = do_DELETE = do_GET  # noqa: N815 - the names that http.server calls

    def log_message(self, *_: Any) -> None:
        """Log nothing."""

    def _respond(self) -> None:
        address = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(address.query).items()}
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        match = _PATH.fullmatch(address.path)
        name = unquote((match and match["name"]) or "")
        kind = "object" if name else "objects" if match and match["objects"] else "bucket"
        if match is None or (kind, self.command) not in _PERMISSIONS:
            self._send_error(
                HTTPStatus.NOT_IMPLEMENTED, f"not part of the stand-in: {self.command} {self.path}"
            )
            return
        bucket, folder = match["bucket"], f"gs://{match['bucket']}/"
        if self.command == "POST":
            self._store(bucket, query, body)
        elif not self._is_allowed(bucket, _PERMISSIONS[kind, self.command]):
            return
        elif kind == "bucket":
            self._send(HTTPStatus.OK, {"kind": "storage#bucket", "name": bucket})
        elif kind == "objects":
            self._list(folder, query)
        elif folder + name not in self.server.objects:
            self._send_error(HTTPStatus.NOT_FOUND, "no such object")
        elif self.command == "DELETE":
            self.server.objects.pop(folder + name, None)
            self._send(HTTPStatus.NO_CONTENT)
        elif query.get("alt") == "media":
            self._send_content(self.server.objects[folder + name])
        else:
            self._send(HTTPStatus.OK, self._properties(folder, name))

    def _is_allowed(self, bucket: str, *permissions: str) -> bool:
        """Return True if the caller has the permissions on a bucket; otherwise, send the error of the first missing."""
        granted = frozenset[str]().union(*(ROLES[role] for role in self.server.roles[bucket]))
        missing = [permission for permission in permissions if permission not in granted]
        self.server.used |= {(bucket, permission) for permission in permissions}
        self.server.refused |= {(bucket, permission) for permission in missing}
        if missing:
            message = f"Permission '{missing[0]}' denied on resource (or it may not exist)."
            self._send_error(HTTPStatus.FORBIDDEN, message)
        return not missing

    def _send_error(self, status: HTTPStatus, message: str) -> None:
        self._send(status, {"error": {"code": status.value, "message": message}})

    def _store(self, bucket: str, query: dict[str, str], body: bytes) -> None:
        """Store an object by one of the three kinds of uploads.

        https://cloud.google.com/storage/docs/uploads-downloads#uploads: its content alone, with its metadata as a body
        of two parts, or in chunks.
        """
        name, folder = query.get("name", ""), f"gs://{bucket}/"
        if query["uploadType"] == "multipart":
            metadata, body = _parts(self.headers["Content-Type"], body)
            name = json.loads(metadata)["name"]
        replaces = [_REPLACE] if folder + name in self.server.objects else []
        if not self._is_allowed(bucket, _PERMISSIONS["objects", "POST"], *replaces):
            return
        if query["uploadType"] == "resumable" and "upload_id" not in query:
            chunks = self.server.uploads
            chunks.append(bytearray())
            url = f"{self.server.environment['STORAGE_EMULATOR_HOST']}{self.path}&upload_id={len(chunks) - 1}"
            self._send(HTTPStatus.OK, {}, {"Location": url})
            return
        if query["uploadType"] == "resumable":
            received = self.server.uploads[int(query["upload_id"])]
            received += body
            if not self.headers["Content-Range"].endswith(f"/{len(received)}"):
                extent = {"Range": f"bytes=0-{len(received) - 1}"} if received else {}
                self._send(HTTPStatus.PERMANENT_REDIRECT, headers=extent)
                return
            body = bytes(received)
        self.server.objects[folder + name] = body
        self._send(HTTPStatus.OK, self._properties(folder, name))

    def _properties(self, folder: str, name: str) -> dict[str, Any]:
        data = self.server.objects[folder + name]
        times = dict.fromkeys(("timeCreated", "updated"), _TIME)
        # The generation only has to differ between two contents.
        return {
            "name": name,
            "size": str(len(data)),
            "generation": str(abs(hash(data)) or 1),
            **times,
        }

    def _list(self, folder: str, query: dict[str, str]) -> None:
        """Send the objects with a prefix; with a delimiter, those below it as common prefixes."""
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter")
        names = sorted(
            url.removeprefix(folder)
            for url in self.server.objects
            if url.startswith(folder + prefix)
        )
        prefixes: list[str] = []
        if delimiter:
            parts = [name.removeprefix(prefix).partition(delimiter) for name in names]
            prefixes = sorted({prefix + first + delimiter for first, deeper, _ in parts if deeper})
            names = [prefix + first for first, deeper, _ in parts if not deeper]
        items = [self._properties(folder, name) for name in names]
        self._send(HTTPStatus.OK, {"kind": "storage#objects", "items": items, "prefixes": prefixes})

    def _send_content(self, data: bytes) -> None:
        """Send an object, or the range of it that was asked for."""
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if wanted is None:
            self._send(HTTPStatus.OK, data)
            return
        start, stop = int(wanted[1]), min(int(wanted[2] or len(data)) + 1, len(data))
        if start >= len(data):
            self._send(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE)
        else:
            extent = {"Content-Range": f"bytes {start}-{stop - 1}/{len(data)}"}
            self._send(HTTPStatus.PARTIAL_CONTENT, data[start:stop], extent)

    def _send(
        self,
        status: HTTPStatus,
        content: bytes | dict[str, Any] = b"",
        headers: dict[str, str] | None = None,
    ) -> None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        kind = "application/octet-stream" if isinstance(content, bytes) else "application/json"
        generation = (
            {"X-Goog-Generation": str(abs(hash(content)) or 1)}
            if isinstance(content, bytes)
            else {}
        )
        self.send_response(status)
        for name, value in {"Content-Type": kind, **generation, **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _parts(content_type: str, body: bytes) -> list[bytes]:
    """Return the contents of a multipart body."""
    message = message_from_bytes(b"Content-Type: " + content_type.encode() + b"\r\n\r\n" + body)
    return [part.get_payload(decode=True) for part in message.walk() if not part.is_multipart()]  # type: ignore[misc]


@contextmanager
def buckets() -> Iterator[Buckets]:
    """Run a server of buckets until the block ends."""
    with serving(Buckets()) as server:
        yield server
