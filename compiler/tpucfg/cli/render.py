"""The command `tpucfg render`."""

import json
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tpucfg.catalog import Catalog
from tpucfg.cli import options
from tpucfg.cli.exit_codes import DIFFERENT, ERRORS, CommandExit
from tpucfg.cli.load_spec import (
    load_fits,
    print_findings,
    print_fit_warnings,
    print_result,
    with_records,
)
from tpucfg.cli.options import SPEC, format_option, option, output_folder, selection
from tpucfg.findings import errors
from tpucfg.parallel import map_shared
from tpucfg.plan import Selection
from tpucfg.plan.rules.project_rules import shared_bucket_findings
from tpucfg.refusal import UsageError
from tpucfg.render.pipeline import ConfigFormat, RenderedSpec, render_spec
from tpucfg.targets.objects import objects_of
from tpucfg.text_format import format_count, json_text, listed, printable

if TYPE_CHECKING:
    from tpucfg.render.output_dir import FileChange


def render(
    spec: options.SpecsOption = None,
    env: options.EnvOption = None,
    size: options.SizeOption = None,
    target: options.TargetOption = None,
    run: options.RunOption = None,
    step: options.StepOption = None,
    changes: options.SetOption = None,
    probe: options.ProbeOption = False,
    out: Annotated[
        Path | None,
        option(
            "--out DIR", "Write each config to DIR/<env>/<size>/config.yaml.", parser=output_folder
        ),
    ] = None,
    check: Annotated[
        bool, option("--check", "With --out: write nothing, and exit 3 if a file would change.")
    ] = False,
    prune: Annotated[
        bool, option("--prune", "With --out: remove the configs that no job needs.")
    ] = False,
    format: Annotated[
        str, format_option("yaml|json", "The format; as JSON, each job is a document.")
    ] = "yaml",
    document: Annotated[
        str | None, option("--document KEY", "With --format json: print only this object.")
    ] = None,
) -> None:
    """Print or write the configs of the selected jobs; all of them are validated before anything is written.

    With several specs, --out writes DIR/<name>/<env>/<size>/config.yaml; a probe is in <size>/probe/config.yaml.

    Example: tpucfg render --env prod --size v3-32
    """
    if out is None and (check or prune):
        raise UsageError(f"--{'check' if check else 'prune'} needs --out")
    if document is not None and (format != "json" or out):
        raise UsageError("--document needs --format json, and prints to stdout")
    chosen = selection(env, size, target, run, probe=probe, step=step, changes=changes)
    specs = _render_specs(spec or [SPEC], chosen, "json" if format == "json" else "yaml")
    if document is not None:
        # All are looked up before the first is printed.
        sys.stdout.write(
            "".join(
                [_document_text(*config, document) for spec in specs for config in spec.configs]
            )
        )
    elif out is None:
        start = "---\n" if format == "yaml" else ""
        sys.stdout.write(start.join(text for rendered in specs for _, text in rendered.configs))
    else:
        _write(specs, out, check=check, prune=prune, is_probe=probe)


def _document_text(path: str, config: str, key: str) -> str:
    """Return one object of a config in JSON, such as the instanceTemplate of a slice on Compute Engine.

    Raises:
        UsageError: The config has no such object, or is not made of several.
    """
    objects = objects_of(json.loads(config))
    if key not in objects:
        message = (
            f"{path} has no object {key}"
            if objects
            else f"{path} is one object, which --document cannot divide"
        )
        hint = (
            f"choose one of: {listed(list(objects))}; or other jobs with --size"
            if objects
            else "leave it out"
        )
        raise UsageError(message, hint)
    return json_text(objects[key])


def _render_specs(
    paths: Sequence[Path], chosen: Selection, format_: ConfigFormat
) -> list[RenderedSpec]:
    """Render every spec and print its errors and warnings; an error ends the command after the last."""
    catalog = Catalog()
    specs = []
    selected = {path: with_records(chosen, path) for path in paths}
    # A spec that names a training step has values that take long to copy to a process.
    every = map_shared(
        lambda path: render_spec(path, catalog, selected[path], format_),
        paths,
        lambda rendered: None if rendered.compiled else rendered,
    )
    for path, rendered in zip(paths, every, strict=True):
        print_result(rendered.path, rendered.findings, rendered.source, in_full=True)
        compiled = rendered.compiled
        # A step that does not fit is a warning: the config of such a rung is valid, and may be meant for later.
        if (
            compiled
            and compiled.project
            and (fits := load_fits(compiled.project, compiled.jobs, path))
        ):
            print_fit_warnings(compiled.project, fits)
        specs.append(rendered._replace(compiled=None))
    shared = shared_bucket_findings([use for rendered in specs for use in rendered.buckets])
    findings = [finding for finding in shared if finding.level != "note"]
    print_findings(findings, {rendered.path: rendered.source for rendered in specs})
    if errors([*findings, *(finding for rendered in specs for finding in rendered.findings)]):
        raise CommandExit(ERRORS)
    return specs


def _write(
    specs: Sequence[RenderedSpec], out: Path, *, check: bool, prune: bool, is_probe: bool
) -> None:
    """Write the configs below a folder, or with `check`, compare them with the files in it."""
    from tpucfg.render import output_dir

    folders = _project_folders(specs)
    files = {
        folder + path: text
        for spec, folder in zip(specs, folders, strict=True)
        for path, text in spec.configs
    }
    changes = output_dir.compare_files(out, files)
    if prune or check:
        wanted = (
            folder + path
            for spec, folder in zip(specs, folders, strict=True)
            for path in spec.all_paths
        )
        changes += output_dir.stale_files(out, folders, wanted, is_probe=is_probe)
    if not check:
        output_dir.apply_changes(out, changes, files)
    _print_changes(changes, out, len(files))
    if check and changes:
        flags = " --probe" if is_probe else ""
        flags += " --prune" if any(change.kind == "remove" for change in changes) else ""
        print(
            f"help: write them with: tpucfg render --out {shlex.quote(printable(str(out)))}{flags}",
            file=sys.stderr,
        )
        raise CommandExit(DIFFERENT)


def _project_folders(specs: Sequence[RenderedSpec]) -> list[str]:
    """Return the prefix of each spec's config paths: with several specs, a folder for each project."""
    if len(specs) == 1:
        return [""]
    names = [spec.project for spec in specs]
    for name, count in Counter(names).items():
        if count > 1:
            paths = listed([spec.path for spec in specs if spec.project == name])
            raise UsageError(
                f"{count} of the specs have the name {name}, so they would write the same files: {printable(paths)}",
                "change the name in one of them, or render them into different folders",
            )
    return [f"{name}/" for name in names]


def _print_changes(changes: "Sequence[FileChange]", out: Path, total: int) -> None:
    prefix = "" if out == Path() else f"{out}/"
    sys.stdout.write("".join(f"{change.kind} {prefix}{change.path}\n" for change in changes))
    # Flushed so that the summary on stderr follows the list where both go to one terminal or file.
    sys.stdout.flush()
    unchanged = total - sum(change.kind != "remove" for change in changes)
    print(f"{format_count(total, 'config')}, {unchanged} unchanged", file=sys.stderr)
