"""Rules about resources, each with a resource that breaks it."""

from pathlib import Path
from typing import Any

import pytest
import specs

from tpucfg.cli.app import run
from tpucfg.infra.resource_rules import resource_findings
from tpucfg.infra.resources import EnvironmentResources, Resource
from tpucfg.spec.parse import load_project
from tpucfg.spec.project import Project

BUCKET = "gcp:storage/bucket:Bucket"
GRANT = "gcp:projects/iAMMember:IAMMember"
ON_BUCKET = "gcp:storage/bucketIAMMember:BucketIAMMember"
ROLE = "gcp:projects/iAMCustomRole:IAMCustomRole"
TEAM = "group:team@example.com"
DELETE_ALL = {"action": {"type": "Delete"}, "condition": {"age": 3}}
GOOD: dict[str, Any] = {
    "project": specs.PROJECT,
    "location": "US-CENTRAL1",
    "publicAccessPrevention": "enforced",
    "uniformBucketLevelAccess": True,
}


def finding_levels(
    folder: Path, resource: Resource, *, environment: str = "dev", **top: Any
) -> list[tuple[str, str]]:
    """Return the id and level of each finding about one resource."""
    project = project_of(folder, environment, **top)
    declared = EnvironmentResources(project.environments[environment], (resource,), {})
    findings = resource_findings(declared, project)
    assert all(
        finding.location.line > 1 and finding.help
        for finding in findings
        if finding.level == "error"
    )
    return [(finding.id, finding.level) for finding in findings]


def project_of(folder: Path, environment: str, **top: Any) -> Project:
    """Return the project of a minimal spec with one environment of that name."""
    project, _ = load_project(specs.write(folder, specs.spec(env=environment, **top)))
    assert project
    return project


def test_regional_private_bucket_breaks_no_rule(tmp_path: Path) -> None:
    """A regional, private bucket with a project breaks no rule; the case of the location does not matter."""
    assert not finding_levels(tmp_path, Resource(BUCKET, "data", GOOD))


@pytest.mark.parametrize(
    ("type_", "change", "expected"),
    [
        (BUCKET, {"location": "US"}, "TPU090"),
        (BUCKET, {"location": "EUROPE-WEST4"}, "TPU090"),
        (BUCKET, {"publicAccessPrevention": "inherited"}, "TPU091"),
        (BUCKET, {"uniformBucketLevelAccess": False}, "TPU091"),
        (GRANT, {"role": "roles/storage.objectViewer", "member": "allUsers"}, "TPU091"),
        (
            GRANT,
            {"role": "roles/storage.objectViewer", "member": "allAuthenticatedUsers"},
            "TPU091",
        ),
        ("gcp:serviceaccount/account:Account", {"project": None}, "TPU093"),
        (GRANT, {"role": "roles/owner", "member": "group:a@example.com"}, "TPU095"),
        (GRANT, {"role": "roles/editor", "member": "group:a@example.com"}, "TPU095"),
    ],
)
def test_broken_rule_is_one_error(
    tmp_path: Path, type_: str, change: dict[str, Any], expected: str
) -> None:
    """Each broken rule is one error with its own id, located at the environment and with a help line."""
    assert finding_levels(tmp_path, Resource(type_, "name", {**GOOD, **change})) == [
        (expected, "error")
    ]


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        (
            Resource(GRANT, "g", {"project": "p", "role": "roles/storage.admin", "member": TEAM}),
            ["TPU098"],
        ),
        (
            Resource(
                GRANT, "g", {"project": "p", "role": "roles/run.serviceAgent", "member": TEAM}
            ),
            ["TPU098"],
        ),
        (
            Resource(GRANT, "g", {"project": "p", "role": "roles/ml.serviceAgent", "member": TEAM}),
            ["TPU098"],
        ),
        (
            Resource(
                GRANT, "g", {"project": "p", "role": "roles/storage.objectAdmin", "member": TEAM}
            ),
            [],
        ),
        (
            Resource(
                ON_BUCKET, "g", {"bucket": "b", "role": "roles/storage.admin", "member": TEAM}
            ),
            [],
        ),
        (
            Resource(ROLE, "r", {"project": "p", "permissions": ["storage.buckets.setIamPolicy"]}),
            ["TPU098"],
        ),
        (
            Resource(
                ROLE, "r", {"project": "p", "permissions": ["tpu.nodes.get", "tpu.nodes.delete"]}
            ),
            [],
        ),
        (
            Resource(ON_BUCKET, "g", {"bucket": "b", "role": "r", "member": "user:a@example.com"}),
            ["TPU089"],
        ),
        (
            Resource(
                ON_BUCKET,
                "g",
                {
                    "bucket": "b",
                    "role": "r",
                    "member": "serviceAccount:p@appspot.gserviceaccount.com",
                },
            ),
            ["TPU088"],
        ),
        (
            Resource(
                ON_BUCKET,
                "g",
                {
                    "bucket": "b",
                    "role": "r",
                    "member": "serviceAccount:a@p.iam.gserviceaccount.com",
                },
            ),
            [],
        ),
        (Resource(BUCKET, "b", {**GOOD, "lifecycleRules": [DELETE_ALL]}), ["TPU096"]),
        (Resource(BUCKET, "b", {**GOOD, "lifecycleRules": "[secret]"}), []),
        (Resource("random:index/randomId:RandomId", "r", {}), []),
    ],
)
def test_rules_about_access_and_deletion(
    tmp_path: Path, resource: Resource, expected: list[str]
) -> None:
    """Roles that take over accounts, keys, default accounts, people, and deletions of the whole bucket are findings."""
    assert [id_ for id_, _ in finding_levels(tmp_path, resource)] == expected


