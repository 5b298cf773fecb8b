"""Mutated inputs of comparisons: folders of configs, previews with two specs, and results of rungs."""

import json
from pathlib import Path
from random import Random
from typing import Final

from fuzz import corpus
from fuzz.cases import Case, Entry, EntryType
from fuzz.mutations import mutate, mutate_lines, serialize, shuffle_keys
from fuzz.shell import ZERO_WIDTH_SPACE, Shell, check_findings, check_printable
from fuzz.texts import SPEC, Parts
from fuzz.trees import snapshot
from tpucfg.catalog import Catalog
from tpucfg.changes.previews import read_preview
from tpucfg.changes.programs import ProgramRuns
from tpucfg.changes.revisions import compile_revisions
from tpucfg.git.snapshots import Snapshot
from tpucfg.plan import Selection
from tpucfg.review.build import join_review
from tpucfg.review.comment import comment
from tpucfg.review.json_report import json_report
from tpucfg.review.review import RepositoryReview
from tpucfg.yamldoc.reader import read_bytes

MAX_COMMENT_LENGTH: Final = 65_536
"""Maximum length of a comment on GitHub: https://github.com/orgs/community/discussions/27190."""
_BASE: Final = corpus.BAD / "TPU084-other-bucket" / SPEC
_GATE: Final = b"gate: {min_scaling_efficiency: 0.8, metric: accuracy, goal: max, max_drop: 0.01}\nprices: {v2: 2.2}\n"
_PATHS: Final = (
    "dev/v2-8/config.yaml",
    "dev/v2-32/config.yaml",
    "a.json",
    "b.yml",
    "c/d/e/f.yaml",
    ".hidden/x.yaml",
)
_OTHER_TYPES: Final[tuple[EntryType, ...]] = ("link", "pipe", "large", "folder")
_LINK: Final = Entry("results/dev.jsonl", "link", b"../outside.jsonl")
_FORMATS: Final = ("text", "json", "markdown")


def make_folders(rng: Random) -> Parts:
    """Return two folders with mostly equal files, some mutated files, and entries that are not files."""
    contents = [content for content, _ in rng.sample(corpus.configs(), 3)]
    entries = []
    for side in ("before", "after"):
        for location in rng.sample(_PATHS, 3):
            content = rng.choice(contents)
            content = mutate(rng, content) if rng.random() < 0.3 else content
            data = read_bytes(content, "x").data
            content = (
                serialize(rng, shuffle_keys(rng, data)) if data and rng.random() < 0.3 else content
            )
            entries.append(Entry(f"{side}/{location}", "file", content))
        if rng.random() < 0.3:
            entries.append(Entry(f"{side}/odd.yaml", rng.choice(_OTHER_TYPES), b"../../x"))
    return tuple(entries), ("--format", rng.choice(_FORMATS))


def check_folders(case: Case, rng: Random, tpucfg: Shell) -> None:
    """Check that equal folders have no difference, that the order does not matter, and that nothing is written."""
    before = snapshot(Path())
    completed = tpucfg("diff", "before", "after", *case.words, "--exit-code")
    equal = tpucfg("diff", "after", "after", *case.words, "--exit-code")
    assert equal.status in (0, 1), equal
    assert completed.status in (0, 1, 3) or completed.status == 2, completed
    assert snapshot(Path()) == before
    if completed.status in (0, 3):
        reverse = tpucfg("diff", "after", "before", "--format", rng.choice(_FORMATS), "--exit-code")
        assert reverse.status == completed.status, f"{completed} {reverse}"


def make_preview(rng: Random) -> Parts:
    """Return a mutated preview with its spec and another spec."""
    preview = mutate_lines(rng, rng.choice(corpus.previews()))
    content = _BASE.read_bytes()
    other = mutate(rng, content) if rng.random() < 0.5 else rng.choice(corpus.specs())
    return (
        Entry("base.yaml", "file", content),
        Entry(SPEC, "file", other),
        Entry("dev.json", "file", preview),
    ), ()


def check_preview(case: Case, _: Random, tpucfg: Shell) -> None:
    """Check that the comment about the preview is short enough for GitHub and printable."""
    preview = case.entries[-1].content

    def review() -> tuple[str, str]:
        snapshots = (
            Snapshot("main", Path("base.yaml"), SPEC, exists=True),
            Snapshot("HEAD", Path(SPEC), SPEC, exists=True),
        )
        before, after = compile_revisions(snapshots, Catalog(), Selection())
        parsed = read_preview("dev", "dev.json", preview)
        result = join_review(before, after, ProgramRuns({}, {}), {"dev": parsed})
        reviewed = RepositoryReview((result,))
        return comment(reviewed), json_report(reviewed)

    text, data = tpucfg.timed("review", review)
    assert len(text) <= MAX_COMMENT_LENGTH, f"the comment has {len(text)} characters"
    check_printable("review", text, allowed=ZERO_WIDTH_SPACE)
    check_printable("review --format json", data)
    assert isinstance(json.loads(data), dict)


def make_results(rng: Random) -> Parts:
    """Return a valid spec with a gate, and mutated results of its rungs."""
    lines = [
        {
            "metrics": {"examples_per_second": 1000.0 * number, "accuracy": 0.97},
            "name": "mnist",
            "size": size,
        }
        for number, size in ((1, "v2-8"), (4, "v2-32"), (2, "v2-8"))
    ]
    valid = "".join(json.dumps(line) + "\n" for line in lines).encode()
    return (
        Entry(SPEC, "file", _BASE.read_bytes() + _GATE),
        Entry("results/dev.jsonl", "file", mutate_lines(rng, valid))
        if rng.random() < 0.9
        else _LINK,
    ), ()


def check_results(case: Case, rng: Random, tpucfg: Shell) -> None:
    """Check that invalid lines are reported with their location, and that a new record only appends a line."""
    content = case.entries[-1].content
    is_file = case.entries[-1].sort == "file"
    texts = {entry.path: entry.content for entry in case.entries if entry.sort == "file"}
    check_findings(
        tpucfg("check", "--format", "json"), texts | ({} if is_file else {"results/dev.jsonl": b""})
    )
    tpucfg("status", "--format", rng.choice(["text", "json"]))
    tpucfg("submit", "--size", "v2-32")
    recorded = tpucfg(
        "record", "--size", "v2-8", "--metric", "examples_per_second=5", "--metric", "accuracy=0.9"
    )
    if not is_file:
        assert recorded.status, recorded
        return
    after = Path("results/dev.jsonl").read_bytes()
    added = after[len(content) :].strip(b"\n")
    assert after.startswith(content), "a record changed existing lines"
    assert (recorded.status == 0) == bool(added), recorded
    assert not added or json.loads(added)["size"] == "v2-8"
