"""Keep the generated parts of docs/findings true: a page's title and level, its example, and the index.

A page is written by hand but for what stands between these marks, which comes from `findings/rules.py` and from the
corpus in tests/bad, whose outputs are tested:

    <!-- level -->            what a finding with this id does, and whether it can be allowed
    <!-- example: CASE -->    the case's spec, as much of it as the output is about, and what is said about it
    <!-- fix: CASE -->        the difference between the case's spec and its fixed.yaml
    <!-- end -->              ends each of them

    python tools/finding_pages.py            writes the pages that differ
    python tools/finding_pages.py --check    writes nothing; exits 1 and names them
"""

import difflib
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from generated import Differing, keep, not_as

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "compiler")]

from tpucfg.findings import RULES, Rule  # noqa: E402 - the script runs in a checkout that is not installed

PAGES: Final = ROOT / "docs" / "findings"
BAD: Final = ROOT / "tests" / "bad"
INDEX: Final = "index.md"
LONGEST: Final = 40
"""Lines of a file that is shown whole."""

_MARKED: Final = re.compile(r"<!-- (\w+)(?:: (\S+))? -->\n.*?<!-- end -->\n", re.DOTALL)
_LEVELS: Final = {
    "error": "An error: nothing is rendered until it is fixed.",
    "warning": "A warning: it stops nothing.",
    "note": "A note: it stops nothing.",
}
_NOT_OF_THE_SPEC: Final = {
    "TPU100": "with a gate, no rung but the first is started until it is fixed.",
    "TPU090": "`tpucfg infra` ends with 1 until it is fixed, and `tpucfg review` shows it as a caution.",
    "TPU084": "`tpucfg check --stack-outputs` ends with 1 until it is fixed.",
    "TPU080": "`tpucfg check` ends with 1 until it is fixed.",
}
"""What an error does that is not about the spec or a config, by the first id of its kind, the last kind first."""
_INTRO: Final = """\
# Findings

Everything that `tpucfg` has to say about a spec, a config or a stack is a finding: an id, a sentence with the value
that was found and the numbers of the rule, the place, and the edit that ends it. `tpucfg explain ID` prints its page.

- An **error** of a spec or a config stops every command but `check`, which prints all of them and exits with 1. A
  **warning** stops nothing.
- `check` looks at the stack files too (`TPU080` to `TPU083`), and not at the resources: what is wrong with those
  (`TPU090` to `TPU095`) is said by `tpucfg infra` and `tpucfg review`, which run the stack program.
- A finding that is a matter of judgement can be **allowed** with a reason, and becomes a note that carries it.
- `tpucfg check --format json|sarif|github` prints the same for programs, code scanning and the lines of a pull request.

```yaml
allow:
  TPU021: quota granted in us-west9
```

| id | | |
|---|---|---|
"""


def refreshed(page: str, rule: Rule) -> str:
    """The text of a rule's page with its generated parts as they should be."""
    _, _, body = page.partition("\n")
    return f"# {rule.id}: {rule.title}\n" + _MARKED.sub(lambda mark: _part(mark, rule), body)


def index() -> str:
    """The page that lists all findings."""
    return _INTRO + "".join(
        f"| [{rule.id}]({rule.id}.md) | {rule.level}{', can be allowed' if rule.allowable else ''} | {rule.title} |\n"
        for rule in RULES.values()
    )


def _part(mark: re.Match[str], rule: Rule) -> str:
    kind, case = mark.groups()
    lines = "".join(f"{line}\n" for line in _PARTS[kind](rule, case))
    return f"<!-- {kind}{f': {case}' if case else ''} -->\n{lines}<!-- end -->\n"


def _level(rule: Rule, _: str | None) -> Iterator[str]:
    elsewhere = next((does for first, does in _NOT_OF_THE_SPEC.items() if rule.id >= first), None)
    level = _LEVELS[rule.level]
    if elsewhere and rule.level == "error":
        level = f"An error: {elsewhere} Everything is rendered all the same."
    allowed = " It is a matter of judgement: `allow` in the spec turns it into a note, with your reason."
    yield level + (allowed if rule.allowable else "")


def _example(rule: Rule, case: str | None) -> Iterator[str]:
    folder = BAD / str(case)
    output = paragraphs((folder / "expected.txt").read_text(encoding="utf-8"), rule.id)
    yield from _spec(folder, output)
    yield "```text"
    yield from output
    yield "```"


def paragraphs(output: str, id_: str) -> list[str]:
    """The lines of an output that are about one id, without the summary at its end."""
    found: list[str] = []
    taken = False
    for line in output.splitlines():
        if head := re.match(r"\S+:\d+:\d+: \w+\[(TPU\d+)\]: ", line):
            taken = head[1] == id_
            found += [""] if taken and found and found[-1] else []
        elif re.match(r"\S.*: (no findings|\d+ (errors?|warnings?|notes?))", line):
            taken = False
        if taken and (line or found[-1:] != [""]):
            found.append(line)
    return found[:-1] if found[-1:] == [""] else found


def _spec(folder: Path, output: list[str]) -> Iterator[str]:
    """The file that the output is about: the sections that it shows, or the whole where it is no spec."""
    head = re.match(r"(\S+?):\d+:", output[0])
    file = folder / (head[1] if head else "tpucfg.yaml")
    if not file.is_file():
        return
    rows = file.read_bytes().decode("utf-8", "replace").removeprefix("\ufeff").splitlines()
    shown = {int(number) - 1 for line in output if (number := (re.match(r" *(\d+) \|", line) or [0, 0])[1])}
    kept = _sections(rows, shown) if file.name == "tpucfg.yaml" else list(range(len(rows)))
    if not shown or not kept or len(kept) > LONGEST or max(len(rows[at]) for at in kept) > 200:  # noqa: PLR2004 - no page is wider
        return
    yield f"```{file.suffix[1:]}"
    for at in kept:
        yield "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in rows[at])
    yield "```"
    yield ""


def _sections(rows: list[str], shown: set[int]) -> list[int]:
    """The lines of the sections in which the shown lines stand."""
    starts = [at for at, row in enumerate(rows) if re.match(r"[^\s#-]", row)] or [0]
    wanted = {max((start for start in starts if start <= at), default=0) for at in shown}
    ends = dict(zip(starts, [*starts[1:], len(rows)], strict=True))
    return [at for start in starts if start in wanted for at in range(start, ends[start])]


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


def differing() -> Differing:
    """The pages that are not as they should be, with the text that they should have."""
    wanted = {PAGES / INDEX: index()}
    for rule in RULES.values():
        path = PAGES / f"{rule.id}.md"
        if path.exists():
            wanted[path] = refreshed(path.read_text(encoding="utf-8"), rule)
    return not_as(wanted)


def main(arguments: list[str] | None = None) -> int:
    """Write or check the pages; return the exit status."""
    return keep("Keep the generated parts of docs/findings true.", differing, ROOT, arguments)


if __name__ == "__main__":
    sys.exit(main())
