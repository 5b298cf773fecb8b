"""The signature of a rule about a resource, and how a rule names it."""

from collections.abc import Callable, Iterator
from typing import Final

from tpucfg.findings import Finding, Location
from tpucfg.infra.grants import Grant, Target
from tpucfg.infra.resources import Resource
from tpucfg.redaction import redact
from tpucfg.spec.project import Environment

ResourceRule = Callable[[Resource, Environment, Location], Iterator[Finding]]
"""Yields the findings about one resource of an environment, at a location in the spec."""
BUCKET: Final = "gcp:storage/bucket:Bucket"
PRODUCTION: Final = ("prod", "production", "live")
"""Names of environments whose data needs protection."""


def label(resource: Resource) -> str:
    """Return the resource as a message names it."""
    return f"{resource.kind} {resource.name}"


def format_target(target: Target) -> str:
    """Return the object of a grant as a message names it: `bucket acme-data`."""
    return f"{target.kind} {target.name}" if target.name else f"a {target.kind} without a name"


def format_grant(grant: Grant) -> str:
    """Return a grant as a message names it; of a person, only the domain: it names a role, an object and a member."""
    return f"{grant.role} on the {format_target(grant.on)} to {redact(grant.member)}"
