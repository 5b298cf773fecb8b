"""Generate parts of docs/findings: the title, level and example of each page, and the index.

A page is written by hand except for the parts between these marks, which are generated from `findings/rules.py` and
from the cases in tests/bad, whose outputs are tested:

    <!-- level -->            the effect of a finding with this id, and if it can be allowed
    <!-- example: CASE -->    the sections of the case's spec that its output shows, and the output
    <!-- fix: CASE -->        the difference between the case's spec and its fixed.yaml
    <!-- end -->              ends each of them

    python tools/finding_pages.py            writes the pages that differ
    python tools/finding_pages.py --check    writes nothing; exits 1 and prints their names
"""

import difflib
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from generated_pages import OutdatedPages, outdated_pages, write_or_check

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "compiler")]

from tpucfg.findings import RULES, Rule  # noqa: E402 - the script runs in a checkout that is not installed

PAGES: Final = ROOT / "docs" / "findings"
BAD: Final = ROOT / "tests" / "bad"
INDEX: Final = "index.md"
MAX_LINES: Final = 40
"""Limit of lines for a file to be shown."""
MAX_WIDTH: Final = 200
"""Limit of characters in a line for a file to be shown."""

_MARKED: Final = re.compile(r"<!-- (\w+)(?:: (\S+))? -->\n.*?<!-- end -->\n", re.DOTALL)
_LEVELS: Final = {
    "error": "An error: nothing is rendered until it is fixed.",
    "warning": "A warning: it stops no command.",
    "note": "A note: it stops no command.",
}
_OTHER_EFFECTS: Final = {
    "TPU114": "`tpucfg fit` exits with 1 until it is fixed.",
    "TPU113": "",
    "TPU112": "`tpucfg fit` exits with 1 until it is fixed.",
    "TPU111": "with `gate.fit`, `tpucfg submit` refuses the rung until it is fixed.",
    "TPU110": "with a gate, only the first rung can be started until it is fixed.",
    "TPU105": "`tpucfg check` exits with 1 until it is fixed, and with `gate.fit` the rung cannot be started.",
    "TPU100": "with a gate, only the first rung can be started until it is fixed.",
    "TPU088": "`tpucfg infra` exits with 1 until it is fixed, and `tpucfg review` shows it as a caution.",
    "TPU084": "`tpucfg check --stack-outputs` exits with 1 until it is fixed.",
    "TPU080": "`tpucfg check` exits with 1 until it is fixed.",
    "TPU065": "",
    "TPU062": "`tpucfg fit` exits with 1 until it is fixed.",
}
"""Effect of an error that is not in the spec or a config, by the first id of its group, the last group first.

An empty text stands for an error of the spec after such a group.
"""
_INTRO: Final = """\
# Findings

`tpucfg` reports every problem of a spec, a config or a stack as a finding: an id, a message with the value and the
limits of the rule, the location, and the edit that fixes it. `tpucfg explain ID` prints its page.

- An **error** of a spec or a config stops every command except `check`, which prints all findings and exits with 1.
  A **warning** stops no command.
- `check` reads the stack files too (`TPU080` to `TPU085`), but not the resources: `tpucfg infra` and `tpucfg review`
  run the stack program and report findings about them (`TPU088` to `TPU099`).
- Some findings are a matter of judgment: you can **allow** them with a reason, which turns them into notes.
- `tpucfg check --format json|sarif|github` is for programs, code scanning and the lines of a pull request.

```yaml
allow:
  TPU021: quota granted in us-west9
```

| id | | |
|---|---|---|
"""


def refreshed(page: str, rule: Rule) -> str:
    """Return the text of a rule's page with up-to-date generated parts."""
    _, _, body = page.partition("\n")
    return f"# {rule.id}: {rule.title}\n" + _MARKED.sub(lambda mark: _part(mark, rule), body)


def index() -> str:
    """Return the text of the index."""
    return _INTRO + "".join(
        f"| [{rule.id}]({rule.id}.md) | {rule.level}{', can be allowed' if rule.allowable else ''} | {rule.title} |\n"
        for rule in RULES.values()
    )


def _part(mark: re.Match[str], rule: Rule) -> str:
    kind, case = mark.groups()
    lines = "".join(f"{line}\n" for line in _PARTS[kind](rule, case))
    return f"<!-- {kind}{f': {case}' if case else ''} -->\n{lines}<!-- end -->\n"


