"""Message types of gcloud, generated from a discovery document by google-apitools.

gcloud's types for an API are generated from the discovery document; this module runs that generator on the document.
The types store unknown fields and unknown enum values separately without an error, so gcloud does not report them; this
module reads what they stored and reports it as an error.

Covered: unknown fields and snake_case, enum values, types. Not covered: which fields are required.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from apitools.base.protorpclite.messages import Error, Message
from apitools.base.py import encoding

_REFERENCE: Final = re.compile(r'"\$ref": "(\w+)"')
"""A use of another message in a schema."""


def type_errors(api: str, version: str, message: str, data: object) -> list[str]:
    """Return the errors of data as a message of an API."""
    try:
        value = encoding.PyValueToMessage(getattr(_types(api, version, message), message), data)
    except (Error, TypeError, ValueError, AttributeError) as refusal:
        return [f"{type(refusal).__name__}: {refusal}"]
    return [f"not known: {location}" for location in _unknown_values(value, "")]


def _unknown_values(message: Message, location: str) -> Iterator[str]:
    """Yield the paths of values that the message stored as unknown."""
    yield from (f"{location}{name}" for name in message.all_unrecognized_fields())
    for field in message.all_fields():
        value = getattr(message, field.name)
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, Message):
                yield from _unknown_values(item, f"{location}{field.name}.")


@cache
def _types(api: str, version: str, message: str) -> ModuleType:
    """Return the module of message types that gcloud's generator creates from the discovery document.

    It has a message and those in it: for all messages and methods of Compute Engine, the generator takes 18 seconds.
    """
    path = files("googleapiclient.discovery_cache").joinpath("documents", f"{api}.{version}.json")
    document = json.loads(path.read_text(encoding="utf-8"))
    document["schemas"] = _schemas_of(message, document["schemas"])
    document["resources"] = {}
    name = f"{api}_{version}_messages"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "discovery.json")
        source.write_text(json.dumps(document), encoding="utf-8")
        options = [f"--infile={source}", f"--outdir={folder}/made", "--root_package=made", "client"]
        command = [
            sys.executable,
            "-c",
            "from apitools.gen.gen_client import main; main()",
            *options,
        ]
        subprocess.run(command, check=True, capture_output=True)
        spec = spec_from_file_location(f"{name}_of_{message}", Path(folder, "made", f"{name}.py"))
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[spec.name] = module_from_spec(
            spec
        )  # apitools looks message types up by module name
        spec.loader.exec_module(module)
    return module


def _schemas_of(message: str, schemas: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schemas of a message, whose name has no underscores in the generated module, and of those in it."""
    parts: dict[str, Any] = {}
    missing = {name for name in schemas if name.replace("_", "") == message}
    while missing:
        name = missing.pop()
        parts[name] = schemas[name]
        missing |= {*_REFERENCE.findall(json.dumps(schemas[name]))} - parts.keys()
    return parts
