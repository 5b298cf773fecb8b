"""What is compared: folders of configs, a preview of Pulumi's and two specs, results of rungs."""

import json
from pathlib import Path
from random import Random
from typing import Final

from fuzz import corpus
from fuzz.cases import Case, Entry, Sort
from fuzz.changes import changed, changed_lines, otherwise, written
from fuzz.texts import SPEC, Made
from fuzz.trees import seen
from fuzz.trying import UNMENTIONED, Shell, assert_shown, judged
from tpucfg.catalog import Catalog
from tpucfg.diff.compiled_revisions import compile_revisions
from tpucfg.git.snapshots import Snapshot
from tpucfg.plan import Selection
from tpucfg.review.build import ProgramRuns, join_review
from tpucfg.review.json_report import json_report
from tpucfg.review.markdown.comment import comment
from tpucfg.review.preview.reader import read_preview
from tpucfg.yamldoc.reader import read_bytes

LONGEST_COMMENT: Final = 65_536
"""Characters that GitHub takes: https://github.com/orgs/community/discussions/27190."""
_BASE: Final = corpus.BAD / "TPU084-other-bucket" / SPEC
_GATE: Final = b"gate: {min_scaling_efficiency: 0.8, metric: accuracy, goal: max, max_drop: 0.01}\nprices: {v2: 2.2}\n"
_PLACES: Final = ("dev/v2-8/config.yaml", "dev/v2-32/config.yaml", "a.json", "b.yml", "c/d/e/f.yaml", ".hidden/x.yaml")
_ODD: Final[tuple[Sort, ...]] = ("link", "pipe", "large", "folder")
_LINK: Final = Entry("results/dev.jsonl", "link", b"../outside.jsonl")
_FORMATS: Final = ("text", "json", "markdown")


def make_folders(rng: Random) -> Made:
    """Two folders that share most of their files, with some of them changed, and what is no file."""
    contents = [content for content, _ in rng.sample(corpus.configs(), 3)]
    entries = []
    for side in ("before", "after"):
        for location in rng.sample(_PLACES, 3):
            content = rng.choice(contents)
            content = changed(rng, content) if rng.random() < 0.3 else content
            data = read_bytes(content, "x").data
            content = written(rng, otherwise(rng, data)) if data and rng.random() < 0.3 else content
            entries.append(Entry(f"{side}/{location}", "file", content))
        if rng.random() < 0.3:
            entries.append(Entry(f"{side}/odd.yaml", rng.choice(_ODD), b"../../x"))
    return tuple(entries), ("--format", rng.choice(_FORMATS))


def prove_folders(case: Case, rng: Random, tpucfg: Shell) -> None:
    """They are compared or it is said why not; what is equal has no difference; nothing is written."""
    before = seen(Path())
    ended = tpucfg("diff", "before", "after", *case.words, "--exit-code")
    same = tpucfg("diff", "after", "after", *case.words, "--exit-code")
    assert same.status in (0, 1), same
    assert ended.status in (0, 1, 3) or ended.status == 2, ended
    assert seen(Path()) == before
    if ended.status in (0, 3):
        turned = tpucfg("diff", "after", "before", "--format", rng.choice(_FORMATS), "--exit-code")
        assert turned.status == ended.status, f"{ended} {turned}"


def make_preview(rng: Random) -> Made:
    """A preview that was recorded, broken, beside the spec that it is of and another one."""
    preview = changed_lines(rng, rng.choice(corpus.previews()))
    content = _BASE.read_bytes()
    other = changed(rng, content) if rng.random() < 0.5 else rng.choice(corpus.specs())
    return (
        Entry("base.yaml", "file", content),
        Entry(SPEC, "file", other),
        Entry("dev.json", "file", preview),
    ), ()


def prove_preview(case: Case, _: Random, tpucfg: Shell) -> None:
    """It is read as far as it goes, and the comment about it holds what GitHub takes and a reader can see."""
    preview = case.entries[-1].content

    def told() -> tuple[str, str]:
        sides = (
            Snapshot("main", Path("base.yaml"), SPEC, exists=True),
            Snapshot("HEAD", Path(SPEC), SPEC, exists=True),
        )
        before, after = compile_revisions(sides, Catalog(), Selection())
        read = read_preview("dev", "dev.json", preview)
        made = join_review(before, after, ProgramRuns({}, {}), {"dev": read})
        return comment(made), json_report(made)

    text, data = tpucfg.timed("review", told)
    assert len(text) <= LONGEST_COMMENT, f"the comment has {len(text)} characters"
    assert_shown("review", text, besides=UNMENTIONED)
    assert_shown("review --format json", data)
    assert isinstance(json.loads(data), dict)


def make_results(rng: Random) -> Made:
    """A right spec with a gate, and results of its rungs, broken."""
    lines = [
        {"metrics": {"examples_per_second": 1000.0 * number, "accuracy": 0.97}, "name": "mnist", "size": size}
        for number, size in ((1, "v2-8"), (4, "v2-32"), (2, "v2-8"))
    ]
    right = "".join(json.dumps(line) + "\n" for line in lines).encode()
    return (
        Entry(SPEC, "file", _BASE.read_bytes() + _GATE),
        Entry("results/dev.jsonl", "file", changed_lines(rng, right)) if rng.random() < 0.9 else _LINK,
    ), ()


def prove_results(case: Case, rng: Random, tpucfg: Shell) -> None:
    """Every line that is no record is said at its place; a further record is a further line and nothing else."""
    content = case.entries[-1].content
    is_file = case.entries[-1].sort == "file"
    texts = {entry.path: entry.content for entry in case.entries if entry.sort == "file"}
    judged(tpucfg("check", "--format", "json"), texts | ({} if is_file else {"results/dev.jsonl": b""}))
    tpucfg("status", "--format", rng.choice(["text", "markdown", "json"]))
    tpucfg("submit", "--size", "v2-32")
    recorded = tpucfg("record", "--size", "v2-8", "--metric", "examples_per_second=5", "--metric", "accuracy=0.9")
    if not is_file:
        assert recorded.status, recorded
        return
    after = Path("results/dev.jsonl").read_bytes()
    added = after[len(content) :].strip(b"\n")
    assert after.startswith(content), "a record changed what was there"
    assert (recorded.status == 0) == bool(added), recorded
    assert not added or json.loads(added)["size"] == "v2-8"
