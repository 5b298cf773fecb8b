"""Stand-ins of the metadata server and of Google's APIs, on addresses in a network namespace that nothing leaves.

They run in the process of the test, on sockets that a thread opened in the namespace, so a test changes them while a
machine runs. They answer as documented:

- metadata: https://cloud.google.com/compute/docs/metadata/querying-metadata
- DELETE of a queued resource, an instance or a group: an operation; 404 when it is gone
- testIamPermissions: https://cloud.google.com/resource-manager/reference/rest/v3/projects/testIamPermissions
- a version of a secret:
  https://cloud.google.com/secret-manager/docs/reference/rest/v1/projects.secrets.versions/access
- a registry with one image: https://distribution.github.io/distribution/spec/api/
"""

import base64
import ctypes
import gzip
import hashlib
import io
import json
import os
import socket
import ssl
import tarfile
import threading
import time
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

CLONE_NEWNET: Final = 0x40000000
METADATA: Final = ("169.254.169.254", 80)
APIS: Final = ("169.254.1.1", 443)
TOKEN: Final = "ya29.of-the-host"  # noqa: S105 - a stand-in
NO_ANSWER: Final = 0
"""In the place of a status: the connection stays open, and nothing is sent."""


@dataclass
class Request:
    """A request that a service received."""

    at: float
    """`time.monotonic()`."""
    method: str
    host: str
    path: str
    status: int
    worker: int


@dataclass
class Cloud:
    """The services of the machines of one slice, and how each answers."""

    script: str
    tree: Path
    """The tree of the machines, whose busybox is the image of the program."""
    secret: bytes = b"first line\nsecond line\n"
    """The value of each secret."""
    deletions: list[int] = field(default_factory=list)
    """The statuses of the first calls that delete the slice; the later ones succeed, and then it is gone."""
    metadata: int = 200
    """The status of each answer of the metadata servers."""
    secrets: int = 200
    """The status of each request for a secret."""
    uploads: int = 200
    """The status of each upload to the bucket."""
    permission: int | bool = True
    """True if the account may delete the slice; a status in place of an answer to that."""
    delay: float = 0
    """The seconds before each answer."""
    slice_hosts: int = 1 << 16
    """The hosts of each of several slices."""
    without_script: set[int] = field(default_factory=set)
    """The hosts that no longer get the script."""
    requests: list[Request] = field(default_factory=list)
    objects: dict[str, str] = field(default_factory=dict)
    closed: threading.Event = field(default_factory=threading.Event)

    @property
    def calls(self) -> list[Request]:
        """The requests that delete the slice."""
        return [request for request in self.requests if request.method == "DELETE"]

    @property
    def deleted(self) -> bool:
        """True if one of them succeeded, or found that the slice is gone."""
        return any(call.status in (200, 404) for call in self.calls)

    def answer(
        self, worker: int, method: str, host: str, url: str, body: bytes, token: str
    ) -> tuple[int, bytes]:
        """Return the status and the body of an answer to a host of the slice."""
        path = urlsplit(url).path
        if host == "metadata.google.internal":
            return self._metadata(path, worker)
        if not host.endswith(".googleapis.com"):
            return _registry(path, self.tree / "root/bin/busybox")
        return self._api(method, host, url, body) if token == f"Bearer {TOKEN}" else (401, b"{}")

    def _api(self, method: str, host: str, url: str, body: bytes) -> tuple[int, bytes]:
        if method == "DELETE":
            # `calls` has this one only when it is answered.
            number = len(self.calls)
            return (self.deletions[number] if number < len(self.deletions) else 200), b"{}"
        if url.endswith(":testIamPermissions"):
            is_known = self.permission in (True, False)
            return (
                200 if is_known else self.permission
            ), body if self.permission is True else b"{}"
        if host.startswith("storage."):
            if self.uploads == 200:
                self.objects[parse_qs(urlsplit(url).query)["name"][0]] = body.decode(
                    errors="replace"
                )
            return self.uploads, b"{}"
        data = base64.b64encode(self.secret).decode()
        return self.secrets, json.dumps({"payload": {"data": data}}, indent=2).encode()

    def _metadata(self, path: str, worker: int) -> tuple[int, bytes]:
        values = {
            "service-accounts/default/token": json.dumps(
                {"access_token": TOKEN, "expires_in": 3599, "token_type": "Bearer"}
            ),
            "attributes/agent-worker-number": str(worker % self.slice_hosts),
            "attributes/tpu-env": f"MEGASCALE_SLICE_ID: '{worker // self.slice_hosts}'\n",
            "attributes/startup-script": "" if worker in self.without_script else self.script,
            "id": str(1000 + worker),
        }
        key = path.removeprefix("/computeMetadata/v1/instance/")
        value = values.get(key)
        return (self.metadata, value.encode()) if value else (404, b"")


