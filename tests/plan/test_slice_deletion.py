"""The condition under which jobs delete instances, evaluated as IAM does."""

import pytest

from tpucfg.catalog import Catalog
from tpucfg.plan.identities import deletion_condition

INSTANCE = "compute.googleapis.com/Instance"
GROUP = "compute.googleapis.com/InstanceGroupManager"
MAX_OPERATORS = 12
"""Logical operators of a condition: https://cloud.google.com/iam/quotas#limits."""


class Name(str):
    """The name of a resource, with the functions of https://cloud.google.com/iam/docs/conditions-attribute-reference."""

    __slots__ = ()
    startsWith = str.startswith  # noqa: N815 - as in CEL

    def extract(self, template: str) -> "Name":
        """Return the part of the name in the place of `{name}`; empty if the template does not match."""
        before, _, after = template.partition("{name}")
        assert not after
        return Name(self.partition(before)[2])


class Resource:
    """The resource of a request."""

    def __init__(self, type_: str, name: str) -> None:
        self.type = type_
        self.name = Name(name)


def may_delete(condition: str | None, resource_type: str, name: str) -> bool:
    """Evaluate a condition, whose few operators Python has under other names."""
    resource = Resource(resource_type, f"projects/acme-prod/zones/us-east5-a/{name}")
    return bool(eval((condition or "True").replace("||", "or"), {"resource": resource}))  # noqa: S307 - our own text


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("vit-prod-v6e-4", True),
        ("vit-prod-v6e-4-run7", True),
        ("vit-prod-v6e-8", False),
        ("vit-prod-frontend", False),
        ("vit-prod-eu-v6e-4", False),
        ("vit-dev-v6e-4", False),
        ("x-vit-prod-v6e-4", False),
        ("database", False),
    ],
)
def test_only_the_instances_of_the_jobs_can_be_deleted(name: str, allowed: bool) -> None:
    """A name starts with that of a job; other machines of the project, and of other environments, are out of reach."""
    condition = deletion_condition("compute-engine", ["vit-prod-v6e-4", "vit-prod-v6e-1"])

    assert may_delete(condition, INSTANCE, f"instances/{name}") == allowed
    assert may_delete(condition, GROUP, f"instanceGroupManagers/{name}")


def test_without_names_or_resources_there_is_none() -> None:
    """Groups alone need no condition, and Cloud TPU has none."""
    assert deletion_condition("compute-engine", []) is None
    assert deletion_condition("cloud-tpu", ["vit-prod-v6e-4"]) is None


def test_every_size_of_one_host_fits_into_one_condition() -> None:
    """The catalog has fewer sizes of one host than a condition may have operators."""
    sizes = [
        slice_.size
        for slice_ in Catalog().all()
        if "compute-engine" in slice_.targets and slice_.hosts == 1
    ]

    condition = deletion_condition("compute-engine", sizes)

    assert condition
    assert len(sizes) == condition.count("||") <= MAX_OPERATORS


def test_a_name_cannot_end_the_text() -> None:
    """A quote in a name, which the spec refuses, would still be part of the text."""
    condition = deletion_condition("compute-engine", ['x") || ("" == "'])

    assert not may_delete(condition, INSTANCE, "instances/database")
