"""Identities of an environment: Google's TPU service agent, and the account that the jobs run as.

The members of the grants are computed instead of read from Google's response: a preview has to show them, and the
response may have no e-mail (https://github.com/hashicorp/terraform-provider-google/issues/18649).
"""

from typing import NamedTuple

import pulumi
import pulumi_gcp as gcp
from pulumi import Resource

from tpucfg.catalog.target_facts import TARGET_FACTS, TPU_API
from tpucfg.stack import ml_service
from tpucfg.stack.resource_options import ResourceOptionsFactory
from tpucfg.stack.settings import StackSettings


class ServiceAgent(NamedTuple):
    """Google's own account for TPUs."""

    email: str
    identity: gcp.projects.ServiceIdentity
    """Every grant to the agent depends on it: the agent exists only after its identity was generated."""


class AgentNames(NamedTuple):
    """The service agent's e-mail, and the project in which its identity is generated."""

    email: str
    project: str
    is_derived: bool
    """True if the e-mail is derived from the project's number, so that Google's response can be compared with it."""


def agent_names(settings: StackSettings, provider: gcp.Provider) -> AgentNames:
    """Return the service agent's names, looked up where the spec and stack config do not determine them.

    Raises:
        pulumi.RunError: The look-up failed; the message names the config that replaces it.
    """
    if TARGET_FACTS[settings.target].has_tenant_project:
        # In the service's tenant project: https://cloud.google.com/ai-platform/training/docs/using-tpus#tpu-access.
        names = ml_service.names(settings)
        return AgentNames(names.tpu_account, names.project, is_derived=False)
    number = _project_number(settings, provider)
    email = f"service-{number}@cloud-tpu.iam.gserviceaccount.com"
    return AgentNames(email, settings.project, is_derived=True)


def create_agent(
    names: AgentNames, options: ResourceOptionsFactory, apis: list[Resource]
) -> ServiceAgent:
    """Declare the TPU service identity, in the project that the target's guide requires."""
    identity = gcp.projects.ServiceIdentity(
        "tpu-agent", project=names.project, service=TPU_API, opts=options.create(apis)
    )
    if names.is_derived:
        identity.email.apply(lambda actual: _warn_if_different(actual, names.email))
    return ServiceAgent(names.email, identity)


def create_account(
    settings: StackSettings, options: ResourceOptionsFactory, apis: list[Resource]
) -> gcp.serviceaccount.Account | None:
    """Declare the jobs' account; return None if the spec names an existing one for every job."""
    if not any(identity.is_created for identity in settings.identities):
        return None
    return gcp.serviceaccount.Account(
        "workload",
        project=settings.project,
        account_id=settings.account_id,
        display_name=f"TPU jobs of {settings.labels['tpucfg-project']} in {settings.environment}",
        description=_account_description(settings),
        opts=options.create(apis),
    )


def _account_description(settings: StackSettings) -> str:
    own = [identity for identity in settings.identities if identity.is_created]
    more = []
    if settings.reads:
        more.append("read the spec's other buckets")
    if any(pull.email == settings.account for pull in settings.image_pulls):
        more.append("pull the spec's images")
    if any(identity.secrets for identity in own):
        more.append("read the spec's secrets")
    if any(identity.deletes_slices for identity in own):
        more.append("delete TPU slices")
    if TARGET_FACTS[settings.target].writes_logs:
        more.append("write logs")
    verbs = ["use the environment's bucket", *more]
    return f"May {', '.join(verbs)} and nothing else. Made by tpucfg."


def _project_number(settings: StackSettings, provider: gcp.Provider) -> str:
    """Return the project's number from stack config, or look it up, in a preview too."""
    if settings.config.project_number:
        return settings.config.project_number
    # Not get_project_output: the SDK prints a traceback for a failure inside an output, even if it is caught.
    try:
        response = gcp.organizations.get_project(
            project_id=settings.project, opts=pulumi.InvokeOptions(provider=provider)
        )
    except Exception as error:  # noqa: BLE001 - the SDK has no exception type of its own for a failed look-up
        raise _lookup_error(settings, str(error)) from None
    return response.number


def _lookup_error(settings: StackSettings, cause: str) -> pulumi.RunError:
    project, stack = settings.project, settings.environment
    return pulumi.RunError(
        f"the project {project} cannot be looked up, and the name of its TPU service agent contains its number: "
        f"{cause.strip()}\n"
        f"help: check environments.{stack}.project in the spec, sign in with: gcloud auth application-default login, "
        f"and enable the look-up with: gcloud services enable cloudresourcemanager.googleapis.com --project {project}; "
        f"or set the number: pulumi config set projectNumber NUMBER --stack {stack}"
    )


def _warn_if_different(actual: str | None, expected: str) -> None:
    """Compare the agent's e-mail with Google's response: https://cloud.google.com/iam/docs/service-agents.

    Google may change the rule for the names of service agents.
    """
    if actual and actual != expected:
        pulumi.log.warn(
            f"Google's TPU service agent is {actual}, but the grants are for {expected}: jobs would be denied "
            "access to the bucket.\nhelp: add it to bucketMembers in the stack's config as "
            f"serviceAccount:{actual}, and report this as a bug in tpucfg"
        )
