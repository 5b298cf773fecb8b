"""An environment and a rung to a Job: names, folders, and the command line with its placeholders filled in."""

from collections.abc import Iterator, Mapping

from tpucfg.plan.model import Job, Rung, Selection
from tpucfg.plan.names import account_email, job_name
from tpucfg.plan.rung import figures, flag_of, program_args
from tpucfg.plan.where import zone_of
from tpucfg.plan.whole import bucket_of
from tpucfg.spec.model import Environment, Project
from tpucfg.spec.placeholders import fill


def make_job(project: Project, environment: Environment, rung: Rung, selection: Selection) -> Job:
    """The job of a rung in an environment, for the selected target and run."""
    target, run, trainer = selection.target or environment.target, selection.run, project.trainer
    bucket = bucket_of(project, environment)
    job_dir = "/".join(part for part in (f"gs://{bucket}/jobs", project.name, rung.size, run) if part)
    values = _values(project, environment, rung) | {"bucket": f"gs://{bucket}", "job_dir": job_dir}
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
        args=tuple(_args(project, rung, values)),
        env=tuple((key, fill(text, values)) for key, text in trainer.env),
        options=project.targets.get(target, {}),
    )


def _values(project: Project, environment: Environment, rung: Rung) -> dict[str, str]:
    """What the placeholders stand for, but for those that hold the bucket."""
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
    return fill(text, values) if text else None


def _args(project: Project, rung: Rung, values: Mapping[str, str]) -> Iterator[str]:
    """The program's own flags, then the rung's figures."""
    for arg in program_args(project, rung.size):
        for value in arg.values:
            yield f"--{arg.key}" if value is None else f"--{arg.key}={fill(value, values)}"
    for key, text in figures(rung):
        if (flag := flag_of(project.training, key)) is not None:
            yield f"--{flag}={text}"
