"""HTTP servers on the loopback, for stand-ins of services: any, and one that answers JSON by a function."""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from email.message import Message
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from typing import Any, TypeVar

_Server = TypeVar("_Server", bound=HTTPServer)

Answer = Callable[[str, str, Message, Any], tuple[int, Any]]
"""From method, path with query, headers and the body as data: the status and the body of the answer."""


@contextlib.contextmanager
def serving(server: _Server) -> Iterator[_Server]:
    """Let a server serve in a thread of its own for as long as the block lasts."""
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def address(server: HTTPServer) -> str:
    """Where it serves, without a path."""
    return f"http://127.0.0.1:{server.server_port}"


@contextlib.contextmanager
def answering(answer: Answer) -> Iterator[str]:
    """Serve for as long as the block lasts, at this address."""

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, body = answer(self.command, self.path, self.headers, json.loads(sent) if sent else None)
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json; charset=utf-8")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _answer  # noqa: N815 - the library's names

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as server:
        yield address(server)
