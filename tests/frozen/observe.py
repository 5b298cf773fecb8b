"""Observe what the command line does in each case: exit statuses, findings, statements and the bytes of configs."""

import hashlib
import io
import json
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from functools import cache, partial
from pathlib import Path
from typing import Any, Final
from unittest import mock

from badspecs import SPECS, cases, file_of, run_check
from repositories import ENVIRONMENT
from tpucfg.cli.app import run
from tpucfg.cli.review import _present
from tpucfg.review.comment import comment

Case = dict[str, Any]
"""The behaviour in one case, as in the files of frozen data."""
FROZEN: Final = Path(__file__).parent
ROOT: Final = FROZEN.parent.parent
GROUPS: Final = ("bad", "examples", "review", "attacks")
TARGETS: Final = ("vertex-ai", "cloud-tpu", "compute-engine", "gke", "ai-platform")
_BUNDLE: Final = FROZEN / "histories.bundle"
_SETTINGS: Final = "stacks/settings.py"
_MOVED: Final = (
    ("from tpucfg.plan.slice_deletion import", "from tpucfg.plan.identities import"),
    ("from tpucfg.findings.formats.text import", "from tpucfg.findings.text import"),
    ("from tpucfg.infra.pulumi_project import", "from tpucfg.infra.stack_files import"),
    ("from tpucfg.targets.common import", "from tpucfg.targets.rules import"),
    ("(project, environment, environment.target) if creates", "(project, environment) if creates"),
)
"""Names that the recorded stack programs import from modules that have moved since."""
_FINDING: Final = re.compile(r"^(\S+): (error|warning|note)\[(TPU\d{3})\]: ", re.MULTILINE)
_COMMITTED: Final = ("--base", "HEAD~1", "--head", "HEAD")
_SCOPED: Final = re.compile(r"\*\*(.+?)\*\*: (.*)", re.DOTALL)
_MAX_TEXT_LENGTH: Final = 160
"""Characters of a statement that are kept, for the reader of a difference: wording is not compared."""


def observations(group: str) -> dict[str, Callable[[], Case]]:
    """Return the cases of a group by name, each as the function that observes it."""
    if group == "bad":
        return {folder.name: partial(_bad, folder) for folder in cases()}
    if group == "examples":
        return dict(_examples())
    return {name: partial(_history, group, name) for name in _histories(group)}


def _bad(folder: Path) -> Case:
    file = file_of(folder)
    status, out, _ = run_check(file)
    case: Case = {"status": status, "findings": _findings(out)}
    if file.name in SPECS:
        case["configs"] = _configs(folder, "--spec", file.name)
    return case


def _examples() -> Iterator[tuple[str, Callable[[], Case]]]:
    specs = [ROOT / "tpucfg.yaml", *sorted((ROOT / "examples").rglob("tpucfg.yaml"))]
    for spec in specs:
        name = spec.parent.relative_to(ROOT).as_posix().removeprefix(".") or "root"
        yield name, partial(_example, spec.parent)
        yield f"{name} --run r1", partial(_example, spec.parent, "--run", "r1")
        for target in TARGETS:
            yield f"{name} --target {target}", partial(_example, spec.parent, "--target", target)


def _example(folder: Path, *arguments: str) -> Case:
    checked = [argument for argument in arguments if argument not in {"--run", "r1"}]
    status, out, _ = _run(folder, "check", *checked)
    return {
        "status": status,
        "findings": _findings(out),
        "configs": _configs(folder, *arguments, separate=True),
    }


def _histories(group: str) -> Iterator[str]:
    heads = _git(FROZEN, "bundle", "list-heads", str(_BUNDLE))
    return iter(sorted(re.findall(rf"refs/heads/{group}/(\S+)$", heads, re.MULTILINE)))


def _history(group: str, name: str) -> Case:
    """Check out a recorded history in a folder named `project`, with the files beside it, and review its change."""
    options = json.loads((FROZEN / "histories.json").read_text()).get(f"{group}/{name}", {})
    arguments = options.get("arguments", _COMMITTED)
    # git may still tidy the repository when it is removed.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary, "project")
        folder.mkdir()
        _git(folder, "init", "--quiet", "--initial-branch=main")
        refs = [
            f"refs/heads/{group}/{name}:refs/recorded/head",
            f"refs/beside/{group}/{name}:refs/recorded/beside",
        ]
        heads = _git(folder, "bundle", "list-heads", str(_BUNDLE))
        _git(
            folder,
            "fetch",
            "--quiet",
            str(_BUNDLE),
            *(ref for ref in refs if f"{ref.partition(':')[0]}\n" in heads),
        )
        _follow_moves(folder)
        if options.get("unborn"):
            _git(folder, "--work-tree=.", "checkout", "refs/recorded/head", "--", ".")
            _git(folder, "rm", "--quiet", "-r", "--cached", ".")
            _git(folder, "update-ref", "-d", "refs/recorded/head")
        else:
            _git(folder, "reset", "--quiet", "--hard", "refs/recorded/head")
        if "refs/recorded/beside" in _git(folder, "for-each-ref"):
            beside = ("--git-dir=project/.git", "--work-tree=.")
            _git(Path(temporary), *beside, "restore", "--source=refs/recorded/beside", "--", ".")
        return _review(folder, arguments)


