"""ai-platform: the `ml.v1` client's request builder, and the message types of gcloud.

The service has no protobuf package, and the request builder sends any body. gcloud's types for it are generated from
the discovery document by google-apitools; this module runs that generator on the document. The types store unknown
fields and unknown enum values separately without an error, so gcloud does not report them; this module reads what
they stored and reports it as an error.

Covered: unknown fields and snake_case, enum values, types. Not covered: which fields are required.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import httplib2
from apitools.base.protorpclite.messages import Error, Message
from apitools.base.py import encoding
from googleapiclient.discovery import build

from official.reading import as_data

API = "ml", "v1"


def refusals(configs: Sequence[str | Mapping[str, Any]]) -> list[list[str]]:
    """Return the errors of each config."""
    return [[*_type_errors(data), *_builder_errors(data)] for data in map(as_data, configs)]


def _type_errors(data: object) -> list[str]:
    try:
        job = encoding.PyValueToMessage(_types().GoogleCloudMlV1Job, data)
    except (Error, TypeError, ValueError, AttributeError) as refusal:
        return [f"{type(refusal).__name__}: {refusal}"]
    return [f"not known: {location}" for location in _unknown_values(job, "")]


def _unknown_values(message: Message, location: str) -> Iterator[str]:
    """Yield the paths of values that the message stored as unknown."""
    yield from (f"{location}{name}" for name in message.all_unrecognized_fields())
    for field in message.all_fields():
        value = getattr(message, field.name)
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, Message):
                yield from _unknown_values(item, f"{location}{field.name}.")


def _builder_errors(data: object) -> list[str]:
    service = _service()
    try:
        request = service.projects().jobs().create(parent="projects/p", body=data)
    except (TypeError, ValueError) as refusal:
        return [f"{type(refusal).__name__}: {refusal}"]
    return [] if json.loads(request.body) == data else ["the request builder sends another body"]


@cache
def _service() -> Any:
    return build(*API, static_discovery=True, http=httplib2.Http())


@cache
def _types() -> ModuleType:
    """Return the module of message types that gcloud's generator creates from the discovery document."""
    document = files("googleapiclient.discovery_cache").joinpath("documents", "{}.{}.json".format(*API))
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "discovery.json")
        source.write_text(document.read_text(encoding="utf-8"), encoding="utf-8")
        options = [f"--infile={source}", f"--outdir={folder}/made", "--root_package=made", "client"]
        command = [sys.executable, "-c", "from apitools.gen.gen_client import main; main()", *options]
        subprocess.run(command, check=True, capture_output=True)
        spec = spec_from_file_location("ml_v1_messages", Path(folder, "made", "ml_v1_messages.py"))
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[spec.name] = module_from_spec(spec)  # apitools looks message types up by module name
        spec.loader.exec_module(module)
    return module
