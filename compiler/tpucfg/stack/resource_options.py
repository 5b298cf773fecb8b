"""Options that all resources of an environment share: their parent, and the hook for errors of Google's APIs."""

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
from pulumi import ResourceOptions

from tpucfg.infra.grants import removal_command
from tpucfg.stack import retry
from tpucfg.stack.api_error import ApiError
from tpucfg.stack.error_help import help_for
from tpucfg.stack.settings import StackSettings


class ResourceOptionsFactory:
    """Creates the options of each resource below one component."""

    def __init__(self, parent: pulumi.ComponentResource, settings: StackSettings) -> None:
        self._parent = parent
        self._settings = settings
        self.left_behind: list[str] = []
        """The commands that take away the grants that stay."""
        # The name is part of each resource's state: with another one, the engine would not find the hook of a
        # resource that an existing stack is about to delete.
        self._hook = pulumi.ErrorHook("on-refusal", self._on_error)

    def create(
        self,
        depends_on: Sequence[pulumi.Resource] = (),
        *,
        former_name: str | None = None,
        **options: Any,
    ) -> ResourceOptions:
        """Return the options of one resource.

        Args:
            depends_on: The resources to create before it.
            former_name: Its logical name in the state of earlier versions of this program.
            options: Further options.
        """
        hooks = pulumi.ResourceHookBinding(on_error=[self._hook])
        return ResourceOptions(
            parent=self._parent,
            depends_on=list(depends_on),
            hooks=hooks,
            aliases=[pulumi.Alias(name=former_name)] if former_name else None,
            **options,
        )

    def create_shared(
        self,
        type_: str,
        inputs: Mapping[str, str],
        depends_on: Sequence[pulumi.Resource] = (),
        **options: Any,
    ) -> ResourceOptions:
        """Return the options of a grant that other stacks can declare too.

        IAM stores it once for all of them. So it stays when this stack no longer declares it, unless the stack's config
        releases its member.
        """
        is_released = inputs["member"] in self._settings.config.release
        if not is_released:
            self.left_behind.append(" ".join(removal_command(type_, inputs)))
        return self.create(depends_on, retain_on_delete=not is_released, **options)

    async def _on_error(self, failure: pulumi.ErrorHookArgs) -> bool:
        """Return True to try again: transient errors are retried, all others are explained."""
        # The newest error is the first; the list has one entry per attempt.
        message = failure.errors[0]
        if retry.is_transient(message) and await retry.wait_after(len(failure.errors)):
            return True
        inputs = failure.new_inputs or failure.old_inputs or {}
        error = ApiError(
            failure.type, failure.name, failure.urn, inputs, message, failure.failed_operation
        )
        explanation = help_for(error, self._settings)
        if explanation:
            pulumi.log.error(explanation)
        return False
