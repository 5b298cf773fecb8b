"""Write `schema/<target>.schema.json`: the request body of each target's API, as a JSON Schema.

No part of these files is written by hand. The sources are data that Google and Kubernetes publish in two packages (the
dependency group `schemas`, pinned, because another version gives another schema), and for the JobSet envelope and the
objects that provide secrets the tables in `apischema/jobset.py` and `apischema/secrets.py`.

    python tools/api_schemas.py            writes the files that differ
    python tools/api_schemas.py --check    writes nothing; exits 1 and prints the names of the files that differ
"""

import argparse
import difflib
import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from apischema import Schema, discovery, jobset, patterns, secrets

SCHEMA_DIR = Path(__file__).resolve().parent.parent / "schema"
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schemas() -> dict[str, Schema]:
    """Return the schema of every target by the target's name, and of the objects beside its request body by theirs."""
    bodies = {root.target: discovery.message_schema(root) for root in discovery.ROOTS}
    bodies[discovery.COMPUTE_ENGINE.target] = discovery.documents_schema(discovery.COMPUTE_ENGINE)
    bodies |= {"gke": jobset.schema(), **secrets.schemas()}
    return {
        name: {
            "$schema": DIALECT,
            "$id": f"urn:tpucfg:schema:{name}",
            **patterns.with_messages(body),
        }
        for name, body in bodies.items()
    }


def to_text(schema: Schema) -> str:
    """Return the schema as JSON, sorted, one line to a field, so that a new version of an API reads as a short diff."""
    return _lines(schema, "") + "\n"


def _lines(value: object, indent: str) -> str:
    if not isinstance(value, dict) or not _is_broken(value):
        return json.dumps(value, sort_keys=True, ensure_ascii=False)
    deeper = indent + "  "
    members = ",\n".join(
        f"{deeper}{json.dumps(key)}: {_lines(value[key], deeper)}" for key in sorted(value)
    )
    return f"{{\n{members}\n{indent}}}"


def _is_broken(value: Schema) -> bool:
    """Return True for a message, or a table of messages or fields; any other object is written on one line."""
    return "properties" in value or (
        bool(value) and all(isinstance(member, dict) for member in value.values())
    )


def differences(path: Path, text: str) -> Iterator[str]:
    """Yield the lines of a unified diff between the file and its expected text."""
    committed = path.read_text(encoding="utf-8") if path.exists() else ""
    return difflib.unified_diff(
        committed.splitlines(), text.splitlines(), "committed", "generated", lineterm="", n=0
    )


def main(arguments: list[str] | None = None) -> int:
    """Write or check the files; return the exit status."""
    parser = argparse.ArgumentParser(
        description="Generate the JSON Schemas of the targets' request bodies."
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if a file would change"
    )
    check = parser.parse_args(arguments).check
    stale = 0
    for name, schema in schemas().items():
        path, text = SCHEMA_DIR / f"{name}.schema.json", to_text(schema)
        shown = list(islice(differences(path, text), 12))
        if not shown:
            continue
        stale += 1
        if check:
            print(
                f"schema/{path.name} differs from the output of tools/api_schemas.py with the pinned packages:",
                file=sys.stderr,
            )
            print(*(f"  {line[:160]}" for line in shown), sep="\n", file=sys.stderr)
        else:
            path.write_text(text, encoding="utf-8")
            print(f"wrote schema/{path.name}")
    if check and stale:
        print("run: pip install --group schemas && python tools/api_schemas.py", file=sys.stderr)
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
