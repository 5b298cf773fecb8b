"""Compare the behaviour with the frozen data, or write it: `python tests/frozen/freeze.py [--write] [GROUP...]`.

Prints each difference by case, and exits with 1 if one is not listed in gone.yaml. The groups review and attacks run
the stack programs of several hundred revisions, which takes minutes; `--only PATTERN` chooses among their cases.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from frozen.compare import differences, read_gone, unlisted
from frozen.observe import FROZEN, GROUPS, Case, observations


def main() -> int:
    """Run the command line and return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "groups", nargs="*", choices=[*GROUPS, []], metavar="GROUP", help=", ".join(GROUPS)
    )
    parser.add_argument(
        "--write", action="store_true", help="write the data instead of comparing with it"
    )
    parser.add_argument("--compare", action="store_true", help="compare, which is the default")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="cases, such as 'access-*'")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="processes [default: 2]")
    options = parser.parse_args()
    failed = False
    unused = {*read_gone()} if not options.write and options.only == "*" else set()
    for group in options.groups or GROUPS:
        observed = dict(observe(group, options.only, options.jobs))
        if options.write:
            write(group, observed if options.only == "*" else {**read(group), **observed})
            continue
        frozen = {
            name: case for name, case in read(group).items() if fnmatchcase(name, options.only)
        }
        different = unlisted(group, frozen, observed)
        every = [*differences(group, frozen, observed)]
        unused -= {entry for entry in unused if any(map(entry.covers, every))}
        for difference in different:
            sys.stdout.write(f"{group}/{difference.case}: {difference.what}\n")
        listed = len(every) - len(different)
        sys.stderr.write(
            f"{group}: {len(different)} differences, and {listed} that gone.yaml lists\n"
        )
        failed |= bool(different)
    for entry in sorted(
        entry for entry in unused if entry.cases.startswith(tuple(options.groups or GROUPS))
    ):
        sys.stderr.write(
            f"gone.yaml lists a difference that does not exist: {entry.cases}: {entry.what}\n"
        )
    return int(failed)


def observe(group: str, only: str, jobs: int) -> Iterator[tuple[str, Case]]:
    """Yield the behaviour in the cases of a group whose names match a pattern."""
    names = [name for name in observations(group) if fnmatchcase(name, only)]
    with ProcessPoolExecutor(jobs) as pool:
        yield from zip(names, pool.map(observe_case, [group] * len(names), names), strict=True)


def observe_case(group: str, name: str) -> Case:
    """Return the behaviour in one case."""
    return observations(group)[name]()


def read(group: str) -> dict[str, Case]:
    """Return the frozen data of a group."""
    data: dict[str, Case] = json.loads((FROZEN / f"{group}.json").read_text())
    return data


def write(group: str, observed: Mapping[str, Case]) -> None:
    """Write the frozen data of a group, with a line for each finding, statement and config."""
    cases = ",\n".join(
        f"{json.dumps(name)}: {{\n{_fields(case)}\n}}" for name, case in sorted(observed.items())
    )
    (FROZEN / f"{group}.json").write_text(f"{{\n{cases}\n}}\n")


def _fields(case: Case) -> str:
    return ",\n".join(
        f" {json.dumps(name)}: {_value(value)}" for name, value in sorted(case.items())
    )


def _value(value: Any) -> str:
    if isinstance(value, list) and value:
        return (
            "[\n"
            + ",\n".join(f"  {json.dumps(item, ensure_ascii=False)}" for item in value)
            + "\n ]"
        )
    if isinstance(value, dict):
        rows = (f"  {json.dumps(key)}: {json.dumps(item)}" for key, item in value.items())
        return "{\n" + ",\n".join(rows) + "\n }"
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    sys.exit(main())
