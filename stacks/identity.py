"""Who works in an environment: Google's TPU agent, and the account that the jobs run as.

Members are worked out here and not read from what Google answers: they have to be known at preview, and the answer may
come without an e-mail (https://github.com/hashicorp/terraform-provider-google/issues/18649).
"""

from typing import Final, NamedTuple

import pulumi
import pulumi_gcp as gcp
from pulumi import Output, Resource

import ml_service
from resource_options import Family
from settings import Settings

TPU_API: Final = "tpu.googleapis.com"


class Agent(NamedTuple):
    """Google's own account for TPUs."""

    email: Output[str]
    identity: gcp.projects.ServiceIdentity
    """What a grant to it waits for: the agent exists once its identity was generated."""


class AgentNames(NamedTuple):
    """What the agent will be called, and the project that its identity is generated in."""

    email: Output[str]
    project: str
    follows_rule: bool
    """Whether the e-mail follows from the project's number, and Google's answer can be compared with it."""


def agent_names(settings: Settings, provider: gcp.Provider) -> AgentNames:
    """Both, asked for where they have to be.

    Raises:
        pulumi.RunError: The look-up failed; the message says how to do without it.
    """
    if settings.target == "ai-platform":
        # https://cloud.google.com/ai-platform/training/docs/using-tpus#tpu-access: in the service's tenant project.
        names = ml_service.names(settings)
        return AgentNames(Output.from_input(names.tpu_account), names.project, follows_rule=False)
    email = Output.format("service-{0}@cloud-tpu.iam.gserviceaccount.com", _number(settings, provider))
    return AgentNames(email, settings.project, follows_rule=True)


def make_agent(names: AgentNames, family: Family, apis: list[Resource]) -> Agent:
    """The TPU service identity, in the project that the target's guide says."""
    identity = gcp.projects.ServiceIdentity(
        "tpu-agent", project=names.project, service=TPU_API, opts=family.options(apis)
    )
    if names.follows_rule:
        identity.email.apply(lambda answered: _compare(answered, names.email))
    return Agent(names.email, identity)


def _number(settings: Settings, provider: gcp.Provider) -> Output[str]:
    """The project's number: as stack config has it, or looked up, which a preview does too."""
    if settings.config.project_number:
        return Output.from_input(settings.config.project_number)
    # Not the form that returns an output: a failure inside one is printed with a traceback, whoever catches it.
    try:
        found = gcp.organizations.get_project(project_id=settings.project, opts=pulumi.InvokeOptions(provider=provider))
    except Exception as error:  # noqa: BLE001 - the SDK raises nothing more special
        raise _no_number(settings, str(error)) from None
    return Output.from_input(found.number)


def _no_number(settings: Settings, said: str) -> pulumi.RunError:
    project, stack = settings.project, settings.environment
    return pulumi.RunError(
        f"the project {project} cannot be looked up, and the name of its TPU agent holds its number: {said.strip()}\n"
        f"help: check environments.{stack}.project in the spec, sign in with: gcloud auth application-default login, "
        f"and enable the look-up with: gcloud services enable cloudresourcemanager.googleapis.com --project {project}; "
        f"or say the number: pulumi config set projectNumber NUMBER --stack {stack}"
    )


def _compare(answered: str | None, email: Output[str]) -> None:
    """Google keeps the right to name its agents otherwise: https://cloud.google.com/iam/docs/service-agents."""

    def warn(expected: str) -> None:
        if answered and answered != expected:
            pulumi.log.warn(
                f"Google's TPU agent is called {answered}, and the grants are for {expected}: jobs would find the "
                "bucket closed.\nhelp: add it to bucketMembers in the stack's config as "
                f"serviceAccount:{answered}, and report it as a mistake of tpucfg"
            )

    email.apply(warn)


def make_account(settings: Settings, family: Family, apis: list[Resource]) -> gcp.serviceaccount.Account | None:
    """The account of the jobs; None where the spec names one that exists already."""
    if settings.account_id is None:
        return None
    return gcp.serviceaccount.Account(
        "workload",
        project=settings.project,
        account_id=settings.account_id,
        display_name=f"TPU jobs of {settings.labels['tpucfg-project']} in {settings.environment}",
        description="May use the environment's bucket and nothing else. Made by tpucfg.",
        opts=family.options(apis),
    )
