"""An error of Google's APIs as a value: the resource, the consequence, and the commands for after the fix."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from tpucfg.stack.settings import StackSettings


class ApiError(NamedTuple):
    """A resource that Google refused to create, change or delete, and the reason."""

    type: str
    name: str
    """The logical name."""
    urn: str
    inputs: Mapping[str, Any]
    message: str
    """The provider's text."""
    operation: str = "create"
    """`create`, `update` or `delete`."""

    @property
    def consequence(self) -> str:
        """The state of the resource after the error, as the end of a sentence."""
        states = {"update": "is unchanged", "delete": "still exists"}
        return f"{self.name} {states.get(self.operation, 'was not created')}"

    def retry_command(self, settings: StackSettings) -> str:
        """Return the command to run after the fix: for a deletion, either `up` or `destroy`."""
        return (
            "the same command"
            if self.operation == "delete"
            else f"pulumi up --stack {settings.environment}"
        )

    def import_command(self, id_: str, settings: StackSettings) -> str:
        """Return the command that imports the existing resource into the stack.

        Source: https://www.pulumi.com/docs/iac/cli/commands/pulumi_import
        """
        stack, urn_prefix = settings.environment, "::".join(self.urn.split("::")[:2])
        # --protect=false: `pulumi import` protects by default, but here protection is inherited from the component.
        # --parent and --provider: with others than the program's, the next update would replace the resource.
        return (
            f"pulumi import {self.type} {self.name} {id_} --stack {stack} --protect=false "
            f"--generate-code=false --parent environment={urn_prefix}::tpucfg:index:Environment::{stack} "
            f"--provider gcp={urn_prefix}::pulumi:providers:gcp::gcp"
        )
