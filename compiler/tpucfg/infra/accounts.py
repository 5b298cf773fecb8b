"""Whom the jobs of an environment run as: the account that its stack makes, or the one that the spec names."""

from tpucfg.plan.names import account_email, account_id
from tpucfg.spec.model import Environment, Project


def named_account(project: Project, environment: Environment) -> str | None:
    """The account that the spec names; on gke that key names a Kubernetes account, which acts as the stack's."""
    if environment.target == "gke":
        return None
    named: str | None = project.targets.get(environment.target, {}).get("service_account")
    return named


def workload_account(project: Project, environment: Environment) -> str:
    """The e-mail of the account that the jobs run as."""
    made = account_email(project=environment.project, name=project.name, environment=environment.name)
    return named_account(project, environment) or made


def kubernetes_account(project: Project, environment: Environment) -> str | None:
    """On gke, the Kubernetes service account of the pods, as `namespace/name`."""
    if environment.target != "gke":
        return None
    options = project.targets.get("gke", {})
    name = options.get("service_account") or account_id(name=project.name, environment=environment.name)
    return f"{options.get('namespace', 'default')}/{name}"
