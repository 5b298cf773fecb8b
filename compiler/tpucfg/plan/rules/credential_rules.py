"""Errors about credentials in a spec, with the edit that each environment's service takes."""

from collections.abc import Iterator
from typing import Final

from tpucfg.catalog import Catalog
from tpucfg.findings import Finding
from tpucfg.plan.naming import workload_account
from tpucfg.plan.secret_lines import WITHOUT_SECRETS, secret_lines
from tpucfg.spec.credentials import Credential, credential_finding, credentials_in
from tpucfg.spec.project import Environment, Project
from tpucfg.spec.settings import Secret
from tpucfg.text_format import dotted, listed

_DECIDING: Final = frozenset(("name", "target", "environments", "sizes"))
"""The sections that decide the lines: those about a stand-in of one would be wrong."""


def credential_findings(project: Project, _: Catalog) -> Iterator[Finding]:
    """Yield an error for each credential in the variables and flags of every layer."""
    for credential in credentials_in(project.document):
        environments = project.users_of(credential.layer)
        without = [environment for environment in environments if environment.target in WITHOUT_SECRETS]
        if not without or project.broken & _DECIDING:
            yield credential_finding(project.document, credential, credential.help)
            continue
        others = [environment for environment in environments if environment not in without]
        lines = [line for environment in without for line in _lines(project, environment, credential)]
        yield credential_finding(project.document, credential, _help(credential, without, others), lines)


def _help(credential: Credential, without: list[Environment], others: list[Environment]) -> str:
    """Return the edit for environments without variables from Secret Manager, and for others of the same layer."""
    path, store = dotted(credential.path), "store the value in Secret Manager"
    if not others:
        return f"{store}, delete {path}, add these lines to the trainer, and run the commands once"
    below = credential.layer if credential.layer[:1] == ("overrides",) else ()
    sections = [dotted((*environment.path, *below, "trainer", "secrets")) for environment in others]
    names = listed([environment.name for environment in without], last=" and ")
    moved = f"replace {path} by {credential.reference} under {listed(sections, last=' and ')}"
    return f"{store}, {moved}, add these lines to the trainer for {names}, and run the commands once"


def _lines(project: Project, environment: Environment, credential: Credential) -> list[str]:
    secret = Secret(credential.variable, None, credential.secret, "1")
    return secret_lines(environment, workload_account(project, environment), (secret,))
