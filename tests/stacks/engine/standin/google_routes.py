"""Requests that the stand-in of Google's APIs answers.

The routes are those that a stack calls: storage v1, serviceusage v1 and v1beta1, cloudresourcemanager v1,
cloudbilling v1, iam v1, secretmanager v1 and ml v1. Message formats: the discovery documents, https://developers.google.com/discovery
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from standin.cloud import Cloud
from standin.errors import ApiError


@dataclass(frozen=True, slots=True)
class Request:
    """One parsed request."""

    cloud: Cloud
    path: dict[str, str]
    """The values in the path, by their name in the pattern."""
    query: dict[str, str]
    body: dict[str, Any]


def _create_bucket(request: Request) -> dict[str, Any]:
    body, project = request.body, request.query["project"]
    body.setdefault("storageClass", "STANDARD")
    body.setdefault("softDeletePolicy", {"retentionDurationSeconds": "604800"})
    body["location"] = body.get("location", "US").upper()
    request.cloud.create_bucket(project, body["name"], body)
    return _bucket(request.cloud, body["name"])


def _bucket(cloud: Cloud, name: str) -> dict[str, Any]:
    bucket = cloud.bucket(name)
    return {
        "kind": "storage#bucket",
        "id": name,
        "selfLink": f"https://www.googleapis.com/storage/v1/b/{name}",
        "projectNumber": str(cloud.number(bucket.project)),
        "locationType": "region" if "-" in bucket.body["location"] else "multi-region",
        "timeCreated": "2026-01-01T00:00:00.000Z",
        "updated": "2026-01-01T00:00:00.000Z",
        "metageneration": "1",
        "etag": "CAE=",
        **bucket.body,
    }


def _get_bucket(request: Request) -> dict[str, Any]:
    return _bucket(request.cloud, request.path["bucket"])


def _patch_bucket(request: Request) -> dict[str, Any]:
    body = _merged(request.cloud.bucket(request.path["bucket"]).body, request.body)
    request.cloud.update_bucket(request.path["bucket"], body)
    return _get_bucket(request)


def _merged(old: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """Apply a merge patch, in which null removes a field: https://www.rfc-editor.org/rfc/rfc7396."""
    merged = {name: value for name, value in old.items() if patch.get(name, value) is not None}
    for name, value in patch.items():
        if isinstance(value, dict):
            merged[name] = _merged(old.get(name) or {}, value)
        elif value is not None:
            merged[name] = value
    return merged


def _delete_bucket(request: Request) -> None:
    request.cloud.delete_bucket(request.path["bucket"])


def _list_objects(request: Request) -> dict[str, Any]:
    bucket = request.cloud.bucket(request.path["bucket"])
    items = [
        {"kind": "storage#object", "name": name, "generation": "1"}
        for name in sorted(bucket.objects)
    ]
    return {"kind": "storage#objects", **({"items": items} if items else {})}


def _delete_object(request: Request) -> None:
    request.cloud.bucket(request.path["bucket"]).objects.discard(request.path["object"])


def _get_project(request: Request) -> dict[str, Any]:
    project = request.cloud.project_id(request.path["project"])
    number = str(request.cloud.number(project))
    return {
        "projectId": project,
        "name": project,
        "projectNumber": number,
        "lifecycleState": "ACTIVE",
    }


def _get_billing(request: Request) -> dict[str, Any]:
    project = request.cloud.project_id(request.path["project"])
    name = f"projects/{project}/billingInfo"
    return {"name": name, "projectId": project, "billingAccountName": "", "billingEnabled": False}


def _get_ml_config(request: Request) -> dict[str, Any]:
    if request.cloud.ml_config is None:
        raise ApiError(404, "notFound", "The requested URL was not found on this server.")
    return request.cloud.ml_config


def _service(cloud: Cloud, project: str, name: str) -> dict[str, Any]:
    project, number = cloud.project_id(project), cloud.number(project)
    state = "ENABLED" if name in cloud.services[project] else "DISABLED"
    path = f"projects/{number}/services/{name}"
    return {"name": path, "config": {"name": name}, "state": state, "parent": f"projects/{number}"}


def _list_services(request: Request) -> dict[str, Any]:
    cloud, project = request.cloud, request.path["project"]
    names = sorted(cloud.services[cloud.project_id(project)])
    return {"services": [_service(cloud, project, name) for name in names]}


