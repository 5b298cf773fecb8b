"""The role with which jobs delete their own slice at the end of a run, where the service does not do that itself."""

from collections.abc import Sequence

import pulumi_gcp as gcp
from pulumi import Resource

from tpucfg.stack.access import account_labels
from tpucfg.stack.resource_options import ResourceOptionsFactory
from tpucfg.stack.settings import StackSettings


def grant_deletion(
    settings: StackSettings, options: ResourceOptionsFactory, depends_on: Sequence[Resource]
) -> None:
    """Declare the role and its grants, for the accounts whose jobs delete their slices.

    The grants are on the project, as a slice has no policy before it exists. On Compute Engine, a condition on the name
    leaves the environment's own instances; Cloud TPU and managed instance groups have no condition on names, so that a
    job could delete any slice of the project there: https://cloud.google.com/iam/docs/conditions-resource-attributes.
    """
    accounts = dict.fromkeys(
        identity.email for identity in settings.identities if identity.deletes_slices
    )
    if not accounts:
        return
    role, depends_on = settings.config.deletion_role, list(depends_on)
    if not role:
        depends_on.append(_create_role(settings, options, depends_on))
        # Computed instead of read from the role, so that a preview shows it in the grants.
        role = f"projects/{settings.project}/roles/{settings.deletion_role_id}"
    labels = account_labels(settings)
    for email in accounts:
        gcp.projects.IAMMember(
            f"{labels[email]}-deletes-slices",
            project=settings.project,
            role=role,
            member=f"serviceAccount:{email}",
            condition=_condition(settings),
            # Not protected: revoking access has to be possible in one step, even in a protected environment.
            opts=options.create(depends_on, protect=False),
        )


def _condition(settings: StackSettings) -> gcp.projects.IAMMemberConditionArgs | None:
    if settings.deletion_condition is None:
        return None
    return gcp.projects.IAMMemberConditionArgs(
        title="Own slices of one host",
        description="Of the instances, only those that this environment's jobs run on. Made by tpucfg.",
        expression=settings.deletion_condition,
    )


def _create_role(
    settings: StackSettings, options: ResourceOptionsFactory, depends_on: Sequence[Resource]
) -> gcp.projects.IAMCustomRole:
    """Declare the custom role; a role of this id that was deleted in the last seven days is undeleted by the provider.

    https://github.com/hashicorp/terraform-provider-google/blob/main/google/services/resourcemanager/resource_google_project_iam_custom_role.go
    """
    name = settings.labels["tpucfg-project"]
    return gcp.projects.IAMCustomRole(
        "slice-deletion",
        project=settings.project,
        role_id=settings.deletion_role_id,
        title=f"Delete TPU slices: {name} in {settings.environment}",
        description="Jobs delete their own slice at the end of a run. Made by tpucfg.",
        permissions=list(settings.deletion_permissions),
        stage="GA",
        opts=options.create(depends_on, protect=False),
    )
