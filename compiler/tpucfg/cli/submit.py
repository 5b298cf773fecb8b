"""`tpucfg submit`."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tpucfg.catalog import Catalog
from tpucfg.cli.exit_codes import ERRORS, USAGE, CommandExit
from tpucfg.cli.load_spec import load_compiled, print_findings, project_of
from tpucfg.cli.options import SPEC, EnvOption, RunOption, SizeOption, SpecOption, TargetOption, selection
from tpucfg.findings import Finding
from tpucfg.plan import Job
from tpucfg.render.pipeline import CompiledSpec, Config, render_configs
from tpucfg.targets import Command, Submission, SubmissionError, target_named
from tpucfg.targets.interface import AUTHORIZATION, TOKEN
from tpucfg.templating import comment

if TYPE_CHECKING:
    from tpucfg.results.ladder_status import LadderStatus


def submit(
    spec: SpecOption = SPEC,
    env: EnvOption = None,
    size: SizeOption = None,
    target: TargetOption = None,
    run: RunOption = None,
    execute: Annotated[bool, typer.Option("--execute", help="Run the command that starts the job.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Climb although the rung below has not passed.")] = False,
) -> None:
    """Print the command that starts the job, ready to paste, and those that watch and delete it.

    With `gate:` in the spec, a rung is refused as long as the one below has not passed: see `tpucfg status`.

    Example: tpucfg submit --env prod --size v3-32 --run a1
    """
    catalog = Catalog()
    compiled = load_compiled(spec, catalog, selection(env, size, target, run))
    submissions = _submissions(compiled, spec)
    if execute and len(submissions) != 1:
        raise CommandExit(
            USAGE, f"{len(submissions)} jobs are selected, and --execute starts one", "add --env and --size"
        )
    refused = () if force else _refused(compiled, catalog, spec)
    allowed = [it for it in submissions if it[0].name not in refused]
    if execute and allowed:
        _execute(allowed[0][1], next(render_configs(compiled)), _render_command(*allowed[0], spec, target))
        return
    for number, (job, submission) in enumerate(allowed):
        if number:
            print()
        _print(job, submission, spec, target)
    if refused:
        raise CommandExit(ERRORS)


def _refused(compiled: CompiledSpec, catalog: Catalog, spec: Path) -> Collection[str]:
    """The names of the jobs that may not be started yet; why not is said on stderr, for all at once."""
    project = project_of(compiled)
    asked = [job for job in compiled.plan.jobs if job.size != job.environment.sizes[0]]
    if project.gate is None or not asked:
        return ()
    from tpucfg.results.gate import gate_refusals
    from tpucfg.results.ladder_status import ladder_statuses

    made = ladder_statuses(project, catalog, [job.environment for job in asked], spec.parent)
    refused = gate_refusals(project, made, asked, spec)
    found = [finding for one in made.values() for finding in one.results.findings]
    texts = {one.results.file: one.results.text for one in made.values()}
    print_findings([*found, *refused.values()], {str(spec): project.document.text} | texts)
    for job in asked:
        if job.name not in refused:
            _say_changed(made[job.environment.name], job.size)
    return refused


def _say_changed(survey: "LadderStatus", size: str) -> None:
    """A record counts whatever has changed since, so whoever climbs by it hears of the change before it is paid for."""
    from tpucfg.results.next_steps import outdated_below_note

    for changed in outdated_below_note(survey, size):
        print(f"note: {changed}; see: tpucfg status --env {survey.environment.name}", file=sys.stderr)


def _submissions(compiled: CompiledSpec, spec: Path) -> list[tuple[Job, Submission]]:
    """All of them, or an end that names everything that is missing."""
    found: list[Finding] = []
    submissions = []
    document = project_of(compiled).document
    for job, _ in compiled.request_bodies:
        try:
            submissions.append((job, target_named(job.target).submission(job)))
        except SubmissionError as error:
            found.append(error.problem.finding_in(document))
    if found:
        print_findings(list(dict.fromkeys(found)), {str(spec): document.text})
        raise CommandExit(ERRORS)
    return submissions


def _print(job: Job, submission: Submission, spec: Path, target: str | None) -> None:
    """The first line can be pasted, or piped into bash; the others are comments, as nobody wants them run at once."""
    print(f"# {job.name}: {job.size} on {job.target}")
    print(submission.start.bash(_render_command(job, submission, spec, target)))
    print(comment(f"# watch:  {submission.watch.bash()}"))
    if submission.log:
        print(comment(f"# log:    {submission.log.bash()}"))
    print(comment(f"# delete: {submission.delete.bash()}"))
    for note in submission.notes:
        print(comment(f"# {note}"))


def _render_command(job: Job, submission: Submission, spec: Path, target: str | None) -> list[str]:
    """The command that prints the job's config."""
    options = {
        "--spec": None if spec == SPEC else str(spec),
        "--env": job.environment.name,
        "--size": job.size,
        "--target": target,
        "--run": job.run,
        "--format": "json" if submission.start.config_format == "json" else None,
    }
    return ["tpucfg", "render", *(word for key, value in options.items() if value for word in (key, value))]


def _execute(submission: Submission, config: Config, render: list[str]) -> None:
    """Runs the start command without a shell, with the config on its standard input: what `render` prints."""
    command = submission.start
    program = command.argv[0]
    if shutil.which(program) is None:
        hint = f"install {program}, or print the command without --execute and run it elsewhere"
        raise CommandExit(ERRORS, f"{program} is not on the PATH, so nothing was started", hint)
    text = config.text if command.config_format == "yaml" else json.dumps(config.message)
    print(f"running: {command.bash(render)}", file=sys.stderr)
    try:
        status = _run(command, text)
    except OSError as error:
        message = f"{program} cannot be started, so nothing was: {error.strerror or error}"
        raise CommandExit(ERRORS, message, f"install {program} anew, or give the PATH another one first") from None
    if status:
        raise CommandExit(ERRORS, f"{program} ended with status {status}; what it printed above says why")
    print(f"watch it with:  {submission.watch.bash()}", file=sys.stderr)
    if submission.log:
        print(f"read its log with: {submission.log.bash()}", file=sys.stderr)
    print(f"delete it with: {submission.delete.bash()}", file=sys.stderr)


def _run(command: Command, text: str) -> int:
    sys.stdout.flush()
    if not command.token:
        return subprocess.run(command.argv, input=text.encode(), check=False).returncode
    # Through a pipe, because whatever stands in an argument list can be read by every process of the machine.
    read_end, write_end = os.pipe()
    os.write(write_end, (AUTHORIZATION % _token()).encode())
    os.close(write_end)
    argv = command.with_token(f"/dev/fd/{read_end}")
    return subprocess.run(argv, input=text.encode(), check=False, pass_fds=(read_end,)).returncode


def _token() -> str:
    try:
        return subprocess.run(TOKEN, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", None) or str(error)
        raise CommandExit(
            ERRORS, f"no access token, so nothing was started: {said.strip()}", "run: gcloud auth login"
        ) from None
