"""An in-memory Google Cloud for a stack: its resources, the calls that changed them, and injected faults."""

import hashlib
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from standin import errors
from standin.errors import ApiError

TPU = "tpu.googleapis.com"
AGENT_DOMAINS = {
    TPU: "cloud-tpu",
    "aiplatform.googleapis.com": "gcp-sa-aiplatform",
    "ml.googleapis.com": "cloud-ml",
}
"""The domain of the service agent that `generateServiceIdentity` returns.

Source: https://github.com/GoogleCloudPlatform/cloud-foundation-fabric (modules/project/service-agents.yaml)
"""


@dataclass(frozen=True, slots=True)
class Call:
    """One mutating call."""

    operation: str
    """The operation, such as `bucket.create` or `iam.grant`."""
    target: str
    """The bucket's name, or resource, role and member of a grant."""
    error: ApiError | None = None
    """The error, or None after success."""


@dataclass(slots=True)
class Bucket:
    """A bucket, with the body in the format of the API that created it."""

    project: str
    body: dict[str, Any]
    objects: set[str] = field(default_factory=set)
    """Names of its objects; a bucket with objects is deleted only by force."""


@dataclass(slots=True)
class Role:
    """A custom role of a project."""

    body: dict[str, Any]
    """The title, the description, the permissions and the stage, in the format of the API that created it."""
    state: Literal["active", "deleted", "reserved"] = "active"
    """A deleted role can be undeleted for seven days; after that, its id is reserved for thirty more."""


@dataclass(slots=True)
class _Fault:
    operation: str
    error: ApiError
    times: int
    target: str


