"""Resources that the stack programs of the attacks declare, as data, so that a test of an attack starts no program.

`recorded/template.json` has the output of `tpucfg infra --format json` for the project of `tpucfg init`, the file of an
attack what differs from it in its base and in its head. `pytest --write-goldens tests/attacks` records them again.
"""

import json
import os
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, Final

from repositories import Repository
from tpucfg.cli.app import run

_FOLDER: Final = Path(__file__).parent / "recorded"
_TEMPLATE: Final = _FOLDER / "template.json"
_RESOURCES: Final = "resources"
_Documents = list[dict[str, Any]]


def declare(repository: Repository) -> _Documents:
    """Run the stack programs of a working tree, and return the documents of its specs."""
    files = repository.git("ls-files", "-z", "--", "tpucfg.yaml", "*/tpucfg.yaml").split("\0")
    documents = []
    for spec in filter(None, files):
        printed = StringIO()
        with redirect_stdout(printed), redirect_stderr(StringIO()):
            run(["infra", "--spec", spec, "--format", "json"])
        if printed.getvalue():
            document = json.loads(printed.getvalue())
            documents.append({key: document[key] for key in ("spec", "environments")})
    return documents


def record_template(repository: Repository) -> None:
    """Record the project that all attacks start from."""
    _FOLDER.mkdir(exist_ok=True)
    _write(_TEMPLATE, declare(repository))


def record(name: str, base: _Documents | None, head: _Documents) -> None:
    """Record base and head of an attack; neither, if both are as in the template, which None stands for."""
    (template,) = _read(_TEMPLATE)
    revisions = (base or [template], head)
    differing = [
        [_without_template(document, template) for document in documents] for documents in revisions
    ]
    path = _FOLDER / f"{name}.json"
    path.unlink(missing_ok=True)
    if any(documents != [{"spec": template["spec"]}] for documents in differing):
        _write(path, differing)


def write_resources(name: str, folder: Path) -> list[str]:
    """Write the files of base and head, and return their paths for `tpucfg review --resources`."""
    (template,) = _read(_TEMPLATE)
    path = _FOLDER / f"{name}.json"
    differing = _read(path) if path.exists() else [[{"spec": template["spec"]}]] * 2
    paths = [folder / "base.json", folder / "head.json"]
    for file, documents in zip(paths, differing, strict=True):
        whole = [_with_template(document, template) for document in documents]
        file.write_text("\n".join(json.dumps(document) for document in whole))
    return [*map(str, paths)]


def _read(path: Path) -> Any:
    return json.loads(path.read_text())


def _write(path: Path, data: Any) -> None:
    # In one step, as other workers read the template.
    new = path.with_suffix(f".{os.getpid()}")
    new.write_text(json.dumps(data, ensure_ascii=False, sort_keys=True) + "\n")
    new.replace(path)


def _without_template(document: dict[str, Any], template: dict[str, Any]) -> dict[str, Any]:
    """Return a document with what its environments have in common with the template left out."""
    known = {item["name"]: item for item in template["environments"]}
    environments = [_less(item, known.get(item["name"])) for item in document["environments"]]
    is_equal = environments == [{"name": name} for name in known]
    return {"spec": document["spec"], **({} if is_equal else {"environments": environments})}


def _less(item: dict[str, Any], known: dict[str, Any] | None) -> dict[str, Any]:
    if known is None or _RESOURCES not in item:
        return item
    less = {key: value for key, value in item.items() if key == "name" or value != known[key]}
    if _RESOURCES in less:
        old, new = known[_RESOURCES], item[_RESOURCES]
        less["without"] = [index for index, resource in enumerate(old) if resource not in new]
        less[_RESOURCES] = [resource for resource in new if resource not in old]
    return less


def _with_template(document: dict[str, Any], template: dict[str, Any]) -> dict[str, Any]:
    known = {item["name"]: item for item in template["environments"]}
    environments = document.get("environments", [{"name": name} for name in known])
    whole = [
        item if "problem" in item or item["name"] not in known else _more(item, known)
        for item in environments
    ]
    return {"spec": document["spec"], "environments": whole, "findings": []}


def _more(item: dict[str, Any], known: dict[str, dict[str, Any]]) -> dict[str, Any]:
    template = known[item["name"]]
    kept = [
        resource
        for index, resource in enumerate(template[_RESOURCES])
        if index not in item.get("without", ())
    ]
    more = {key: value for key, value in item.items() if key not in {_RESOURCES, "without"}}
    return {**template, **more, _RESOURCES: [*kept, *item.get(_RESOURCES, ())]}
