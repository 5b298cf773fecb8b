"""Build the job of an environment and a rung: names, folders and the program's command line."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tpucfg.catalog import Slice
from tpucfg.plan.naming import account_email, bucket_of, job_name, zone_of
from tpucfg.plan.rung import Rung, flag_name, program_args, rung_figures
from tpucfg.plan.selection import Selection
from tpucfg.spec.placeholders import fill_placeholders
from tpucfg.spec.project import Environment, Project


class Job(NamedTuple):
    """One environment and one rung, with every value that a target's request body needs."""

    project: str
    """The project's name in the spec."""
    environment: Environment
    rung: Rung
    target: str
    run: str | None
    name: str
    """`<name>-<env>-<size>`, with `-<run>` if the job has a run id."""
    bucket: str
    """The bucket's bare name; the placeholder `${bucket}` adds `gs://`."""
    job_dir: str
    zone: str | None
    """The zone of the slice in the environment's region; None if no list names one."""
    account: str
    """E-mail of the service account that the environment's stack creates for its jobs."""
    image: str | None
    worker_image: str | None
    package: str | None
    module: str | None
    runtime: str | None
    python: str | None
    args: tuple[str, ...]
    """The program's command line: the flags of `args`, then the figures of the rung."""
    env: tuple[tuple[str, str], ...]
    options: Mapping[str, Any]
    """The spec's settings for this target."""

    @property
    def slice(self) -> Slice:
        """The slice that the job runs on."""
        return self.rung.slice

    @property
    def size(self) -> str:
        """The accelerator type, such as `v3-32`."""
        return self.rung.slice.size


def make_job(project: Project, environment: Environment, rung: Rung, selection: Selection) -> Job:
    """Build the job of a rung in an environment, for the selected target and run."""
    target, run, trainer = selection.target or environment.target, selection.run, project.trainer
    bucket = bucket_of(project, environment)
    job_dir = "/".join(part for part in (f"gs://{bucket}/jobs", project.name, rung.size, run) if part)
    values = _placeholder_values(project, environment, rung) | {"bucket": f"gs://{bucket}", "job_dir": job_dir}
    return Job(
        project=project.name,
        environment=environment,
        rung=rung,
        target=target,
        run=run,
        name=job_name(name=project.name, environment=environment.name, size=rung.size, run=run),
        bucket=bucket,
        job_dir=job_dir,
        zone=zone_of(environment, rung.slice),
        account=account_email(project=environment.project, name=project.name, environment=environment.name),
        image=_filled(trainer.image, values),
        worker_image=_filled(trainer.worker_image, values),
        package=_filled(trainer.package, values),
        module=trainer.module,
        runtime=trainer.runtime,
        python=trainer.python,
        args=tuple(_command_line(project, rung, values)),
        env=tuple((key, fill_placeholders(text, values)) for key, text in trainer.env),
        options=project.targets.get(target, {}),
    )


def _placeholder_values(project: Project, environment: Environment, rung: Rung) -> dict[str, str]:
    """Return the values of all placeholders but `${bucket}` and `${job_dir}`, which depend on the bucket's name."""
    return {
        "project": environment.project,
        "name": project.name,
        "env": environment.name,
        "region": environment.region,
        "size": rung.size,
        "cores": str(rung.slice.cores),
        "hosts": str(rung.slice.hosts),
    }


def _filled(text: str | None, values: Mapping[str, str]) -> str | None:
    return fill_placeholders(text, values) if text else None


def _command_line(project: Project, rung: Rung, values: Mapping[str, str]) -> Iterator[str]:
    """Yield the flags of `args`, then those of the rung's figures."""
    for arg in program_args(project, rung.size):
        for value in arg.values:
            yield f"--{arg.key}" if value is None else f"--{arg.key}={fill_placeholders(value, values)}"
    for key, text in rung_figures(rung):
        if (flag := flag_name(project.training, key)) is not None:
            yield f"--{flag}={text}"
