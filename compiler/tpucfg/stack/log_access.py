"""Access to Cloud Logging, to which the hosts of Compute Engine send the program's output as the jobs' account."""

from collections.abc import Sequence
from typing import Final

import pulumi_gcp as gcp
from pulumi import Resource

from tpucfg.catalog.target_facts import TARGET_FACTS
from tpucfg.stack.access import account_labels
from tpucfg.stack.resource_options import ResourceOptionsFactory
from tpucfg.stack.settings import StackSettings

LOG_WRITER: Final = "roles/logging.logWriter"
"""Writes log entries, and reads none: https://cloud.google.com/logging/docs/access-control."""


def grant_log_writing(
    settings: StackSettings, options: ResourceOptionsFactory, depends_on: Sequence[Resource]
) -> None:
    """Declare that each account may write log entries: without it, docker would not start the program."""
    if not TARGET_FACTS[settings.target].writes_logs:
        return
    for email, label in account_labels(settings).items():
        gcp.projects.IAMMember(
            f"{label}-writes-logs",
            project=settings.project,
            role=LOG_WRITER,
            member=f"serviceAccount:{email}",
            # Not protected: revoking access has to be possible in one step, even in a protected environment.
            opts=options.create(depends_on, protect=False),
        )