def _get_service(request: Request) -> dict[str, Any]:
    return _service(request.cloud, request.path["project"], request.path["service"])


def _enable(request: Request) -> dict[str, Any]:
    request.cloud.enable(request.path["project"], request.path["service"])
    return _done({"service": _get_service(request)})


def _batch_enable(request: Request) -> dict[str, Any]:
    for service in request.body["serviceIds"]:
        request.cloud.enable(request.path["project"], service)
    return _done({})


def _disable(request: Request) -> dict[str, Any]:
    request.cloud.disable(request.path["project"], request.path["service"])
    return _done({"service": _get_service(request)})


def _generate_identity(request: Request) -> dict[str, Any]:
    email = request.cloud.generate_identity(request.path["project"], request.path["service"])
    return _done({"email": email, "uniqueId": "1" * 21} if email else {})


def _done(response: dict[str, Any]) -> dict[str, Any]:
    """Return a long-running operation that is done: https://google.aip.dev/151."""
    return {"name": "operations/done.DONE_OPERATION", "done": True, "response": response}


def _create_account(request: Request) -> dict[str, Any]:
    body = request.body
    email = request.cloud.create_account(
        request.path["project"], body["accountId"], body.get("serviceAccount", {})
    )
    return _account(request.cloud, email)


def _account(cloud: Cloud, email: str) -> dict[str, Any]:
    account = cloud.account(email)
    name = f"projects/{account['project']}/serviceAccounts/{email}"
    described = {key: value for key, value in account.items() if key != "project"}
    return {
        "name": name,
        "projectId": account["project"],
        "uniqueId": "1" * 21,
        "email": email,
        **described,
    }


def _get_account(request: Request) -> dict[str, Any]:
    return _account(request.cloud, request.path["email"])


def _patch_account(request: Request) -> dict[str, Any]:
    request.cloud.update_account(request.path["email"], request.body.get("serviceAccount", {}))
    return _get_account(request)


def _delete_account(request: Request) -> dict[str, Any]:
    request.cloud.delete_account(request.path["email"])
    return {}


def _role_name(request: Request) -> str:
    return (
        f"projects/{request.cloud.project_id(request.path['project'])}/roles/{request.path['role']}"
    )


def _role(request: Request, name: str) -> dict[str, Any]:
    """Return a custom role; a deleted one is still returned: https://cloud.google.com/iam/reference/rest/v1/projects.roles/delete."""
    role = request.cloud.role(name)
    deleted = {"deleted": True} if role.state == "deleted" else {}
    return {**role.body, **deleted, "name": name, "etag": "CAE="}


def _create_role(request: Request) -> dict[str, Any]:
    body = request.body
    return _role(
        request,
        request.cloud.create_role(request.path["project"], body["roleId"], body.get("role", {})),
    )


def _get_role(request: Request) -> dict[str, Any]:
    return _role(request, _role_name(request))


def _patch_role(request: Request) -> dict[str, Any]:
    name = _role_name(request)
    request.cloud.update_role(name, _merged(request.cloud.role(name).body, request.body))
    return _role(request, name)


def _delete_role(request: Request) -> dict[str, Any]:
    request.cloud.delete_role(_role_name(request))
    return _get_role(request)


def _undelete_role(request: Request) -> dict[str, Any]:
    request.cloud.undelete_role(_role_name(request))
    return _get_role(request)


def _resource(request: Request) -> str:
    """Return the cloud's name for the resource that a policy belongs to."""
    if "secret" in request.path:
        name = f"projects/{request.cloud.project_id(request.path['project'])}/secrets/{request.path['secret']}"
        request.cloud.check_secret(name)
        return name
    if "bucket" in request.path:
        request.cloud.bucket(request.path["bucket"])
        return f"b/{request.path['bucket']}"
    if "email" in request.path:
        request.cloud.account(request.path["email"])
        return f"serviceAccounts/{request.path['email']}"
    return f"projects/{request.cloud.project_id(request.path['project'])}"


def _get_policy(request: Request) -> dict[str, Any]:
    resource = _resource(request)
    grants: dict[tuple[str, str], list[str]] = {}
    for role, member, condition in sorted(request.cloud.grants.get(resource, set())):
        grants.setdefault((role, condition), []).append(member)
    bindings = [
        {
            "role": role,
            "members": members,
            **({"condition": {"expression": condition}} if condition else {}),
        }
        for (role, condition), members in grants.items()
    ]
    return {"version": 1, "etag": request.cloud.etag(resource), "bindings": bindings}