def _layer(busybox: bytes) -> bytes:
    """Return the only layer of the image."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, link in [
            ("bin/busybox", ""),
            *((f"bin/{tool}", "busybox") for tool in ("sh", "sleep", "hostname")),
        ]:
            info = tarfile.TarInfo(name)
            info.mode, info.type, info.linkname = (
                0o755,
                tarfile.SYMTYPE if link else tarfile.REGTYPE,
                link,
            )
            info.size = 0 if link else len(busybox)
            tar.addfile(info, None if link else io.BytesIO(busybox))
    return packed.getvalue()


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


_DOCKER: Final = "application/vnd.docker"
MANIFEST: Final = f"{_DOCKER}.distribution.manifest.v2+json"


@cache
def _image(busybox: Path) -> dict[str, bytes]:
    """Return the parts of an image by their digests, and its manifest by its tag."""
    layer = _layer(busybox.read_bytes())
    packed = gzip.compress(layer, 1, mtime=0)
    rootfs = {"type": "layers", "diff_ids": [_digest(layer)]}
    config = json.dumps(
        {"architecture": "amd64", "os": "linux", "config": {}, "rootfs": rootfs}
    ).encode()
    parts = {"container.image.v1+json": config, "image.rootfs.diff.tar.gzip": packed}
    of_config, of_layer = (
        {"mediaType": f"{_DOCKER}.{kind}", "size": len(data), "digest": _digest(data)}
        for kind, data in parts.items()
    )
    fields = {"schemaVersion": 2, "mediaType": MANIFEST, "config": of_config, "layers": [of_layer]}
    manifest = json.dumps(fields).encode()
    return {_digest(data): data for data in (config, packed, manifest)} | {"1.0": manifest}


def _registry(path: str, busybox: Path) -> tuple[int, bytes]:
    """Return what a registry answers: a manifest by its tag, or a blob by its digest."""
    if "/manifests/" not in path and "/blobs/" not in path:
        return 200, b"{}"
    unknown = json.dumps(
        {"errors": [{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}]}
    ).encode()
    part = _image(busybox).get(path.rpartition("/")[2])
    return (200, part) if part else (404, unknown)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(
        self,
        netns: str,
        address: tuple[str, int],
        cloud: Cloud,
        worker: int,
        certificate: Path | None,
    ) -> None:
        super().__init__(address, _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = _socket_in(netns, address)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate / "certificate.pem", certificate / "key.pem")
            # The handshake is in the thread of the request: a client that is killed in it must not stop the others.
            self.socket = context.wrap_socket(
                self.socket, server_side=True, do_handshake_on_connect=False
            )
        self.cloud, self.worker = cloud, worker

    def handle_error(self, *_: object) -> None:
        """Ignore clients that are gone, which are killed on purpose."""


def _socket_in(netns: str, address: tuple[str, int]) -> socket.socket:
    """Open a socket in a network namespace: a thread enters it, and ends."""
    opened: list[socket.socket] = []

    def enter() -> None:
        with open(f"/run/netns/{netns}", "rb") as file:  # noqa: PTH123 - a path of the kernel
            if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        opened.append(socket.create_server(address, backlog=50))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    return opened[0]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _respond(self) -> None:
        cloud, worker, host = self.server.cloud, self.server.worker, self.headers["Host"]
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        cloud.closed.wait(cloud.delay)
        token = self.headers.get("Authorization", "")
        status, answer = cloud.answer(worker, self.command, host, self.path, body, token)
        cloud.requests.append(
            Request(time.monotonic(), self.command, host, self.path, status, worker)
        )
        if status == NO_ANSWER:
            cloud.closed.wait(600)
            self.close_connection = True
            return
        self.send_response(status)
        if "/manifests/" in self.path and status == 200:
            self.send_header("Content-Type", MANIFEST)
            self.send_header("Docker-Content-Digest", _digest(answer))
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer)

    do_GET = do_POST = do_DELETE = do_HEAD = _respond  # noqa: N815 - names of the base class

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def serve(netns: str, cloud: Cloud, worker: int) -> list[_Server]:
    """Start the services of a machine in its network namespace."""
    servers = [
        _Server(netns, METADATA, cloud, worker, None),
        _Server(netns, APIS, cloud, worker, cloud.tree),
    ]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    return servers