class Cloud:
    """The resources of one test."""

    def __init__(self, projects: Mapping[str, int]) -> None:
        self.projects = dict(projects)
        """Number by project id."""
        self.buckets: dict[str, Bucket] = {}
        self.taken: set[str] = set()
        """Bucket names of other owners."""
        self.services: dict[str, set[str]] = {project: set() for project in projects}
        """Enabled services by project id."""
        self.accounts: dict[str, dict[str, Any]] = {}
        """Service accounts by e-mail."""
        self.agents: set[str] = set()
        """E-mails of existing service agents."""
        self.roles: dict[str, Role] = {}
        """Custom roles by name: `projects/P/roles/ID`."""
        self.secrets: set[str] = set()
        """Names of secrets: `projects/P/secrets/ID`."""
        self.grants: dict[str, set[tuple[str, str, str]]] = {}
        """Roles, members and conditions, which most grants have not, by resource: `projects/P`, `b/BUCKET`,
        `serviceAccounts/EMAIL`, `projects/P/secrets/ID`."""
        self.ml_config: dict[str, Any] | None = None
        """The answer of ai-platform's `getConfig`; None if the service is shut down."""
        self.agents_answer_without_email = False
        """`generateServiceIdentity` creates the agent but returns no e-mail."""
        self.invisible_for = 0
        """Number of grants that IAM rejects for each new agent and account, as if it did not see it yet."""
        self.calls: list[Call] = []
        """Every mutating call, in order."""
        self._faults: list[_Fault] = []
        self._unseen: dict[str, int] = {}
        self._lock = threading.RLock()

    def fail(self, operation: str, error: ApiError, *, times: int = 1, target: str = "") -> None:
        """Fail the next calls of an operation whose target contains a text."""
        self._faults.append(_Fault(operation, error, times, target))

    @property
    def changes(self) -> list[Call]:
        """The successful calls."""
        return [call for call in self.calls if call.error is None]

    @property
    def operations(self) -> list[str]:
        """The operations of `changes`, sorted: the engine works in parallel, so their order varies."""
        return sorted(call.operation for call in self.changes)

    def create_bucket(self, project: str, name: str, body: dict[str, Any]) -> Bucket:
        """Create a bucket; names are global."""
        with self._change("bucket.create", name):
            if name in self.taken:
                raise errors.bucket_taken()
            if name in self.buckets:
                raise errors.bucket_owned()
            self.buckets[name] = Bucket(self.project_id(project), body)
            return self.buckets[name]

    def bucket(self, name: str) -> Bucket:
        """Return a bucket, or raise 404."""
        if name not in self.buckets:
            raise errors.not_found("The specified bucket")
        return self.buckets[name]

    def update_bucket(self, name: str, body: dict[str, Any]) -> Bucket:
        """Replace a bucket's description."""
        with self._change("bucket.update", name):
            self.bucket(name).body = body
            return self.bucket(name)

    def delete_bucket(self, name: str, *, force: bool = False) -> None:
        """Delete a bucket; with objects only by force."""
        with self._change("bucket.delete", name):
            if self.bucket(name).objects and not force:
                raise errors.bucket_not_empty()
            del self.buckets[name]
            self.grants.pop(f"b/{name}", None)

    def enable(self, project: str, service: str) -> None:
        """Enable an API."""
        with self._change("service.enable", f"{project} {service}"):
            self.services[self.project_id(project)].add(service)

    def disable(self, project: str, service: str) -> None:
        """Disable an API."""
        with self._change("service.disable", f"{project} {service}"):
            self.services[self.project_id(project)].discard(service)

    def generate_identity(self, project: str, service: str) -> str | None:
        """Create a service's agent in a project and return its e-mail, if the answer has one."""
        with self._change("identity.generate", f"{project} {service}"):
            domain = AGENT_DOMAINS.get(service, "gcp-sa-" + service.partition(".")[0])
            email = f"service-{self.number(project)}@{domain}.iam.gserviceaccount.com"
            if email not in self.agents:
                self._unseen[email] = self.invisible_for
            self.agents.add(email)
            return None if self.agents_answer_without_email else email

    def create_account(self, project: str, account_id: str, body: dict[str, Any]) -> str:
        """Create a service account and return its e-mail."""
        email = f"{account_id}@{self.project_id(project)}.iam.gserviceaccount.com"
        with self._change("account.create", email):
            if email in self.accounts:
                raise ApiError(
                    409,
                    "alreadyExists",
                    f"Service account {account_id} already exists within project {project}.",
                )
            self.accounts[email] = {**body, "project": project}
            self._unseen[email] = self.invisible_for
            return email

    def update_account(self, email: str, body: dict[str, Any]) -> None:
        """Change a service account's description."""
        with self._change("account.update", email):
            self.account(email).update(body)

    def account(self, email: str) -> dict[str, Any]:
        """Return a service account, or raise 404."""
        if email not in self.accounts:
            raise errors.not_found(f"Service account {email}")
        return self.accounts[email]

    def delete_account(self, email: str) -> None:
        """Delete a service account."""
        with self._change("account.delete", email):
            self.account(email)
            del self.accounts[email]

    def create_role(self, project: str, role_id: str, body: dict[str, Any]) -> str:
        """Create a custom role and return its name; the id of a deleted one is refused."""
        name = f"projects/{self.project_id(project)}/roles/{role_id}"
        with self._change("role.create", name):
            if name in self.roles:
                is_active = self.roles[name].state == "active"
                raise (
                    errors.role_exists(role_id)
                    if is_active
                    else errors.role_marked_for_deletion(role_id)
                )
            self.roles[name] = Role(body)
            return name

    def role(self, name: str) -> Role:
        """Return a custom role, which may be deleted, or raise 404."""
        if name not in self.roles or self.roles[name].state == "reserved":
            raise errors.not_found(f"The role named {name}")
        return self.roles[name]

    def update_role(self, name: str, body: dict[str, Any]) -> None:
        """Replace a custom role's permissions and description."""
        with self._change("role.update", name):
            self.role(name).body = body

    def undelete_role(self, name: str) -> None:
        """Restore a deleted role."""
        with self._change("role.undelete", name):
            self.role(name).state = "active"

    def delete_role(self, name: str) -> None:
        """Delete a custom role; its grants remain without effect."""
        with self._change("role.delete", name):
            self.role(name).state = "deleted"

    def grant(self, resource: str, role: str, member: str, condition: str = "") -> None:
        """Grant a role to a member, which must exist; grants under different conditions are different grants."""
        with self._change("iam.grant", f"{resource} {role} {member}"):
            self._check_member(member)
            self.check_secret(resource)
            self.grants.setdefault(resource, set()).add((role, member, condition))

    def revoke(self, resource: str, role: str, member: str, condition: str = "") -> None:
        """Revoke a role from a member."""
        with self._change("iam.revoke", f"{resource} {role} {member}"):
            self.grants.get(resource, set()).discard((role, member, condition))

    def members(self, resource: str, role: str) -> set[str]:
        """Return the members of a role."""
        return {
            member for granted, member, _ in self.grants.get(resource, set()) if granted == role
        }

    def conditions(self, resource: str, role: str) -> set[str]:
        """Return the expressions of the conditions under which a role is granted."""
        return {
            condition
            for granted, _, condition in self.grants.get(resource, set())
            if granted == role
        }

    def etag(self, resource: str) -> str:
        """Return the etag of a resource's policy, which changes with every change of the policy."""
        return hashlib.sha256(repr(sorted(self.grants.get(resource, set()))).encode()).hexdigest()[
            :12
        ]

    def number(self, project: str) -> int:
        """Return a project's number, by its id or number."""
        return self.projects[self.project_id(project)]

    def project_id(self, project: str) -> str:
        """Return a project's id, by its id or number."""
        for identifier, number in self.projects.items():
            if project.removeprefix("projects/") in {identifier, str(number)}:
                return identifier
        raise errors.not_found(f"Project {project}")

    def check_secret(self, resource: str) -> None:
        """Raise 404 for the name of a secret that does not exist."""
        project, _, secret = resource.partition("/secrets/")
        if secret and resource not in self.secrets:
            raise errors.no_secret(self.number(project), secret)

    def _check_member(self, member: str) -> None:
        kind, _, email = member.partition(":")
        if kind != "serviceAccount" or ".svc.id.goog[" in email:
            return
        if email not in self.agents and email not in self.accounts:
            raise errors.no_principal(email)
        if self._unseen.get(email, 0) > 0:
            self._unseen[email] -= 1
            raise errors.no_principal(email)

    @contextmanager
    def _change(self, operation: str, target: str) -> Iterator[None]:
        with self._lock:
            try:
                self._raise_fault(operation, target)
                yield
            except ApiError as error:
                self.calls.append(Call(operation, target, error))
                raise
            self.calls.append(Call(operation, target))

    def _raise_fault(self, operation: str, target: str) -> None:
        for fault in self._faults:
            if fault.operation == operation and fault.target in target and fault.times > 0:
                fault.times -= 1
                raise fault.error
