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


def test_bucket_can_be_created_patched_and_deleted(send_request: Ask, cloud: Cloud) -> None:
    """A bucket's location is in upper case; the bucket can be patched, emptied and deleted."""
    body = {"name": "acme", "location": "us-central1", "labels": {"a": "1", "b": "2"}}
    created = send_request("POST", "/storage/v1/b?project=acme-dev", body)
    assert created["location"] == "US-CENTRAL1"
    assert created["projectNumber"] == "123456789012"

    patched = send_request(
        "PATCH", "/storage/v1/b/acme", {"labels": {"a": None, "c": "3"}, "rpo": "DEFAULT"}
    )
    assert patched["labels"] == {"b": "2", "c": "3"}

    cloud.bucket("acme").objects.add("data/train 1")
    assert error_of(send_request, "DELETE", "/storage/v1/b/acme") == (
        409,
        errors.bucket_not_empty().message,
    )
    assert (
        send_request("GET", "/storage/v1/b/acme/o?versions=true")["items"][0]["name"]
        == "data/train 1"
    )
    send_request("DELETE", "/storage/v1/b/acme/o/data%2Ftrain%201")
    send_request("DELETE", "/storage/v1/b/acme")
    assert error_of(send_request, "GET", "/storage/v1/b/acme")[0] == 404


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


def test_policy_of_a_secret_needs_the_secret(send_request: Ask, cloud: Cloud) -> None:
    """The policy of a secret can be read and set; of a missing one, the error has the number of the project."""
    path = "/v1/projects/acme-dev/secrets/wandb"
    assert error_of(send_request, "GET", f"{path}:getIamPolicy") == (
        404,
        "Secret [projects/123456789012/secrets/wandb] not found.",
    )
    cloud.secrets.add("projects/acme-dev/secrets/wandb")
    binding = {"role": "roles/secretmanager.secretAccessor", "members": ["group:team@example.com"]}

    send_request("POST", f"{path}:setIamPolicy", {"policy": {"bindings": [binding]}})

    assert send_request("GET", f"{path}:getIamPolicy")["bindings"] == [binding]


def test_identity_is_generated_in_v1beta1_only(send_request: Ask, cloud: Cloud) -> None:
    """`generateServiceIdentity` returns a finished operation, by project id or number; v1 does not have it."""
    path = "projects/{}/services/tpu.googleapis.com:generateServiceIdentity"

    by_id = send_request("POST", "/v1beta1/" + path.format("acme-dev"), {})
    by_number = send_request("POST", "/v1beta1/" + path.format("123456789012"), {})

    assert by_id["done"]
    assert by_id["response"]["email"] == by_number["response"]["email"] == AGENT
    assert error_of(send_request, "POST", "/v1/" + path.format("acme-dev"), {})[0] == 501
    cloud.agents_answer_without_email = True
    assert send_request("POST", "/v1beta1/" + path.format("acme-dev"), {})["response"] == {}


def test_enabled_services_are_listed(send_request: Ask) -> None:
    """Enabled APIs are in the list of enabled services."""
    send_request("POST", "/v1/projects/acme-dev/services/tpu.googleapis.com:enable", {})
    send_request(
        "POST", "/v1/projects/acme-dev/services:batchEnable", {"serviceIds": ["iam.googleapis.com"]}
    )
    send_request("POST", "/v1/projects/acme-dev/services/tpu.googleapis.com:disable", {})

    listed = send_request("GET", "/v1/projects/acme-dev/services?filter=state:ENABLED")["services"]

    assert [entry["config"]["name"] for entry in listed] == ["iam.googleapis.com"]
    assert (
        send_request("GET", "/v1/projects/acme-dev/services/tpu.googleapis.com")["state"]
        == "DISABLED"
    )


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


def test_accounts_have_policies(send_request: Ask, cloud: Cloud) -> None:
    """A service account can be created, read, impersonated and deleted."""
    path = "/v1/projects/acme-dev/serviceAccounts"
    created = send_request(
        "POST", path, {"accountId": "tpu-mnist-dev", "serviceAccount": {"displayName": "TPU jobs"}}
    )
    address = f"{path}/{created['email']}"
    member = "serviceAccount:acme-dev.svc.id.goog[default/tpu]"

    bindings = [{"role": "roles/iam.workloadIdentityUser", "members": [member]}]
    send_request("POST", address + ":setIamPolicy", {"policy": {"bindings": bindings}})

    assert send_request("GET", address)["displayName"] == "TPU jobs"
    assert send_request("POST", address + ":getIamPolicy", {})["bindings"] == bindings
    send_request("DELETE", address)
    assert error_of(send_request, "GET", address)[0] == 404
    assert not cloud.accounts


def test_project_and_billing_have_answers(send_request: Ask) -> None:
    """The requests of the provider's project look-up have answers."""
    assert send_request("GET", "/v1/projects/acme-dev")["projectNumber"] == "123456789012"
    assert send_request("GET", "/v1/projects/acme-dev/billingInfo")["billingEnabled"] is False
    assert error_of(send_request, "GET", "/v1/projects/nobody")[0] == 404


def test_ai_platform_is_shut_down_by_default(send_request: Ask, cloud: Cloud) -> None:
    """`getConfig` returns 404, or the answer that a test sets."""
    assert error_of(send_request, "GET", "/v1/projects/acme-dev:getConfig")[0] == 404

    cloud.ml_config = {"serviceAccountProject": "987", "config": {"tpuServiceAccount": AGENT}}

    assert send_request("GET", "/v1/projects/acme-dev:getConfig") == cloud.ml_config


def test_injected_fault_occurs_the_given_number_of_times(send_request: Ask, cloud: Cloud) -> None:
    """An injected fault occurs that many times, for that operation and target, and is recorded."""
    cloud.fail("bucket.create", errors.unavailable(), times=2, target="acme")
    body = {"name": "acme", "location": "US"}

    statuses = [
        error_of(send_request, "POST", "/storage/v1/b?project=acme-dev", body)[0] for _ in range(2)
    ]
    send_request("POST", "/storage/v1/b?project=acme-dev", {"name": "other", "location": "US"})
    send_request("POST", "/storage/v1/b?project=acme-dev", body)

    assert statuses == [503, 503]
    assert [call.error is None for call in cloud.calls] == [False, False, True, True]
    assert cloud.operations == ["bucket.create", "bucket.create"]


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
