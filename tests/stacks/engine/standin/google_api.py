"""A loopback stand-in of Google's REST APIs over the in-memory cloud, for the real gcp plugin and for our own look-ups.

Answers the calls that a stack makes, and every other with 501, so that a missing stand-in is noticed.
"""

import contextlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import loopback
from standin import google_routes
from standin.cloud import Cloud
from standin.errors import ApiError


@dataclass(frozen=True, slots=True)
class GoogleApi:
    """A running stand-in."""

    url: str
    """`http://127.0.0.1:PORT`."""
    requests: list[str]
    """Every request, as `METHOD PATH`."""

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables that direct the gcp plugin to this server.

        Source: https://registry.terraform.io/providers/hashicorp/google/latest/docs/guides/provider_reference
        """
        return {
            "GOOGLE_STORAGE_CUSTOM_ENDPOINT": f"{self.url}/storage/v1/",
            "GOOGLE_SERVICE_USAGE_CUSTOM_ENDPOINT": f"{self.url}/v1beta1/",
            "GOOGLE_RESOURCE_MANAGER_CUSTOM_ENDPOINT": f"{self.url}/v1/",
            "GOOGLE_CLOUD_BILLING_CUSTOM_ENDPOINT": f"{self.url}/v1/",
            "GOOGLE_IAM_CUSTOM_ENDPOINT": f"{self.url}/v1/",
            # The gcp plugin 10.2.0 reads this one for service accounts, and not the one above.
            "GOOGLE_IAM_BETA_CUSTOM_ENDPOINT": f"{self.url}/v1/",
            "GOOGLE_ML_ENGINE_CUSTOM_ENDPOINT": f"{self.url}/v1/",
            "GOOGLE_SECRET_MANAGER_CUSTOM_ENDPOINT": f"{self.url}/v1/",
            "GOOGLE_OAUTH_ACCESS_TOKEN": "for-tests-only",
            # Otherwise the plugin requests the list of regions from the Compute API.
            "PULUMI_GCP_SKIP_REGION_VALIDATION": "true",
        }


@contextlib.contextmanager
def serving(cloud: Cloud) -> Iterator[GoogleApi]:
    """Serve a cloud over HTTP until the block ends."""
    requests: list[str] = []

    class Handler(_Handler):
        pass

    Handler.cloud, Handler.requests = cloud, requests
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    with loopback.serving(server):
        yield GoogleApi(loopback.address(server), requests)


class _Handler(BaseHTTPRequestHandler):
    cloud: Cloud
    requests: list[str]
    protocol_version = "HTTP/1.1"

    def _handle(self) -> None:
        address = urlsplit(self.path)
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        query = {name: values[-1] for name, values in parse_qs(address.query).items()}
        self.requests.append(f"{self.command} {unquote(address.path)}")
        try:
            self._check_token()
            call, values = self._route(unquote(address.path))
            self._answer(200, call(google_routes.Request(self.cloud, values, query, body)))
        except ApiError as error:
            self._answer(error.status, _error_body(error))

    def _check_token(self) -> None:
        if not self.headers.get("Authorization", "").startswith("Bearer "):
            raise ApiError(
                401, "authError", "Request is missing required authentication credential."
            )

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _handle

    def _route(self, path: str) -> tuple[google_routes.Answer, dict[str, str]]:
        for method, pattern, call in google_routes.ROUTES:
            match = re.fullmatch(pattern, path) if method == self.command else None
            if match:
                return call, match.groupdict()
        raise ApiError(
            501,
            "notImplemented",
            f"no stand-in for {self.command} {path}: add it to standin/google_routes.py",
        )

    def _answer(self, status: int, answer: dict[str, Any] | None) -> None:
        if answer is None:
            self.send_response(204)
            self.end_headers()
            return
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=UTF-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Log nothing: the tests' output stays readable."""


def _error_body(error: ApiError) -> dict[str, Any]:
    entry = {"domain": "global", "reason": error.reason, "message": error.message}
    return {"error": {"code": error.status, "message": error.message, "errors": [entry]}}
