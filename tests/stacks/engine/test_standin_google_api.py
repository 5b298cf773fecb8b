"""The stand-in of Google's REST APIs, by plain HTTP requests."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from standin import errors, google_api
from standin.cloud import Cloud
from standin.google_api import GoogleApi

Ask = Callable[..., dict[str, Any]]
AGENT = "service-123456789012@cloud-tpu.iam.gserviceaccount.com"


@pytest.fixture
def api(cloud: Cloud) -> Iterator[GoogleApi]:
    """Serve the cloud's REST API."""
    with google_api.serving(cloud) as served:
        yield served


@pytest.fixture
def send_request(api: GoogleApi) -> Ask:
    """Return a function that sends a request with a token; an error raises `HTTPError`."""

    def send(method: str, path: str, body: object = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(  # noqa: S310 - loopback
            api.url + path, data, {"Authorization": "Bearer x"}, method=method
        )
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - loopback
            content: dict[str, Any] = json.loads(answer.read() or b"{}")
            return content

    return send


def error_of(send_request: Ask, *request: object) -> tuple[int, str]:
    """Return status and message of a request that fails."""
    with pytest.raises(urllib.error.HTTPError) as excinfo:
        send_request(*request)
    with excinfo.value as answer:
        return answer.code, json.loads(answer.read())["error"]["message"]


def test_bucket_names_are_global(send_request: Ask, cloud: Cloud) -> None:
    """A name of another owner and a name of one's own have different errors."""
    cloud.taken.add("gold")
    send_request("POST", "/storage/v1/b?project=acme-dev", {"name": "own", "location": "US"})

    foreign = error_of(
        send_request, "POST", "/storage/v1/b?project=acme-dev", {"name": "gold", "location": "US"}
    )
    own = error_of(
        send_request, "POST", "/storage/v1/b?project=acme-dev", {"name": "own", "location": "US"}
    )

    assert foreign == (409, errors.bucket_taken().message)
    assert own == (409, errors.bucket_owned().message)


def test_deleted_role_keeps_its_id(send_request: Ask, cloud: Cloud) -> None:
    """A deleted role can be read and undeleted; once that is no longer possible, its id is still refused."""
    roles = "/v1/projects/acme-dev/roles"
    body = {"roleId": "a.b", "role": {"title": "t", "includedPermissions": ["x.y.z"]}}
    assert send_request("POST", roles, body)["name"] == "projects/acme-dev/roles/a.b"
    assert error_of(send_request, "POST", roles, body)[0] == 409

    assert send_request("DELETE", f"{roles}/a.b")["deleted"]
    assert send_request("GET", f"{roles}/a.b")["deleted"]
    assert error_of(send_request, "POST", roles, body) == (
        400,
        errors.role_marked_for_deletion("a.b").message,
    )
    assert "deleted" not in send_request("POST", f"{roles}/a.b:undelete")
    assert send_request("PATCH", f"{roles}/a.b", {"title": "u"})["includedPermissions"] == ["x.y.z"]

    cloud.roles["projects/acme-dev/roles/a.b"].state = "reserved"
    assert error_of(send_request, "GET", f"{roles}/a.b")[0] == 404
    assert error_of(send_request, "POST", roles, body)[0] == 400


def test_policy_with_an_unknown_account_is_rejected(send_request: Ask, cloud: Cloud) -> None:
    """A member that IAM does not see yet fails the whole policy; later, the whole policy is accepted."""
    cloud.invisible_for = 1
    cloud.generate_identity("acme-dev", "tpu.googleapis.com")
    members = ["group:team@example.com", f"serviceAccount:{AGENT}"]
    policy = {"policy": {"bindings": [{"role": "roles/viewer", "members": members}]}}

    refused = error_of(send_request, "POST", "/v1/projects/acme-dev:setIamPolicy", policy)
    assert refused == (400, f"Service account {AGENT} does not exist.")
    assert send_request("POST", "/v1/projects/acme-dev:getIamPolicy", {})["bindings"] == []

    answer = send_request("POST", "/v1/projects/acme-dev:setIamPolicy", policy)
    assert answer["bindings"] == policy["policy"]["bindings"]


def test_outdated_policy_is_rejected(send_request: Ask, cloud: Cloud) -> None:
    """A policy with an outdated etag is rejected, so that no concurrent grant is lost."""
    send_request("POST", "/storage/v1/b?project=acme-dev", {"name": "acme", "location": "US"})
    read = send_request("GET", "/storage/v1/b/acme/iam?optionsRequestedPolicyVersion=3")
    cloud.grant("b/acme", "roles/storage.objectViewer", "user:ada@example.com")

    assert error_of(send_request, "PUT", "/storage/v1/b/acme/iam", read)[0] == 409


def test_request_without_a_token_or_a_route_is_rejected(api: GoogleApi, send_request: Ask) -> None:
    """A request without a token is 401; a request without a route is 501 and named."""
    with pytest.raises(urllib.error.HTTPError) as excinfo:
        urllib.request.urlopen(api.url + "/v1/projects/acme-dev", timeout=10)  # noqa: S310 - loopback
    with excinfo.value as answer:
        assert answer.code == 401
    status, message = error_of(send_request, "GET", "/compute/v1/projects/acme-dev/regions")
    assert status == 501
    assert "GET /compute/v1/projects/acme-dev/regions" in message
    assert api.requests[-1] == "GET /compute/v1/projects/acme-dev/regions"
