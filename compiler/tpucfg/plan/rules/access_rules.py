"""Rules about what jobs may use: settings that a target has not, credentials, secrets without a version, and mounts.

Sizes that a target does not take are in the catalog, and capacity that it does not offer is in `capacity_table`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from tpucfg.catalog import Catalog, Slice
from tpucfg.findings import Finding
from tpucfg.named_tuple import NamedTuple
from tpucfg.plan.job import Job
from tpucfg.plan.naming import workload_account
from tpucfg.spec import Environment, Project, Secret, Settings, Trainer
from tpucfg.spec.credentials import Credential, credential_finding, credentials_in
from tpucfg.spec.sections import compares
from tpucfg.text_format import dotted, format_value, listed
from tpucfg.yamldoc import KeyPath

VERSIONS_URL: Final = "https://cloud.google.com/secret-manager/docs/best-practices"
"""A secret should be referred to by its version's number, and not by `latest`."""
ROLES_URL: Final = "https://cloud.google.com/storage/docs/access-control/iam-roles"
_BUCKET_ROLE: Final = "--role=roles/storage.objectUser"


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
                projects.setdefault(
                    layer.path, (secret.name, secret.project or job.environment.project)
                )
    credentials = (
        {credential.path for credential in credentials_in(project.document)} if projects else ()
    )
    for path, (name, google_project) in projects.items():
        if path in credentials:
            continue
        message = f"{dotted(path)} has no version: each start reads the latest one, so two runs may read other values"
        command = f"gcloud secrets versions list {name} --project={google_project}"
        hint = (
            f"set {dotted(path)} to {name}/latest, or to {name}/NUMBER with a number of: {command}"
        )
        details = (f"Google recommends the number: {VERSIONS_URL}",)
        yield project.document.finding("TPU086", message, path, help=hint, details=details)


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
                members.setdefault((path, bucket), {})[f"serviceAccount:{email}"] = (
                    job.environment.name
                )
    for (path, bucket), environments in members.items():
        member, *others = environments
        also = f", and equally for {listed(others, last=' and ')}" if others else ""
        names = listed(tuple(dict.fromkeys(environments.values())), last=" and ")
        problem = (
            f"{dotted(path)} is in {format_value(bucket, quoted=False)}, "
            f"which the stack of {names} does not grant"
        )
        message = f"{problem}: the jobs would be denied access unless it was granted by hand"
        command = f"gcloud storage buckets add-iam-policy-binding {bucket} --member={member} {_BUCKET_ROLE}"
        hint = f"use ${{bucket}}, or list it under reads of {names}, by its URL and region"
        hint += f"; for a program that writes there, run: {command}{also}; then allow TPU087"
        details = (f"the roles: {ROLES_URL}",)
        yield project.document.finding("TPU087", message, path, help=hint, details=details)


# Credentials in the spec, with the edit that each environment's service takes.


@compares()
def credential_findings(project: Project, _: Catalog) -> Iterator[Finding]:
    """Yield an error for each credential in the variables and flags of every layer."""
    for credential in credentials_in(project.document):
        environments = project.users_of(credential.layer)
        without = [*_without_secrets(project, environments)]
        if not without:
            yield credential_finding(project.document, credential, credential.help)
            continue
        others = [environment for environment in environments if environment not in without]
        secret = Secret(credential.variable, None, credential.secret, "1")
        lines = [
            line for environment in without for line in _lines(project, environment, (secret,))
        ]
        yield credential_finding(
            project.document, credential, _help(credential, without, others), lines
        )


# Sections that decide the lines of the edit: those about a stand-in would be wrong.
@compares("name", "target", "environments", "sizes")
def _without_secrets(_: Project, environments: Iterable[Environment]) -> Iterable[Environment]:
    """Yield the environments whose variables cannot refer to a secret."""
    return (each for each in environments if each.target in TARGETS_WITHOUT_SECRETS)


def _help(credential: Credential, without: list[Environment], others: list[Environment]) -> str:
    """Return the edit for environments without variables from Secret Manager, and for others of the same layer."""
    path, store = dotted(credential.path), "store the value in Secret Manager"
    if not others:
        return f"{store}, delete {path}, add these lines to the trainer, and run the commands once"
    below = credential.layer if credential.layer[:1] == ("overrides",) else ()
    sections = [dotted((*environment.path, *below, "trainer", "secrets")) for environment in others]
    names = listed([environment.name for environment in without], last=" and ")
    moved = f"replace {path} by {credential.reference} under {listed(sections, last=' and ')}"
    return (
        f"{store}, {moved}, add these lines to the trainer for {names}, and run the commands once"
    )


def _lines(
    project: Project, environment: Environment, secrets: Sequence[Secret], size: str = ""
) -> list[str]:
    from tpucfg.plan.identities import secret_lines  # here, as only a finding has them

    return (
        secret_lines(environment, workload_account(project, environment, size), secrets)
        if secrets
        else []
    )


# Limits of the targets on settings of `trainer`: one table for all targets, and the findings about its rows.


