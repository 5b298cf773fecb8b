"""Check a local package next to the spec: the only rule of a spec that reads other files."""

import os
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Final

from tpucfg.catalog.target_facts import TARGET_FACTS
from tpucfg.findings import Finding
from tpucfg.fs import is_directory, is_file
from tpucfg.spec.project import Project
from tpucfg.text_format import dotted
from tpucfg.yamldoc.document import KeyPath

_BUILD_FILES: Final = ("setup.py", "pyproject.toml")


def package_findings(project: Project, folder: FilePath) -> Iterator[Finding]:
    """Yield a finding for a local package that is missing, or that has no build file where gcloud looks for it.

    gcloud builds a package in its parent folder, with the setup.py there or, without one, with a generated setup.py
    without requirements: https://cloud.google.com/sdk/gcloud/reference/ai-platform/jobs/submit/training.
    """
    if project.broken & {"trainer", "environments", "target", "sizes", "overrides"}:
        return
    packages = {
        settings.source(("trainer", "package")): settings.trainer.package
        for (environment, size), settings in project.settings.items()
        if size and TARGET_FACTS[project.environments[environment].target].builds_packages
    }
    for path, package in packages.items():
        if package is not None and not package.startswith("gs://") and "${" not in package:
            yield from _local_package(project, path, package, folder)


def _local_package(project: Project, path: KeyPath, package: str, folder: FilePath) -> Iterator[Finding]:
    location = project.document.value_location(path)
    # normpath, because Path does not resolve `..`: it would return `trainer` as the parent of `trainer/..`.
    package_folder = FilePath(os.path.normpath(folder.absolute() / package))
    if not is_directory(package_folder):
        message = f"{dotted(path)} is {package}, and there is no such folder beside the spec"
        hint = f"create {package}, or name a package that is built and in Cloud Storage: gs://…"
        yield Finding.of("TPU053", message, location, help=hint)
    elif not _build_file(package_folder.parent):
        misplaced_file = _build_file(package_folder)
        problem = (
            f"{misplaced_file} is in {package} itself"
            if misplaced_file
            else f"there is neither {' nor '.join(_BUILD_FILES)}"
        )
        message = f"{problem}; gcloud looks in the folder above {package}, and builds it without its requirements"
        hint = f"move {misplaced_file} up, beside {package}" if misplaced_file else f"write a setup.py beside {package}"
        yield Finding.of("TPU053", message, location, help=hint)


def _build_file(folder: FilePath) -> str | None:
    return next((name for name in _BUILD_FILES if is_file(folder / name)), None)
