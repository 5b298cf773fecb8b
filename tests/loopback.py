"""HTTP servers on the loopback interface, for stand-ins of services."""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from email.message import Message
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from typing import Any, TypeVar

_Server = TypeVar("_Server", bound=HTTPServer)

Handle = Callable[[str, str, Message, Any], tuple[int, Any]]
"""Returns a response's status and JSON body for a request: method, path with query, headers and parsed body."""


@contextlib.contextmanager
def serving(server: _Server) -> Iterator[_Server]:
    """Run a server in its own thread until the block ends."""
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def address(server: HTTPServer) -> str:
    """Return the server's URL, without a path."""
    return f"http://127.0.0.1:{server.server_port}"


@contextlib.contextmanager
def serving_json(handle: Handle) -> Iterator[str]:
    """Serve JSON on the loopback until the block ends; yield the URL."""

    class Handler(BaseHTTPRequestHandler):
        def _respond(self) -> None:
            request = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, body = handle(
                self.command, self.path, self.headers, json.loads(request) if request else None
            )
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json; charset=utf-8")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _respond  # noqa: N815 - the names that http.server calls

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing."""

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as server:
        yield address(server)
