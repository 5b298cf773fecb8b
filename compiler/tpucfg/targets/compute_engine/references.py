"""The references of a group to the other objects of its slice: the paths of a policy and of templates.

Source: https://cloud.google.com/compute/docs/reference/rest/v1/instanceGroupManagers (partial and full URLs).
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from tpucfg.targets.compute_engine.paths import COLLECTIONS, GROUP, POLICY, TEMPLATE
from tpucfg.yamldoc.document import KeyPath

POLICY_PATH: Final = (GROUP, "resourcePolicies", "workloadPolicy")
_OBJECT: Final = re.compile(
    r"(?:(?:.*/)?projects/(?P<project>[^/]+)/)?(?:regions/(?P<region>[^/]+)|global)/(?P<collection>[^/]+)/(?P<name>[^/]+)"
)
"""The path of an object."""


class Reference(NamedTuple):
    """The path of another object in a group."""

    path: KeyPath
    """The path of the field in the request body."""
    key: str
    """The object that it names."""
    value: str

    @property
    def name(self) -> str:
        """The name of the object; empty if the value is not the path of such an object."""
        match = _OBJECT.fullmatch(self.value)
        return match["name"] if match and match["collection"] == COLLECTIONS[self.key] else ""

    @property
    def location(self) -> tuple[str, str]:
        """The project and the region; empty where the path has none."""
        match = _OBJECT.fullmatch(self.value)
        return (match["project"] or "", match["region"] or "") if match else ("", "")

    @property
    def place(self) -> str:
        """The location as a text."""
        return "/".join(filter(None, self.location))

    def is_elsewhere(self, other: "Reference") -> bool:
        """Return True for objects of two regions or projects; a global object, or a missing project, fits any."""
        pairs = [*zip(self.location, other.location, strict=True)]
        return all(pairs[1]) and any(mine and theirs and mine != theirs for mine, theirs in pairs)


def references_of(group: Mapping[str, Any]) -> Iterator[Reference]:
    """Yield the references of a group to its policy and to the templates of its versions."""
    policy = group.get("resourcePolicies", {}).get("workloadPolicy")
    if policy is not None:
        yield Reference(POLICY_PATH, POLICY, policy)
    for index, version in enumerate(group.get("versions", ())):
        if "instanceTemplate" in version:
            yield Reference((GROUP, "versions", index, "instanceTemplate"), TEMPLATE, version["instanceTemplate"])
