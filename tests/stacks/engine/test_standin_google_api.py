"""The stand-in of Google's REST APIs, by plain HTTP."""

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
    """The cloud over HTTP."""
    with google_api.serving(cloud) as served:
        yield served


@pytest.fixture
def ask(api: GoogleApi) -> Ask:
    """Sends a request with a token and returns the answer; a refusal raises `HTTPError`."""

    def send(method: str, path: str, body: object = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(api.url + path, data, {"Authorization": "Bearer x"}, method=method)  # noqa: S310 - loopback
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - loopback
            found: dict[str, Any] = json.loads(answer.read() or b"{}")
            return found

    return send


def refusal(ask: Ask, *request: object) -> tuple[int, str]:
    """Return status and message of a request that is refused."""
    with pytest.raises(urllib.error.HTTPError) as caught:
        ask(*request)
    with caught.value as answer:
        return answer.code, json.loads(answer.read())["error"]["message"]


def test_bucket_lives_through_its_life(ask: Ask, cloud: Cloud) -> None:
    """A bucket is made in capitals, changed by merge patch, emptied and deleted."""
    asked = {"name": "acme", "location": "us-central1", "labels": {"a": "1", "b": "2"}}
    made = ask("POST", "/storage/v1/b?project=acme-dev", asked)
    assert made["location"] == "US-CENTRAL1"
    assert made["projectNumber"] == "123456789012"

    patched = ask("PATCH", "/storage/v1/b/acme", {"labels": {"a": None, "c": "3"}, "rpo": "DEFAULT"})
    assert patched["labels"] == {"b": "2", "c": "3"}

    cloud.bucket("acme").objects.add("data/train 1")
    assert refusal(ask, "DELETE", "/storage/v1/b/acme") == (409, errors.bucket_not_empty().message)
    assert ask("GET", "/storage/v1/b/acme/o?versions=true")["items"][0]["name"] == "data/train 1"
    ask("DELETE", "/storage/v1/b/acme/o/data%2Ftrain%201")
    ask("DELETE", "/storage/v1/b/acme")
    assert refusal(ask, "GET", "/storage/v1/b/acme")[0] == 404


def test_bucket_names_belong_to_the_world(ask: Ask, cloud: Cloud) -> None:
    """A name that somebody else has and a name that one has oneself are refused differently."""
    cloud.taken.add("gold")
    ask("POST", "/storage/v1/b?project=acme-dev", {"name": "own", "location": "US"})

    taken = refusal(ask, "POST", "/storage/v1/b?project=acme-dev", {"name": "gold", "location": "US"})
    own = refusal(ask, "POST", "/storage/v1/b?project=acme-dev", {"name": "own", "location": "US"})

    assert taken == (409, errors.bucket_taken().message)
    assert own == (409, errors.bucket_owned().message)


def test_identity_is_generated_in_v1beta1_only(ask: Ask, cloud: Cloud) -> None:
    """`generateServiceIdentity` answers with a finished operation, by project id or number; v1 does not know it."""
    path = "projects/{}/services/tpu.googleapis.com:generateServiceIdentity"

    by_id = ask("POST", "/v1beta1/" + path.format("acme-dev"), {})
    by_number = ask("POST", "/v1beta1/" + path.format("123456789012"), {})

    assert by_id["done"]
    assert by_id["response"]["email"] == by_number["response"]["email"] == AGENT
    assert refusal(ask, "POST", "/v1/" + path.format("acme-dev"), {})[0] == 501
    cloud.agents_answer_without_email = True
    assert ask("POST", "/v1beta1/" + path.format("acme-dev"), {})["response"] == {}


def test_services_are_listed_once_enabled(ask: Ask) -> None:
    """Enabling one and several APIs makes them appear in the list of the enabled."""
    ask("POST", "/v1/projects/acme-dev/services/tpu.googleapis.com:enable", {})
    ask("POST", "/v1/projects/acme-dev/services:batchEnable", {"serviceIds": ["iam.googleapis.com"]})
    ask("POST", "/v1/projects/acme-dev/services/tpu.googleapis.com:disable", {})

    listed = ask("GET", "/v1/projects/acme-dev/services?filter=state:ENABLED")["services"]

    assert [entry["config"]["name"] for entry in listed] == ["iam.googleapis.com"]
    assert ask("GET", "/v1/projects/acme-dev/services/tpu.googleapis.com")["state"] == "DISABLED"


def test_policy_with_an_unknown_account_is_refused_whole(ask: Ask, cloud: Cloud) -> None:
    """One member that IAM does not see yet spoils the policy; seen, all of it is taken."""
    cloud.invisible_for = 1
    cloud.generate_identity("acme-dev", "tpu.googleapis.com")
    members = ["group:team@example.com", f"serviceAccount:{AGENT}"]
    policy = {"policy": {"bindings": [{"role": "roles/viewer", "members": members}]}}

    refused = refusal(ask, "POST", "/v1/projects/acme-dev:setIamPolicy", policy)
    assert refused == (400, f"Service account {AGENT} does not exist.")
    assert ask("POST", "/v1/projects/acme-dev:getIamPolicy", {})["bindings"] == []

    taken = ask("POST", "/v1/projects/acme-dev:setIamPolicy", policy)
    assert taken["bindings"] == policy["policy"]["bindings"]


def test_policy_read_before_another_change_is_refused(ask: Ask, cloud: Cloud) -> None:
    """A policy whose etag is old is refused, so that nobody's grant is lost."""
    ask("POST", "/storage/v1/b?project=acme-dev", {"name": "acme", "location": "US"})
    read = ask("GET", "/storage/v1/b/acme/iam?optionsRequestedPolicyVersion=3")
    cloud.grant("b/acme", "roles/storage.objectViewer", "user:ada@example.com")

    assert refusal(ask, "PUT", "/storage/v1/b/acme/iam", read)[0] == 409


def test_accounts_have_policies(ask: Ask, cloud: Cloud) -> None:
    """A service account is made, found, may be acted as, and goes."""
    path = "/v1/projects/acme-dev/serviceAccounts"
    made = ask("POST", path, {"accountId": "tpu-mnist-dev", "serviceAccount": {"displayName": "TPU jobs"}})
    address = f"{path}/{made['email']}"
    member = "serviceAccount:acme-dev.svc.id.goog[default/tpu]"

    bindings = [{"role": "roles/iam.workloadIdentityUser", "members": [member]}]
    ask("POST", address + ":setIamPolicy", {"policy": {"bindings": bindings}})

    assert ask("GET", address)["displayName"] == "TPU jobs"
    assert ask("POST", address + ":getIamPolicy", {})["bindings"] == bindings
    ask("DELETE", address)
    assert refusal(ask, "GET", address)[0] == 404
    assert not cloud.accounts


def test_project_and_billing_are_told(ask: Ask) -> None:
    """What the provider's look-up of a project asks for is answered."""
    assert ask("GET", "/v1/projects/acme-dev")["projectNumber"] == "123456789012"
    assert ask("GET", "/v1/projects/acme-dev/billingInfo")["billingEnabled"] is False
    assert refusal(ask, "GET", "/v1/projects/nobody")[0] == 404


def test_ai_platform_is_shut_down_unless_a_test_says_otherwise(ask: Ask, cloud: Cloud) -> None:
    """`getConfig` answers 404, or what the test put there."""
    assert refusal(ask, "GET", "/v1/projects/acme-dev:getConfig")[0] == 404

    cloud.ml_config = {"serviceAccountProject": "987", "config": {"tpuServiceAccount": AGENT}}

    assert ask("GET", "/v1/projects/acme-dev:getConfig") == cloud.ml_config


def test_faults_come_as_often_as_asked_for(ask: Ask, cloud: Cloud) -> None:
    """An injected fault is met that many times, by that operation on that target, and is written down as refused."""
    cloud.fail("bucket.create", errors.unavailable(), times=2, target="acme")
    body = {"name": "acme", "location": "US"}

    statuses = [refusal(ask, "POST", "/storage/v1/b?project=acme-dev", body)[0] for _ in range(2)]
    ask("POST", "/storage/v1/b?project=acme-dev", {"name": "other", "location": "US"})
    ask("POST", "/storage/v1/b?project=acme-dev", body)

    assert statuses == [503, 503]
    assert [call.error is None for call in cloud.calls] == [False, False, True, True]
    assert cloud.operations == ["bucket.create", "bucket.create"]


def test_request_without_a_token_or_a_route_is_refused(api: GoogleApi, ask: Ask) -> None:
    """No token is 401; a request that nobody thought of is 501 and named."""
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(api.url + "/v1/projects/acme-dev", timeout=10)  # noqa: S310 - loopback
    with caught.value as answer:
        assert answer.code == 401
    status, message = refusal(ask, "GET", "/compute/v1/projects/acme-dev/regions")
    assert status == 501
    assert "GET /compute/v1/projects/acme-dev/regions" in message
    assert api.requests[-1] == "GET /compute/v1/projects/acme-dev/regions"