class TargetLimit(NamedTuple):
    """A setting of the trainer that a target does not have."""

    target: str
    key: str
    """The key of `trainer`."""
    reason: str
    """The reason, as a sentence without its full stop, with `{path}` and `{value}` of the setting."""
    fix: str
    """The edit that helps instead, as an imperative to follow the deletion of the key; may be empty."""
    source: str
    """The public page."""
    id: str = "TPU059"
    applies: Callable[[Trainer, Slice], object] | None = None
    """Returns a true value if the setting has an effect; by default, every value but an empty one has."""
    at_value: bool = False
    """True if another value is accepted, so that the finding is at the value and not at the key."""


_JOBS: Final = "https://cloud.google.com/ai-platform/training/docs/reference/rest/v1/projects.jobs"
_NO_VARIABLES: Final = "ai-platform sets no environment variables for the program"
_RESTARTS: Final = "https://cloud.google.com/vertex-ai/docs/training/understanding-training-service"
_ENV: Final = "https://cloud.google.com/vertex-ai/docs/reference/rest/v1/EnvVar"
_IMAGE: Final = "delete its module, and set trainer.image to an image that contains the package"


def _runs_containers(target: str, source: str) -> TargetLimit:
    reason = f"{target} runs containers, and {{path}} is a Python package"
    return TargetLimit(target, "package", reason, _IMAGE, source, "TPU051")


TARGET_LIMITS: Final = (
    TargetLimit(
        "ai-platform",
        "env",
        _NO_VARIABLES,
        "and pass the values as trainer.args, or set them in the image",
        _JOBS,
    ),
    TargetLimit(
        "ai-platform",
        "secrets",
        f"{_NO_VARIABLES}, so none from Secret Manager",
        "and read them in the program",
        _JOBS,
    ),
    TargetLimit(
        "ai-platform",
        "xla_flags",
        f"{_NO_VARIABLES}, so no flags of libtpu",
        "",
        _JOBS,
        # Flags for other generations have no effect on the slice.
        applies=lambda trainer, slice_: trainer.xla_flags.get(slice_.generation),
    ),
    TargetLimit(
        "ai-platform",
        "mounts",
        "ai-platform mounts no buckets",
        "and read from Cloud Storage in the program",
        _JOBS,
    ),
    TargetLimit(
        "ai-platform",
        "restarts",
        "ai-platform has no number of restarts",
        "",
        _JOBS,
        applies=lambda trainer, _: trainer.restarts is not None,
    ),
    TargetLimit(
        "vertex-ai",
        "restarts",
        "{path} is {value}, and vertex-ai takes no number: it restarts a failed worker up to 5 times and then the "
        "whole job up to 3 times, or never",
        "or set it to 0 for no restart",
        _RESTARTS,
        at_value=True,
    ),
    TargetLimit(
        "vertex-ai",
        "secrets",
        "vertex-ai has no variables from Secret Manager: the program has to read them itself, by these lines",
        "add these lines to the trainer, and run the command once",
        _ENV,
    ),
    _runs_containers("cloud-tpu", "https://cloud.google.com/tpu/docs/run-in-container"),
    _runs_containers("compute-engine", "https://cloud.google.com/tpu/docs/run-in-container"),
    _runs_containers("gke", "https://cloud.google.com/kubernetes-engine/docs/how-to/tpus"),
)
TARGETS_WITHOUT_SECRETS: Final = frozenset(
    row.target for row in TARGET_LIMITS if row.key == "secrets"
)
"""The targets whose variables cannot refer to a secret."""


def target_limit_findings(
    project: Project, environment: Environment, slices: Sequence[Slice]
) -> Iterator[Finding]:
    """Yield an error for each setting that the environment's sizes have and its target has not."""
    rows = [row for row in TARGET_LIMITS if row.target == environment.target]
    for slice_ in slices:
        settings = project.settings[environment.name, slice_.size]
        for row in rows:
            value = getattr(settings.trainer, row.key)
            if row.applies(settings.trainer, slice_) if row.applies else value:
                yield _limit_finding(project, environment, slice_, settings, row)


def _limit_finding(
    project: Project, environment: Environment, slice_: Slice, settings: Settings, row: TargetLimit
) -> Finding:
    path = settings.source(("trainer", row.key))
    hint = removal_hint(project, environment, path, row.key)
    secrets = settings.trainer.secrets if row.key == "secrets" else ()
    lines = _lines(project, environment, secrets, slice_.size)
    message = row.reason.format(path=dotted(path), value=getattr(settings.trainer, row.key))
    hint, details = f"{hint}, {row.fix}" if row.fix else hint, (*lines, f"see {row.source}")
    return project.document.finding(
        row.id, message, path, at_key=not row.at_value, help=hint, details=details
    )


def removal_hint(project: Project, environment: Environment, path: KeyPath, *keys: str) -> str:
    """Return the edit that takes a setting of the trainer away for one environment, whichever layer has it."""
    own = path[:2] == environment.path or len(project.environments) == 1
    return (
        f"delete {dotted(path)}"
        if own
        else f"set {dotted((*environment.path, 'trainer', *keys))} to null"
    )
