"""Options that all resources of an environment share: their parent, and the hook for errors of Google's APIs."""

from collections.abc import Sequence
from typing import Any

import pulumi
from pulumi import ResourceOptions

from tpucfg.stack import retry
from tpucfg.stack.api_error import ApiError
from tpucfg.stack.error_help import help_for
from tpucfg.stack.settings import StackSettings


class ResourceOptionsFactory:
    """Creates the options of each resource below one component."""

    def __init__(self, parent: pulumi.ComponentResource, settings: StackSettings) -> None:
        self._parent = parent
        self._settings = settings
        # The name is part of each resource's state: with another one, the engine would not find the hook of a
        # resource that an existing stack is about to delete.
        self._hook = pulumi.ErrorHook("on-refusal", self._on_error)

    def create(self, depends_on: Sequence[pulumi.Resource] = (), **options: Any) -> ResourceOptions:
        """Return the options of one resource; `options` are added to the shared ones."""
        hooks = pulumi.ResourceHookBinding(on_error=[self._hook])
        return ResourceOptions(
            parent=self._parent, depends_on=list(depends_on), hooks=hooks, **options
        )

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