def _set_policy(request: Request) -> dict[str, Any]:
    resource, policy = _resource(request), request.body.get("policy", request.body)
    if policy.get("etag", request.cloud.etag(resource)) != request.cloud.etag(resource):
        raise ApiError(
            409,
            "aborted",
            "There were concurrent policy changes. Please retry the whole read-modify-write.",
        )
    requested = {
        (entry["role"], member, entry.get("condition", {}).get("expression", ""))
        for entry in policy.get("bindings", [])
        for member in entry.get("members", [])
    }
    existing = set(request.cloud.grants.get(resource, set()))
    try:
        for grant in sorted(requested - existing):
            request.cloud.grant(resource, *grant)
        for grant in sorted(existing - requested):
            request.cloud.revoke(resource, *grant)
    except ApiError:
        # A single member that IAM does not know fails the whole policy.
        request.cloud.grants[resource] = existing
        raise
    return _get_policy(request)


_PROJECT = r"/v1/projects/(?P<project>[^/:]+)"
_SERVICES = r"/(?:v1|v1beta1)/projects/(?P<project>[^/:]+)/services"
_SERVICE = _SERVICES + r"/(?P<service>[^/:]+)"
_ACCOUNTS = r"/v1/projects/(?P<project>[^/:]+)/serviceAccounts"
_ACCOUNT = _ACCOUNTS + r"/(?P<email>[^/:]+)"
_ROLES = r"/v1/projects/(?P<project>[^/:]+)/roles"
_ROLE = _ROLES + r"/(?P<role>[^/:]+)"
_SECRET = r"/v1/projects/(?P<project>[^/:]+)/secrets/(?P<secret>[^/:]+)"  # noqa: S105 - a pattern
_BUCKET = r"/storage/v1/b/(?P<bucket>[^/]+)"

Answer = Callable[[Request], dict[str, Any] | None]
"""Function that answers a request; None is an empty answer."""

ROUTES: list[tuple[str, str, Answer]] = [
    ("POST", r"/storage/v1/b", _create_bucket),
    ("GET", _BUCKET, _get_bucket),
    ("PATCH", _BUCKET, _patch_bucket),
    ("DELETE", _BUCKET, _delete_bucket),
    ("GET", _BUCKET + "/o", _list_objects),
    ("DELETE", _BUCKET + "/o/(?P<object>.+)", _delete_object),
    ("GET", _BUCKET + "/anywhereCaches/?", lambda _: {"kind": "storage#anywhereCaches"}),
    ("GET", _BUCKET + "/iam", _get_policy),
    ("PUT", _BUCKET + "/iam", _set_policy),
    ("GET", _PROJECT, _get_project),
    ("GET", _PROJECT + "/billingInfo", _get_billing),
    ("GET", _PROJECT + ":getConfig", _get_ml_config),
    ("POST", _PROJECT + ":getIamPolicy", _get_policy),
    ("POST", _PROJECT + ":setIamPolicy", _set_policy),
    ("GET", _SERVICES, _list_services),
    ("POST", _SERVICES + ":batchEnable", _batch_enable),
    ("GET", _SERVICE, _get_service),
    ("POST", _SERVICE + ":enable", _enable),
    ("POST", _SERVICE + ":disable", _disable),
    (
        "POST",
        _SERVICE.replace("(?:v1|v1beta1)", "v1beta1") + ":generateServiceIdentity",
        _generate_identity,
    ),
    ("POST", _ACCOUNTS, _create_account),
    ("GET", _ACCOUNT, _get_account),
    ("PATCH", _ACCOUNT, _patch_account),
    ("DELETE", _ACCOUNT, _delete_account),
    ("POST", _ACCOUNT + ":getIamPolicy", _get_policy),
    ("POST", _ACCOUNT + ":setIamPolicy", _set_policy),
    ("POST", _ROLES, _create_role),
    ("GET", _ROLE, _get_role),
    ("PATCH", _ROLE, _patch_role),
    ("DELETE", _ROLE, _delete_role),
    ("POST", _ROLE + ":undelete", _undelete_role),
    ("GET", _SECRET + ":getIamPolicy", _get_policy),
    ("POST", _SECRET + ":setIamPolicy", _set_policy),
]
