"""What all resources of an environment share: their parent, and what happens when Google refuses one of them."""

from collections.abc import Sequence
from typing import Any

import pulumi
from pulumi import ResourceOptions

import retry
from api_error import Refusal
from error_help import help_for
from settings import Settings


class Family:
    """Makes the options of each resource below one component."""

    def __init__(self, parent: pulumi.ComponentResource, settings: Settings) -> None:
        self._parent = parent
        self._settings = settings
        self._hook = pulumi.ErrorHook("on-refusal", self._on_refusal)

    def options(self, depends_on: Sequence[pulumi.Resource] = (), **more: Any) -> ResourceOptions:
        """The options of one resource, with its own besides."""
        hooks = pulumi.ResourceHookBinding(on_error=[self._hook])
        return ResourceOptions(parent=self._parent, depends_on=list(depends_on), hooks=hooks, **more)

    async def _on_refusal(self, refusal: pulumi.ErrorHookArgs) -> bool:
        """Whether to try again: what passes by itself is waited for, and everything else is explained."""
        error = refusal.errors[0]
        if retry.passes(error) and await retry.waited(len(refusal.errors)):
            return True
        inputs = refusal.new_inputs or refusal.old_inputs or {}
        refused = Refusal(refusal.type, refusal.name, refusal.urn, inputs, error, refusal.failed_operation)
        help_ = help_for(refused, self._settings)
        if help_:
            pulumi.log.error(help_)
        return False
