"""Generate parts of docs/findings: the heading, level and example of each finding's section, and the index.

A page has a section for each finding of its subject. It is written by hand except for these parts, which come from
`findings/rules.py` and from the cases in tests/bad, whose outputs are tested:

    ## TPU021                 the heading, with the rule's title and an anchor, and the level below it
    <!-- example: CASE -->    the output of the case, in the block below the mark
    <!-- example: CASE ... -->    the same, with `...` in place of the excerpt of the file

    python tools/finding_pages.py            writes the pages that differ
    python tools/finding_pages.py --check    writes nothing; exits 1 and prints their names
"""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from generated_pages import OutdatedPages, outdated_pages, write_or_check

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "compiler")]

from tpucfg.findings import RULES, Rule  # noqa: E402 - the script runs in a checkout that is not installed

PAGES: Final = ROOT / "docs" / "findings"
BAD: Final = ROOT / "tests" / "bad"
INDEX: Final = "index.md"

_HEAD: Final = re.compile(
    r"^## (TPU\d{3})\b.*\n+(?:\*\*(?:Error|Warning|Note)\*\*.*\n)?", re.MULTILINE
)
_EXAMPLE: Final = re.compile(
    r"^<!-- example: (\S+)( \.\.\.)? -->\n(?:```text\n.*?^```\n)?", re.DOTALL | re.MULTILINE
)
_FINDING: Final = re.compile(r"\S+:\d+:\d+: \w+\[(TPU\d+)\]: ")
_EXCERPT: Final = re.compile(r"(?:^ *\d* *\|.*\n)+", re.MULTILINE)
_SUMMARY: Final = re.compile(r"\S.*: (no findings|\d+ (errors?|warnings?|notes?))")
_INTRO: Final = """\
# Findings

`tpucfg` reports every problem of a spec, a config or a stack as a finding: an id, a message with the value and the
limits of the rule, the location, and the edit that fixes it. `tpucfg explain ID` prints its section of these pages.

- An **error** of a spec or a config stops every command except `check`, which prints all findings and exits with 1.
  A **warning** and a **note** stop no command.
- A finding that is a matter of judgment can be **allowed** with a reason, which turns it into a note.
- `tpucfg check --format json|sarif|github` is for programs, code scanning and the lines of a pull request.

```yaml
allow:
  TPU021: quota granted in us-west9
```

| id | level | mistake |
|---|---|---|
"""


def refreshed(page: str) -> str:
    """Return a page with up-to-date generated parts."""
    head, *sections = re.split(r"^(?=## TPU\d{3}\b)", page, flags=re.MULTILINE)
    return head + "".join(map(_section, sections))


def _section(text: str) -> str:
    head = _HEAD.match(text)
    if head is None or head[1] not in RULES:
        return text
    rule = RULES[head[1]]
    allowed = ", can be allowed" if rule.allowable else ""
    stops = ", stops `pulumi up`" if rule.stops_stack else ""
    body = _EXAMPLE.sub(lambda mark: _example(rule, mark[1], mark[2] or ""), text[head.end() :])
    return f"{heading(rule)}\n\n**{rule.level.capitalize()}**{allowed}{stops}.\n{body}"


def heading(rule: Rule) -> str:
    """Return the heading of a rule's section."""
    return f'## {rule.id}: {rule.title} <a id="{rule.id.lower()}"></a>'


def _example(rule: Rule, case: str, elision: str) -> str:
    """Return the block of an example; an elision replaces the excerpts of the file."""
    lines = paragraphs((BAD / case / "expected.txt").read_text(encoding="utf-8"), rule.id)
    output = "".join(f"{line}\n" for line in lines)
    if elision:
        output = _EXCERPT.sub("...\n", output)
    return f"<!-- example: {case}{elision} -->\n```text\n{output}```\n"


def paragraphs(output: str, id_: str) -> list[str]:
    """Return the lines of an output that belong to findings of one id, without the summary."""
    kept: list[str] = []
    is_kept = False
    for line in output.splitlines():
        if head := _FINDING.match(line):
            is_kept = head[1] == id_
            kept += [""] if is_kept and kept and kept[-1] else []
        elif _SUMMARY.match(line):
            is_kept = False
        if is_kept and (line or kept[-1:] != [""]):
            kept.append(line)
    return kept[:-1] if kept[-1:] == [""] else kept


def index(pages: Mapping[str, str]) -> str:
    """Return the text of the index: one table of all findings on the pages, which are given as name and text."""
    page_of = {id_: name for name, text in pages.items() for id_ in _ids(text)}
    return _INTRO + "".join(_row(RULES[id_], page_of[id_]) for id_ in RULES if id_ in page_of)


def _ids(page: str) -> list[str]:
    return [mark[1] for mark in _HEAD.finditer(page) if mark[1] in RULES]


def _row(rule: Rule, page: str) -> str:
    level = f"{rule.level}, can be allowed" if rule.allowable else rule.level
    return f"| [{rule.id}]({page}#{rule.id.lower()}) | {level} | {rule.title} |\n"


def differing() -> OutdatedPages:
    """Yield the outdated pages with their expected text."""
    written = {
        path: refreshed(path.read_text(encoding="utf-8"))
        for path in PAGES.glob("*.md")
        if path.name != INDEX
    }
    return outdated_pages(
        {PAGES / INDEX: index({path.name: text for path, text in written.items()}), **written}
    )


def main(arguments: list[str] | None = None) -> int:
    """Write or check the pages; return the exit status."""
    return write_or_check("Generate parts of docs/findings.", differing, ROOT, arguments)


if __name__ == "__main__":
    sys.exit(main())
