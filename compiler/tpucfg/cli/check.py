"""The command `tpucfg check`."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tpucfg.catalog import Catalog
from tpucfg.cli import options
from tpucfg.cli.exit_codes import ERRORS, CommandExit
from tpucfg.cli.load_spec import has_color, load_fits, load_project
from tpucfg.cli.options import SPEC, format_option, option, selection
from tpucfg.findings import FORMATS, Finding, collect, errors, format_counts
from tpucfg.named_tuple import NamedTuple
from tpucfg.plan import Selection, select_sizes
from tpucfg.plan.rules.project_rules import BucketUse, bucket_uses, shared_bucket_findings
from tpucfg.plan.rules.stack_rules import StackUse, shared_stack_findings, stack_uses
from tpucfg.refusal import UsageError
from tpucfg.targets import TARGETS
from tpucfg.text_format import format_count, listed, printable

if TYPE_CHECKING:
    from tpucfg.render.pipeline import CompiledSpec


class _CheckReport(NamedTuple):
    """The result of a check."""

    findings: Sequence[Finding]
    sources: Mapping[str, str]
    """The texts that the findings quote, by file name."""
    subject: str
    """The checked specs, configs or stack, for the summary."""


def check(
    spec: options.SpecsOption = None,
    env: options.EnvOption = None,
    size: options.SizeOption = None,
    target: options.TargetOption = None,
    changes: options.SetOption = None,
    probe: options.ProbeOption = False,
    config: Annotated[
        list[Path] | None,
        option(
            "--config PATH", "A config to check, or a folder of them; repeatable. Needs --target."
        ),
    ] = None,
    stack_outputs: Annotated[
        Path | None,
        option(
            "--stack-outputs FILE",
            "Compare `pulumi stack output --json` with the environment --env.",
        ),
    ] = None,
    format: Annotated[str, format_option("|".join(FORMATS))] = "text",
) -> None:
    """Report every finding about the spec, the configs it compiles to, and the stack files and results next to it.

    With --config, it checks configs of other tools, without a spec: all YAML and JSON files of a folder.

    Example: tpucfg check --env prod --format github
    """
    if config:
        unread = {
            "--spec": spec,
            "--env": env,
            "--size": size,
            "--probe": probe,
            "--stack-outputs": stack_outputs,
        }
        _refuse("--config checks files without a spec", unread)
        report = _check_configs(config, target)
    elif stack_outputs:
        _refuse(
            "--stack-outputs compares a stack with its environment",
            {"--size": size, "--target": target, "--probe": probe},
        )
        report = _check_stack_outputs(stack_outputs, spec or [SPEC], env)
    else:
        report = _check_specs(
            spec or [SPEC], selection(env, size, target, probe=probe, changes=changes)
        )
    if format != "text":
        from tpucfg.findings.formats import REPORTS

        sys.stdout.write(REPORTS[format](report.findings))
    else:
        from tpucfg.findings.text import report as text_of

        sys.stdout.write(text_of(report.findings, report.sources, colour=has_color(sys.stdout)))
        print(f"{printable(report.subject)}: {format_counts(report.findings)}")
    if errors(report.findings):
        raise CommandExit(ERRORS)


def _refuse(reason: str, unread: Mapping[str, object]) -> None:
    """Raise UsageError for options that are given, and that the check would not read."""
    if given := [option for option, value in unread.items() if value]:
        message = f"{reason}, so it takes no {listed(given, last=' and no ')}"
        raise UsageError(message, f"leave out {listed(given, last=' and ')}")


def _check_specs(paths: Sequence[Path], chosen: Selection) -> _CheckReport:
    from tpucfg.infra import stack_files
    from tpucfg.render.pipeline import compile_project, compile_spec_file

    catalog, env = Catalog(), list(chosen.environments)
    findings: list[Finding] = []
    sources: dict[str, str] = {}
    configs = 0
    uses: list[BucketUse] = []
    stacks: list[StackUse] = []
    for path in paths:
        compiled = compile_spec_file(path, catalog, chosen)
        fit_findings, fit_texts = _check_fits(path, compiled, catalog)
        of_spec = [*compiled.findings, *_new(fit_findings, findings)]
        if compiled.project and compiled.project.probe and not chosen.probe and not errors(of_spec):
            probes = compile_project(compiled.project, catalog, chosen._replace(probe=True))
            of_spec += _new(probes.findings, of_spec)
        findings += collect(of_spec)
        sources |= {str(path): compiled.source, **fit_texts}
        configs += len(compiled.request_bodies)
        uses += bucket_uses(compiled.project) if compiled.project else ()
        stacks += stack_uses(compiled.project, compiled.jobs) if compiled.project else ()
        # With --size, --target or --probe, only jobs are checked, and not the files next to the spec.
        if not (chosen.sizes or chosen.target or chosen.probe):
            stack_findings, stack_texts = stack_files.stack_file_findings(
                path, compiled.project, env
            )
            findings += stack_findings
            sources |= stack_texts
            if compiled.project and os.path.lexists(
                path.parent / "results"
            ):  # most projects have no records
                from tpucfg.results.records import record_findings

                of_records, record_texts = record_findings(path.parent, compiled.project, env)
                findings += _new(of_records, findings)
                sources |= record_texts
    findings += shared_bucket_findings(uses)
    findings += shared_stack_findings(stacks)
    return _CheckReport(
        findings, sources, f"{listed([*map(str, paths)])}, {format_count(configs, 'config')}"
    )


def _new(findings: Sequence[Finding], earlier: Sequence[Finding]) -> list[Finding]:
    """Return the findings about other places than earlier ones: two specs may share a folder, and with it results."""
    known = {(finding.id, finding.location) for finding in earlier}
    return [finding for finding in findings if (finding.id, finding.location) not in known]


def _check_fits(
    spec: Path, compiled: "CompiledSpec", catalog: Catalog
) -> tuple[Sequence[Finding], Mapping[str, str]]:
    """Return the findings about the steps and the lengths of the compiled jobs, and the texts that they quote."""
    jobs = compiled.jobs
    known = load_fits(compiled.project, jobs, spec) if compiled.project else None
    # Without a training step, the length of a run is known from its records.
    has_records = (
        any(job.settings.trainer.max_run_duration for job in jobs)
        and (spec.parent / "results").exists()
    )
    if compiled.project is None or not (known or has_records):
        return (), {}
    from tpucfg.results.fit_notes import (
        deleted_checkpoints,
        records_beyond_bound,
        rungs_beyond_duration,
    )
    from tpucfg.results.ladder_status import ladder_statuses

    findings: list[Finding] = []
    texts: dict[str, str] = {}
    if known:
        from tpucfg.fit.fit_findings import known_fit_findings

        findings += known_fit_findings(compiled.project, known)
        findings += deleted_checkpoints(compiled.project, jobs, known)
    statuses = ladder_statuses(
        compiled.project, catalog, [job.environment for job in jobs], spec.parent
    )
    for name, status in statuses.items():
        sizes = {job.size for job in jobs if job.environment.name == name}
        findings += records_beyond_bound(status, sizes)
        findings += rungs_beyond_duration(status, sizes)
        texts |= status.sources
    return findings, texts


def _check_configs(paths: Sequence[Path], target: str | None) -> _CheckReport:
    from tpucfg.yamldoc.reader import files_of

    files, folder_findings = files_of(paths)
    if target is None:
        raise _no_target(files)
    catalog, findings, sources = Catalog(), [*folder_findings], dict[str, str]()
    for file in files:
        file_findings, text = _check_config(file, target, catalog)
        # Thousands of configs may be checked, so only the texts that findings quote are kept.
        if file_findings:
            findings += file_findings
            sources[file] = text
    count = "" if len(files) == len(paths) else f", {format_count(len(files), 'config')}"
    return _CheckReport(findings, sources, f"{listed([*map(str, paths)])}{count}")


def _no_target(files: Sequence[str]) -> UsageError:
    """Return the refusal to check configs without a target, which names the target if the first file shows it."""
    from tpucfg.targets.objects import target_of_kinds
    from tpucfg.yamldoc.reader import read_file

    for file in files[:1]:
        if target := target_of_kinds(read_file(Path(file), several=True)):
            message = f"--config needs --target, the service of all of the files; the kind in {file} is one of {target}"
            return UsageError(message, f"add --target {target}")
    hint = f"add --target with one of: {', '.join(TARGETS)}"
    return UsageError("--config needs --target, as a config.yaml does not name its service", hint)


def _check_config(file: str, target: str, catalog: Catalog) -> tuple[Sequence[Finding], str]:
    """Return the findings about a config, and its text."""
    from tpucfg.render.pipeline import config_findings
    from tpucfg.targets import target_named
    from tpucfg.targets.objects import companion_schemas, document_keys, other_target
    from tpucfg.yamldoc.reader import read_file

    several = bool(companion_schemas(target) or document_keys(target_named(target)))
    document = read_file(Path(file), several=several)
    findings = config_findings(document, target, catalog)
    # A config of another target may have several documents, although those of this one have not.
    if findings and (
        wrong := other_target(document if several else read_file(Path(file), several=True), target)
    ):
        return [wrong], document.text
    return findings, document.text


def _check_stack_outputs(path: Path, specs: Sequence[Path], env: list[str] | None) -> _CheckReport:
    from tpucfg.infra.resource_rules import environment_of, output_findings, unreadable_outputs
    from tpucfg.yamldoc.reader import read_file

    if len(specs) > 1 or len(env or ()) > 1:
        raise UsageError("--stack-outputs checks one stack", "give one spec and one environment")
    project, document = load_project(specs[0]), read_file(path)
    select_sizes(project, selection(env))
    if findings := unreadable_outputs(document):
        return _CheckReport(findings, {str(path): document.text}, str(path))
    environment = project.environments[env[0]] if env else environment_of(document, project)
    if environment is None:
        message = (
            f"neither the bucket nor the account in {path} belongs to an environment of the spec"
        )
        raise UsageError(message, "name the stack's environment with --env ENV")
    sources = {str(path): document.text, project.document.file: project.document.text}
    findings = tuple(output_findings(document, project, environment))
    return _CheckReport(findings, sources, f"{path}, stack {environment.name}")
