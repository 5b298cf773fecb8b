"""A refusal of Google as a value: what was asked for, what follows, and what to type after it is put right."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from settings import Settings


class Refusal(NamedTuple):
    """A resource that Google refused to make, change or delete, and why."""

    type: str
    name: str
    """The logical name."""
    urn: str
    inputs: Mapping[str, Any]
    error: str
    """In the provider's words."""
    operation: str = "create"
    """`create`, `update` or `delete`."""

    @property
    def consequence(self) -> str:
        """What there is now: the end of a sentence about the refusal."""
        after = {"update": "stays as it was", "delete": "is still there"}
        return f"{self.name} {after.get(self.operation, 'was not made')}"

    def again(self, settings: Settings) -> str:
        """The command that goes on from here; `up` deletes as well as `destroy`."""
        return "the same command" if self.operation == "delete" else f"pulumi up --stack {settings.environment}"

    def taken_in(self, id_: str, settings: Settings) -> str:
        """The command that makes what exists the stack's own: https://www.pulumi.com/docs/iac/cli/commands/pulumi_import."""
        stack, start = settings.environment, "::".join(self.urn.split("::")[:2])
        return (
            f"pulumi import {self.type} {self.name} {id_} --stack {stack} --protect=false "
            f"--generate-code=false --parent environment={start}::tpucfg:index:Environment::{stack} "
            f"--provider gcp={start}::pulumi:providers:gcp::gcp"
        )
