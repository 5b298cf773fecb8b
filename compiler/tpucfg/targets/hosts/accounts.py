"""The service account of a job's hosts, and the scope of its tokens."""

from typing import Final

from tpucfg.plan.job import Job

SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
"""All of Google Cloud, as the account's roles limit its access:
https://cloud.google.com/compute/docs/access/service-accounts#associating_a_service_account_to_an_instance."""


def host_account(job: Job) -> str | None:
    """Return the account that the hosts act as: the one that the spec names, or the environment's own."""
    account: str | None = job.options.get("service_account") or job.account
    return account
