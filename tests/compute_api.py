"""A stand-in of Compute Engine's REST API, which creates and deletes objects, for the real curl.

It behaves as documented: https://cloud.google.com/compute/docs/reference/rest/v1. A request that changes something
returns an operation, whose `wait` returns it when it has ended; an object is there when its operation has ended without
an error; a second object of a name is refused with 409.
"""

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from jobs import program
from loopback import address, serving

HOST: Final = "https://compute.googleapis.com"
TOKEN: Final = "ya29.token-of-the-test"  # noqa: S105 - a dummy


@dataclass
class ComputeApi:
    """The objects by path, and what goes wrong."""

    url: str = ""
    objects: dict[str, Any] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    """The method and the path of each request but those that wait."""
    refused: str = ""
    """The collection in which nothing can be created: the request is refused."""
    failing: str = ""
    """The collection in which nothing can be created: the operation fails."""
    slow: str = ""
    """The collection in which nothing is created in time."""
    lost: str = ""
    """The collection in which an object is created, but the answer is lost."""
    late: str = ""
    """The collection in which the answer is lost, and the object is created only after it was asked to be deleted."""
    page: str = ""
    """The collection in which a proxy answers with a page and status 200, and nothing is created."""
    intercepted: Callable[[str, str], Any] = lambda *_: None
    """Returns the status and the body of an answer that is not the API's, by the method and path of a request."""
    unavailable: int = 0
    """The number of waits that are answered by 503."""
    is_deletion_slow: bool = False
    on_request: Callable[[str, str], None] = lambda *_: None
    """Called with the method and the path of a request before it has an effect."""
    _late: dict[str, Any] = field(default_factory=dict)
    _operations: dict[str, tuple[str, str, Any]] = field(default_factory=dict)

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """Return the status and the body of the answer to a request; the status is 0 if the connection is closed."""
        self.on_request(method, path)
        if (answer := self.intercepted(method, path)) is not None:
            status: int = answer[0]
            return status, answer[1]
        if path.endswith("/wait"):
            self.unavailable -= 1
            return (
                (200, self._wait(path.removesuffix("/wait")))
                if self.unavailable < 0
                else (503, "no healthy server")
            )
        self.requests.append((method, path))
        if method == "GET":
            return (
                (200, self.objects[path])
                if path in self.objects
                else (404, _error("was not found"))
            )
        return self._delete(path) if method == "DELETE" else self._create(path, body)

    def _create(self, path: str, body: Any) -> tuple[int, Any]:
        collection = path.rpartition("/")[2]
        name = f"{path}/{body['name']}"
        if collection == self.refused:
            return 403, _error("Quota exceeded")
        if collection == self.page:
            return 200, "<html>Sign in</html>"
        if name in self.objects:
            return 409, _error("already exists")
        if collection in (self.lost, self.late):
            (self.objects if collection == self.lost else self._late)[name] = body
            return 0, None
        return 200, self._operation("POST", name, body)

    def _delete(self, path: str) -> tuple[int, Any]:
        if path not in self.objects:
            self.objects |= self._late
            self._late.clear()
            return 404, _error("not found")
        # The path of a policy or a template is part of the group that refers to it.
        groups = [body for name, body in self.objects.items() if "/instanceGroupManagers/" in name]
        if "/regions/" in path and path.partition("/v1/")[2] in json.dumps(groups):
            return 400, _error("resourceInUseByAnotherResource")
        return 200, self._operation("DELETE", path, None)

    def _operation(self, method: str, path: str, body: Any) -> dict[str, Any]:
        name = f"/compute/v1/operations/operation-{len(self._operations)}"
        self._operations[name] = method, path, body
        return {
            "kind": "compute#operation",
            "name": name.rpartition("/")[2],
            "status": "RUNNING",
            **self._link(name),
        }

    def _link(self, name: str) -> dict[str, str]:
        return {"selfLink": f"{self.url}{name}"}

    def _wait(self, name: str) -> dict[str, Any]:
        method, path, body = self._operations[name]
        collection = path.split("/")[-2]
        operation = {"kind": "compute#operation", "status": "DONE", **self._link(name)}
        if method == "DELETE" and self.is_deletion_slow:
            return operation | {"status": "RUNNING"}
        if method == "DELETE":
            self.objects.pop(path, None)
        elif collection == self.failing:
            return operation | {
                "error": {
                    "errors": [{"code": "ZONE_RESOURCE_POOL_EXHAUSTED", "message": "no TPUs"}]
                }
            }
        elif collection == self.slow:
            return operation | {"status": "RUNNING"}
        else:
            self.objects[path] = body
        return operation


def _error(message: str) -> dict[str, Any]:
    return {"error": {"code": 400, "message": message, "errors": [{"message": message}]}}


@contextlib.contextmanager
def serving_compute(programs: Path) -> Iterator[ComputeApi]:
    """Serve the API until the block ends, with a curl in a folder that reaches it instead of Google's.

    The curl refuses a token among its arguments, and gcloud prints the token.
    """
    api = ComputeApi()

    class Handler(BaseHTTPRequestHandler):
        def _respond(self) -> None:
            text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            assert self.headers["Authorization"] == f"Bearer {TOKEN}"
            status, data = api.answer(self.command, self.path, json.loads(text) if text else None)
            if not status:
                return
            content = (data if isinstance(data, str) else json.dumps(data, indent=2)).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_DELETE = _respond  # noqa: N815 - the names of the base class

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as server:
        api.url = address(server)
        rest = f'exec /usr/bin/curl --noproxy "*" "${{@//{HOST.replace("/", chr(92) + "/")}/{api.url}}}"'
        program(programs, "curl", f'[[ "$*" != *{TOKEN}* ]] || exit 77\n{rest}')
        program(programs, "gcloud", f'[ "$*" = "auth print-access-token" ] && echo {TOKEN}')
        yield api
