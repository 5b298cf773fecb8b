"""Releases: tag, version and changelog agree, and no job with privileges runs code of this project."""

import re
from pathlib import Path
from typing import Any

import pytest
import release
import yaml

from tpucfg import __version__

ROOT = Path(__file__).resolve().parents[2]
REPOSITORY = "https://example.com/owner/tpucfg"
HEADING = "## [1.2.3] - 2026-01-31"
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
WORKFLOW: dict[str, Any] = yaml.safe_load(
    (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
)
JOBS: dict[str, dict[str, Any]] = WORKFLOW["jobs"]


def _project(folder: Path, version: str, changelog: str) -> Path:
    (folder / "compiler/tpucfg").mkdir(parents=True)
    (folder / release.VERSION).write_text(
        f'"""A package."""\n\n__version__ = "{version}"\n', encoding="utf-8"
    )
    (folder / release.CHANGELOG).write_text(f"# Changelog\n\n{changelog}\n", encoding="utf-8")
    (folder / release.PROJECT).write_text(
        f"[project]\n[project.urls]\nRepository = '{REPOSITORY}'\n", encoding="utf-8"
    )
    return folder


def test_version_equals_the_package_version() -> None:
    """The version in the file equals the imported one."""
    assert release.version() == __version__


def test_changelog_has_the_expected_format() -> None:
    """The sections have one format, newest first, and the kinds of Keep a Changelog."""
    sections = release.sections()
    text = (ROOT / release.CHANGELOG).read_text(encoding="utf-8")

    assert next(iter(sections)) in {"Unreleased", __version__}
    assert text.count("\n## ") == len(sections)
    for _, body in sections.values():
        kinds = [line.removeprefix("### ") for line in body.splitlines() if line.startswith("### ")]
        assert set(kinds) <= KINDS
        assert len(kinds) == len(set(kinds)) > 0


def test_consistent_release_has_no_difference(tmp_path: Path) -> None:
    """A consistent release has no difference, and its notes are the section's text without the heading."""
    root = _project(
        tmp_path,
        "1.2.3",
        "## [1.2.3] - 2026-01-31\n\n### Added\n\n- This.\n\n## [1.2.2] - 2026-01-30\n\n- That.",
    )

    assert [*release.differences("v1.2.3", root)] == []
    assert release.sections(root)["1.2.3"] == ("2026-01-31", "### Added\n\n- This.")


@pytest.mark.parametrize(
    ("tag", "changelog", "difference"),
    [
        (
            "1.2.3",
            f"{HEADING}\n\n- This.",
            "the tag is 1.2.3, but has to be v and the version: v1.2.3",
        ),
        (
            "v1.2.3",
            "## [Unreleased]\n\n- This.",
            "no section [1.2.3]: rename [Unreleased] and add the day",
        ),
        (
            "v1.2.3",
            "## [1.2.3]\n\n- This.",
            "the section [1.2.3] has no day: ## [1.2.3] - 2026-01-31",
        ),
        ("v1.2.3", f"{HEADING}\n", "the section [1.2.3] is empty"),
        (
            "v1.2.3",
            f"## [1.2.4] - 2026-02-01\n\n- That.\n\n{HEADING}\n\n- This.",
            "[1.2.3] is not the first section",
        ),
    ],
)
def test_inconsistent_release_is_reported(
    tmp_path: Path, tag: str, changelog: str, difference: str
) -> None:
    """Each difference is reported with its file and the edit, and without others."""
    differences = [*release.differences(tag, _project(tmp_path, "1.2.3", changelog))]

    assert [line.removeprefix(f"{release.CHANGELOG}: ") for line in differences] == [difference]


def test_tag_of_another_version_is_rejected(tmp_path: Path) -> None:
    """A tag that differs from the version is rejected before the build."""
    root = _project(tmp_path, "1.2.3", "## [1.2.4] - 2026-01-31\n\n- This.")

    assert [*release.differences("v1.2.4", root)] == [
        f"{release.VERSION}: the version is 1.2.3, but the tag is v1.2.4"
    ]


@pytest.mark.parametrize(
    "project", ["[project]", "[project.urls]\nHomepage = 'https://example.com'"]
)
def test_release_needs_a_repository_url(tmp_path: Path, project: str) -> None:
    """A package without the URL of its repository cannot be released."""
    root = _project(tmp_path, "1.2.3", f"{HEADING}\n\n- This.")
    (root / release.PROJECT).write_text(project, encoding="utf-8")

    [difference] = release.differences("v1.2.3", root)

    assert difference.endswith('[project.urls] Repository = "https://..."')


def test_privileged_jobs_run_no_code_of_this_project() -> None:
    """Jobs with a token or write access check out nothing and run no code of this project."""
    privileged = [job for job in JOBS.values() if "write" in str(job.get("permissions"))]

    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert len(privileged) == 4
    for job in privileged:
        actions = [step.get("uses", "") for step in job["steps"]]
        assert not [action for action in actions if action.startswith("actions/checkout")]
        assert not [
            step["run"]
            for step in job["steps"]
            if "run" in step and not step["run"].startswith("gh release")
        ]


@pytest.mark.parametrize("name", ["release", "review"])
def test_actions_of_privileged_workflows_are_pinned_by_commit(name: str) -> None:
    """In a workflow with privileges, actions are pinned by commit, except for those listed in SECURITY.md."""
    lines = (ROOT / f".github/workflows/{name}.yml").read_text(encoding="utf-8").splitlines()
    used = [
        line.partition("uses: ")[2] for line in lines if "uses: " in line and "uses: ./" not in line
    ]
    unpinned = [
        action
        for action in used
        if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)
    ]

    assert used
    security = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert all(f"`{action.partition('@')[0]}`" in security for action in unpinned), unpinned


def test_jobs_run_in_order() -> None:
    """A release is published only after the gate, the check of its tag, and the attestation of its provenance."""
    assert JOBS["gate"]["uses"] == "./.github/workflows/ci.yml"
    assert [JOBS[name]["needs"] for name in ("build", "attest", "publish", "release")] == [
        "gate",
        "build",
        "attest",
        "publish",
    ]
    assert any("release.py check" in step.get("run", "") for step in JOBS["build"]["steps"])
    assert JOBS["publish"]["environment"] == "pypi"


@pytest.mark.parametrize("folder", [".github/workflows", "templates/workflow/.github/workflows"])
def test_no_job_imports_a_module_of_the_checkout(folder: str) -> None:
    """`python -m venv` would run a `venv.py` at the root of a pull request, with the rights of the job."""
    texts = [
        path.read_text(encoding="utf-8")
        for path in (ROOT / folder).iterdir()
        if path.name != "ci.yml"
    ]
    started = [options for text in texts for options in re.findall(r"\bpython3? (.*?)-m \w+", text)]
    assert started
    assert {*started} == {"-I "}