def _follow_moves(folder: Path) -> None:
    """Rewrite a recorded history, so that its stack programs import what has moved since."""
    if (ROOT / "compiler/tpucfg/plan/slice_deletion.py").exists():
        return
    parent: list[str] = []
    for commit in _git(folder, "rev-list", "--reverse", "refs/recorded/head").split():
        _git(folder, "read-tree", commit)
        mode, *_ = [*_git(folder, "ls-tree", commit, _SETTINGS).split(), ""]
        if mode.startswith("100"):
            text = _git(folder, "show", f"{commit}:{_SETTINGS}")
            for old, new in _MOVED:
                text = text.replace(old, new)
            blob = _git(folder, "hash-object", "-w", "--stdin", text=text).strip()
            _git(folder, "update-index", "--cacheinfo", f"{mode},{blob},{_SETTINGS}")
        tree = _git(folder, "write-tree").strip()
        parent = ["-p", _git(folder, "commit-tree", tree, *parent, "-m", "x").strip()]
    _git(folder, "update-ref", "refs/recorded/head", parent[1])


def _review(folder: Path, arguments: Sequence[str]) -> Case:
    _, checked, _ = _run(folder, "check")
    command = ("review", *arguments, *_trusting(), "--fail-on", "destructive")
    # The comment is printed from the review of the report, so that the programs of both revisions run once.
    with mock.patch("tpucfg.cli.review._present", side_effect=_present) as present:
        status, out, log = _run(folder, *command, "--format", "json")
    case: Case = {"status": status, "findings": _findings(checked), "configs": _configs(folder)}
    if not out:
        return case | {"refusal": log.splitlines()[0] if log else ""}
    report = json.loads(out)
    text = comment(present.call_args.args[0])
    environments = {
        environment["name"] for spec in report["specs"] for environment in spec["environments"]
    }
    return case | {
        "destructive": report["is_destructive"],
        "known": report["is_known"],
        "change": report["is_change"],
        "environments": sorted(environments),
        "statements": _statements(report),
        "block": _block(text),
    }


@cache
def _trusting() -> tuple[str, ...]:
    """Return the option that lets the program of a given revision run, where `review` has one."""
    return ("--run-program",) if "--run-program" in _run(ROOT, "review", "--help")[1] else ()


def _statements(report: Mapping[str, Any]) -> list[list[str]]:
    """Return risk, scope and text of every statement, and of every caution that is not made of statements."""
    located = [statement for spec in report["specs"] for statement in spec["meaning"]["statements"]]
    statements = [
        [
            statement["risk"],
            statement["scope"],
            _without_scope(statement["text"], statement["scope"]),
        ]
        for statement in (*report["statements"], *located)
    ]
    for caution in (caution for spec in report["specs"] for caution in spec["cautions"]):
        scope, text = _split_scope(caution["text"])
        if not any(
            risk == caution["risk"]
            and scope == other
            and _letters(text).startswith(_letters(start))
            for risk, other, start in statements
        ):
            statements.append([caution["risk"], scope, text])
    return sorted([risk, scope, text[:_MAX_TEXT_LENGTH]] for risk, scope, text in statements)


def _block(comment: str) -> list[str]:
    """Return the scopes of the lines above the first fold that are marked as cautions."""
    visible = comment.partition("<details")[0]
    return sorted(
        {_split_scope(line)[0] for line in re.findall(r"^> - (.*)$", visible, re.MULTILINE)}
    )


def _split_scope(text: str) -> tuple[str, str]:
    """Return the scope and the rest of a line of Markdown; the scope is empty for the whole spec."""
    match = _SCOPED.match(text)
    return (match[1].replace("\\", ""), match[2]) if match else ("", text)


def _without_scope(text: str, scope: str) -> str:
    return text.removeprefix(f"{scope}: ") if scope else text


def _letters(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]", "", text)


def _findings(text: str) -> list[str]:
    """Return level, id and location of each finding in the output of a command."""
    return sorted(f"{level} {id_} {location}" for location, level, id_ in _FINDING.findall(text))


def _configs(folder: Path, *arguments: str, separate: bool = False) -> Any:
    """Return the status of `render`, and length and hash of the configs, of each one or of all together."""
    with tempfile.TemporaryDirectory() as out:
        status, _, _ = _run(folder, "render", *arguments, "--out", out)
        files = {
            path.relative_to(out).as_posix(): path.read_bytes()
            for path in sorted(Path(out).rglob("*.yaml"))
        }
    if separate:
        return {"status": status, **{name: _identity(content) for name, content in files.items()}}
    if status:
        return f"status {status}"
    everything = b"".join(name.encode() + b"\0" + content for name, content in files.items())
    return f"{len(files)} files, {_identity(everything)}"


def _identity(content: bytes) -> str:
    return f"{len(content)} bytes, {hashlib.sha256(content).hexdigest()[:32]}"


def _run(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """Return exit status, stdout and stderr of a tpucfg command, run in a folder."""
    out, err = io.StringIO(), io.StringIO()
    with chdir(folder), redirect_stdout(out), redirect_stderr(err):
        status = run([*arguments])
    return status, out.getvalue(), err.getvalue()


def _git(folder: Path, *arguments: str, text: str | None = None) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(
        command, env=ENVIRONMENT, check=True, capture_output=True, text=True, input=text
    ).stdout
