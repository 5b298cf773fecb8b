"""Rules about access: credentials in the spec, secrets without a version, and mounts that the stack does not grant."""

from collections.abc import Iterator, Sequence
from typing import Final

from tpucfg.catalog import Catalog
from tpucfg.findings import Finding
from tpucfg.plan.job import Job
from tpucfg.plan.naming import workload_account
from tpucfg.plan.rules.target_limits import TARGETS_WITHOUT_SECRETS
from tpucfg.spec import Environment, Project, Secret
from tpucfg.spec.credentials import Credential, credential_finding, credentials_in
from tpucfg.text_format import dotted, format_value, listed
from tpucfg.yamldoc import KeyPath

VERSIONS_URL: Final = "https://cloud.google.com/secret-manager/docs/best-practices"
"""A secret should be referred to by its version's number, and not by `latest`."""
ROLES_URL: Final = "https://cloud.google.com/storage/docs/access-control/iam-roles"


def access_findings(project: Project, jobs: Sequence[Job]) -> Iterator[Finding]:
    """Yield the findings about the secrets and mounts of jobs, one for each place in the spec."""
    yield from _open_versions(project, jobs)
    yield from _foreign_mounts(project, jobs)


def _open_versions(project: Project, jobs: Sequence[Job]) -> Iterator[Finding]:
    """Yield a warning for each secret without a version; a written `latest` is a decision."""
    projects: dict[KeyPath, tuple[str, str]] = {}
    for job in jobs:
        texts = job.settings.layers.find("trainer", "secrets")
        for secret in job.secrets:
            layer = texts.children()[secret.variable] if texts else None
            # Only a bare name has no version: the schema requires one after projects/<project>/secrets/<secret>.
            if layer is not None and layer.value == secret.name:
                projects.setdefault(layer.path, (secret.name, secret.project or job.environment.project))
    credentials = {credential.path for credential in credentials_in(project.document)} if projects else ()
    for path, (name, google_project) in projects.items():
        if path in credentials:
            continue
        yield Finding.of(
            "TPU086",
            f"{dotted(path)} has no version: every start of a job reads the latest one, so two runs of one config can "
            "read different values",
            project.document.value_location(path),
            help=f"set {dotted(path)} to {name}/latest, or to {name}/NUMBER with a number of: "
            f"gcloud secrets versions list {name} --project={google_project}",
            details=(f"Google recommends the number: {VERSIONS_URL}",),
        )


def _foreign_mounts(project: Project, jobs: Sequence[Job]) -> Iterator[Finding]:
    """Yield a warning for each mount of a bucket other than the environment's, with the command that grants it."""
    members: dict[tuple[KeyPath, str], dict[str, str]] = {}
    for job in jobs:
        for mount in job.mounts:
            bucket = "/".join(mount.source.split("/")[:3])
            # A source that is no bucket at all is TPU007.
            granted = (f"gs://{job.bucket}", *job.environment.reads)
            if bucket.startswith("gs://") and bucket not in granted:
                path = job.settings.source(("trainer", "mounts", mount.path))
                email = workload_account(project, job.environment, job.size)
                members.setdefault((path, bucket), {})[f"serviceAccount:{email}"] = job.environment.name
    for (path, bucket), environments in members.items():
        member, *others = environments
        also = f", and equally for {listed(others, last=' and ')}" if others else ""
        names = listed(tuple(dict.fromkeys(environments.values())), last=" and ")
        yield Finding.of(
            "TPU087",
            f"{dotted(path)} is in {format_value(bucket, quoted=False)}, which the stack of {names} does not grant: "
            "the jobs would be denied access unless it was granted by hand",
            project.document.value_location(path),
            help=f"use ${{bucket}}, or list it under reads of {names}, by its URL and region; for a program that "
            f"writes there, run: gcloud storage buckets add-iam-policy-binding {bucket} --member={member} "
            f"--role=roles/storage.objectUser{also}; then allow TPU087",
            details=(f"the roles: {ROLES_URL}",),
        )


# Credentials in the spec, with the edit that each environment's service takes.

_DECIDING: Final = frozenset(("name", "target", "environments", "sizes"))
"""The sections that decide the lines: those about a stand-in of one would be wrong."""


def credential_findings(project: Project, _: Catalog) -> Iterator[Finding]:
    """Yield an error for each credential in the variables and flags of every layer."""
    for credential in credentials_in(project.document):
        environments = project.users_of(credential.layer)
        without = [environment for environment in environments if environment.target in TARGETS_WITHOUT_SECRETS]
        if not without or project.broken & _DECIDING:
            yield credential_finding(project.document, credential, credential.help)
            continue
        others = [environment for environment in environments if environment not in without]
        lines = [line for environment in without for line in _lines(project, environment, credential)]
        yield credential_finding(project.document, credential, _help(credential, without, others), lines)


def _help(credential: Credential, without: list[Environment], others: list[Environment]) -> str:
    """Return the edit for environments without variables from Secret Manager, and for others of the same layer."""
    path, store = dotted(credential.path), "store the value in Secret Manager"
    if not others:
        return f"{store}, delete {path}, add these lines to the trainer, and run the commands once"
    below = credential.layer if credential.layer[:1] == ("overrides",) else ()
    sections = [dotted((*environment.path, *below, "trainer", "secrets")) for environment in others]
    names = listed([environment.name for environment in without], last=" and ")
    moved = f"replace {path} by {credential.reference} under {listed(sections, last=' and ')}"
    return f"{store}, {moved}, add these lines to the trainer for {names}, and run the commands once"


def _lines(project: Project, environment: Environment, credential: Credential) -> list[str]:
    from tpucfg.plan.identities import secret_lines  # here, as only a finding has them

    secret = Secret(credential.variable, None, credential.secret, "1")
    return secret_lines(environment, workload_account(project, environment), (secret,))