def _level(rule: Rule, _: str | None) -> Iterator[str]:
    effect = next((text for first, text in _OTHER_EFFECTS.items() if rule.id >= first), None)
    level = _LEVELS[rule.level]
    if effect and rule.level == "error":
        level = f"An error: {effect} Rendering is not affected."
    allowed = " `allow` in the spec turns it into a note with your reason."
    yield level + (allowed if rule.allowable else "")


def _example(rule: Rule, case: str | None) -> Iterator[str]:
    folder = BAD / str(case)
    output = paragraphs((folder / "expected.txt").read_text(encoding="utf-8"), rule.id)
    yield from _spec(folder, output)
    yield "```text"
    yield from output
    yield "```"


def paragraphs(output: str, id_: str) -> list[str]:
    """Return the lines of an output that belong to findings of one id, without the summary."""
    kept: list[str] = []
    is_kept = False
    for line in output.splitlines():
        if head := re.match(r"\S+:\d+:\d+: \w+\[(TPU\d+)\]: ", line):
            is_kept = head[1] == id_
            kept += [""] if is_kept and kept and kept[-1] else []
        elif re.match(r"\S.*: (no findings|\d+ (errors?|warnings?|notes?))", line):
            is_kept = False
        if is_kept and (line or kept[-1:] != [""]):
            kept.append(line)
    return kept[:-1] if kept[-1:] == [""] else kept


def _spec(folder: Path, output: list[str]) -> Iterator[str]:
    """Yield the file that an output is about: the sections of a spec that the output shows, or any other file whole."""
    head = re.match(r"(\S+?):\d+:", output[0])
    file = folder / (head[1] if head else "tpucfg.yaml")
    if not file.is_file():
        return
    rows = file.read_bytes().decode("utf-8", "replace").removeprefix("\ufeff").splitlines()
    shown = {int(number) - 1 for line in output if (number := (re.match(r" *(\d+) \|", line) or [0, 0])[1])}
    kept = _sections(rows, shown) if file.name == "tpucfg.yaml" else list(range(len(rows)))
    if not shown or not kept or len(kept) > MAX_LINES or max(len(rows[index]) for index in kept) > MAX_WIDTH:
        return
    yield f"```{file.suffix[1:]}"
    for index in kept:
        yield "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in rows[index])
    yield "```"
    yield ""


def _sections(rows: list[str], shown: set[int]) -> list[int]:
    """Return the indices of the lines in the sections that contain shown lines."""
    starts = [index for index, row in enumerate(rows) if re.match(r"[^\s#-]", row)] or [0]
    shown_starts = {max((start for start in starts if start <= index), default=0) for index in shown}
    ends = dict(zip(starts, [*starts[1:], len(rows)], strict=True))
    return [index for start in starts if start in shown_starts for index in range(start, ends[start])]


def _fix(_: Rule, case: str | None) -> Iterator[str]:
    folder = BAD / str(case)
    fixed = next(folder.glob("fixed.*"))
    bad = next(path for name in ("tpucfg.yaml", "tpucfg.json", "config.*.yaml") for path in folder.glob(name))
    before, after = (path.read_bytes().decode("utf-8", "replace").splitlines() for path in (bad, fixed))
    yield "```diff"
    for line in list(difflib.unified_diff(before, after, lineterm="", n=1))[2:]:
        if not line.startswith("@@"):
            yield line.rstrip()
    yield "```"


_PARTS: Final[dict[str, Callable[[Rule, str | None], Iterator[str]]]] = {
    "level": _level,
    "example": _example,
    "fix": _fix,
}


def differing() -> OutdatedPages:
    """Yield the outdated pages with their expected text."""
    expected = {PAGES / INDEX: index()}
    for rule in RULES.values():
        path = PAGES / f"{rule.id}.md"
        if path.exists():
            expected[path] = refreshed(path.read_text(encoding="utf-8"), rule)
    return outdated_pages(expected)


def main(arguments: list[str] | None = None) -> int:
    """Write or check the pages; return the exit status."""
    return write_or_check("Generate parts of docs/findings.", differing, ROOT, arguments)


if __name__ == "__main__":
    sys.exit(main())