def test_role_of_ai_platform_is_the_one_exception(tmp_path: Path) -> None:
    """The guide of ai-platform requires one role for service agents, which is no finding on that target."""
    role = Resource(GRANT, "g", {"project": "p", "role": "roles/ml.serviceAgent", "member": TEAM})
    project = project_of(tmp_path, "dev")
    on_ai_platform = project.environments["dev"]._replace(target="ai-platform")
    assert resource_findings(EnvironmentResources(on_ai_platform, (role,), {}), project) == ()


@pytest.mark.parametrize("environment", ["prod", "dev"])
def test_final_deletions_matter_in_production(tmp_path: Path, environment: str) -> None:
    """Soft delete that is off, and a bucket deleted with its objects, are errors only where data needs protection."""
    inputs = {**GOOD, "softDeletePolicy": {"retentionDurationSeconds": "0"}, "forceDestroy": "true"}
    bucket = Resource(BUCKET, "data", inputs, protect=True)
    expected = [("TPU097", "error")] * 2 if environment == "prod" else []
    assert finding_levels(tmp_path, bucket, environment=environment) == expected


def test_grant_on_a_bucket_names_the_bucket(tmp_path: Path) -> None:
    """A grant on a bucket has to name the bucket instead of a project."""
    type_ = "gcp:storage/bucketIAMMember:BucketIAMMember"
    member = {"role": "roles/storage.objectUser", "member": "group:a@example.com"}

    assert not finding_levels(tmp_path, Resource(type_, "name", {"bucket": "data", **member}))
    assert finding_levels(tmp_path, Resource(type_, "name", member)) == [("TPU093", "error")]


def test_production_bucket_has_to_be_protected(tmp_path: Path) -> None:
    """An unprotected bucket is an error in prod but not in dev; the spec may allow it with a reason."""
    unprotected, protected = (
        Resource(BUCKET, "data", GOOD),
        Resource(BUCKET, "data", GOOD, protect=True),
    )

    assert finding_levels(tmp_path, unprotected, environment="prod") == [("TPU094", "error")]
    assert not finding_levels(tmp_path, protected, environment="prod")
    assert not finding_levels(tmp_path, unprotected, environment="dev")
    assert finding_levels(
        tmp_path, unprotected, environment="prod", allow={"TPU094": "rebuilt nightly"}
    ) == [("TPU094", "note")]


def test_allowed_resource_finding_is_not_reported_as_unused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A check, which knows no resources, does not report an `allow` entry for a resource finding as unused."""
    spec = specs.write(tmp_path, specs.spec(env="prod", allow={"TPU094": "rebuilt nightly"}))

    assert run(["check", "--spec", str(spec)]) == 0
    assert "TPU013" not in capsys.readouterr().out
