"""The rules about resources, each with a resource that breaks it; and that the stack program breaks none."""

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
GOOD: dict[str, Any] = {
    "project": specs.PROJECT,
    "location": "US-CENTRAL1",
    "publicAccessPrevention": "enforced",
    "uniformBucketLevelAccess": True,
}


def judged(folder: Path, resource: Resource, *, environment: str = "dev", **top: Any) -> list[tuple[str, str]]:
    """Id and level of each finding about one resource."""
    made = EnvironmentResources(project_of(folder, environment, **top).environments[environment], (resource,), {})
    found = resource_findings(made, project_of(folder, environment, **top))
    assert all(finding.location.line > 1 and finding.help for finding in found if finding.level == "error")
    return [(finding.id, finding.level) for finding in found]


def project_of(folder: Path, environment: str, **top: Any) -> Project:
    """The project of the smallest spec, with one environment of that name."""
    project, _ = load_project(specs.write(folder, specs.spec(env=environment, **top)))
    assert project
    return project


def test_bucket_in_the_region_and_closed_is_fine(tmp_path: Path) -> None:
    """A regional, closed bucket that names its project breaks no rule; the case of the location does not matter."""
    assert not judged(tmp_path, Resource(BUCKET, "data", GOOD))


@pytest.mark.parametrize(
    ("type_", "change", "expected"),
    [
        (BUCKET, {"location": "US"}, "TPU090"),
        (BUCKET, {"location": "EUROPE-WEST4"}, "TPU090"),
        (BUCKET, {"publicAccessPrevention": "inherited"}, "TPU091"),
        (BUCKET, {"uniformBucketLevelAccess": False}, "TPU091"),
        (GRANT, {"role": "roles/storage.objectViewer", "member": "allUsers"}, "TPU091"),
        (GRANT, {"role": "roles/storage.objectViewer", "member": "allAuthenticatedUsers"}, "TPU091"),
        ("gcp:projects/iAMBinding:IAMBinding", {"role": "roles/x.y", "members": ["user:a@example.com"]}, "TPU092"),
        ("gcp:projects/iAMPolicy:IAMPolicy", {"policyData": "{}"}, "TPU092"),
        ("gcp:storage/bucketIAMBinding:BucketIAMBinding", {"role": "roles/x.y", "members": []}, "TPU092"),
        ("gcp:storage/bucketIAMPolicy:BucketIAMPolicy", {"policyData": "{}"}, "TPU092"),
        ("gcp:storage/bucketACL:BucketACL", {"predefinedAcl": "private"}, "TPU092"),
        ("gcp:serviceaccount/account:Account", {"project": None}, "TPU093"),
        (GRANT, {"role": "roles/owner", "member": "user:a@example.com"}, "TPU095"),
        (GRANT, {"role": "roles/editor", "member": "user:a@example.com"}, "TPU095"),
    ],
)
def test_breach_is_one_error(tmp_path: Path, type_: str, change: dict[str, Any], expected: str) -> None:
    """Each breach is one error with its own id, at the environment's place and with the way out."""
    assert judged(tmp_path, Resource(type_, "it", {**GOOD, **change})) == [(expected, "error")]


def test_grant_on_a_bucket_has_no_project_of_its_own(tmp_path: Path) -> None:
    """What belongs to a bucket names the bucket instead of a project, and has to name it."""
    type_ = "gcp:storage/bucketIAMMember:BucketIAMMember"
    member = {"role": "roles/storage.objectUser", "member": "user:a@example.com"}

    assert not judged(tmp_path, Resource(type_, "it", {"bucket": "data", **member}))
    assert judged(tmp_path, Resource(type_, "it", member)) == [("TPU093", "error")]


def test_production_is_protected(tmp_path: Path) -> None:
    """A bucket of prod without protection is an error, that of dev is none; the spec may accept it with a reason."""
    bare, safe = Resource(BUCKET, "data", GOOD), Resource(BUCKET, "data", GOOD, protect=True)

    assert judged(tmp_path, bare, environment="prod") == [("TPU094", "error")]
    assert not judged(tmp_path, safe, environment="prod")
    assert not judged(tmp_path, bare, environment="dev")
    assert judged(tmp_path, bare, environment="prod", allow={"TPU094": "rebuilt nightly"}) == [("TPU094", "note")]


@pytest.mark.parametrize(
    ("retain", "forced", "end"),
    [
        (True, False, "the jobs lose it, though it stays behind with its objects"),
        (False, True, "it is deleted with its objects"),
        (False, False, "it is deleted, once it is empty"),
    ],
)
def test_unprotected_bucket_says_its_end(tmp_path: Path, retain: bool, forced: bool, end: str) -> None:
    """What a destroy does to a bucket of prod is said as it is: kept data stays behind, and only the rest goes."""
    bucket = Resource(BUCKET, "data", {**GOOD, "forceDestroy": forced}, retain=retain)
    project = project_of(tmp_path, "prod")
    (found,) = resource_findings(EnvironmentResources(project.environments["prod"], (bucket,), {}), project)

    assert found.message == f"storage.Bucket data of prod is not protected: one pulumi destroy, and {end}"


def test_allowed_protection_is_not_idle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A check, which looks at no resources, does not say that an allowed finding about them did not occur."""
    spec = specs.write(tmp_path, specs.spec(env="prod", allow={"TPU094": "rebuilt nightly"}))

    assert run(["check", "--spec", str(spec)]) == 0
    assert "TPU013" not in capsys.readouterr().out
