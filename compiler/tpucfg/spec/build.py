"""A sound document to the Project that it describes."""

from collections.abc import Mapping
from typing import Any

from tpucfg.spec.document import Document, Path
from tpucfg.spec.model import OVERRIDABLE, Arg, Environment, Gate, Number, Override, Project, Trainer, Training


def project_of(document: Document, broken: frozenset[str]) -> Project:
    """The project. `broken`: the sections for which stand-ins are there.

    The order of keys in a spec means nothing, so it is lost here; only args are a list of flags and keep theirs.
    """
    data = document.data
    gate = data.get("gate")
    return Project(
        name=data["name"],
        environments={name: _environment(name, value, data) for name, value in sorted(data["environments"].items())},
        trainer=_trainer(document, data["trainer"]),
        training=_training(document, data["training"]),
        overrides={size: _override(document, size, value) for size, value in data.get("overrides", {}).items()},
        targets=_ordered(data.get("targets", {})),
        gate=Gate(*(gate.get(key) for key in ("min_scaling_efficiency", "metric", "goal", "max_drop")))
        if gate
        else None,
        prices={name: _number(document, ("prices", name)) for name in data.get("prices", {})},
        allow=data.get("allow", {}),
        document=document,
        broken=broken,
    )


def _environment(name: str, value: Mapping[str, Any], data: Mapping[str, Any]) -> Environment:
    return Environment(
        name=name,
        project=value["project"],
        region=value["region"],
        target=value.get("target", data["target"]),
        sizes=tuple(value["sizes"] if "sizes" in value else data["sizes"]),
        sizes_path=("environments", name, "sizes") if "sizes" in value else ("sizes",),
        bucket=value.get("bucket"),
        zones=value.get("zones", {}),
        labels=_ordered(value.get("labels", {})),
        protect=value.get("protect", False),
        keep_data=value.get("keep_data", True),
        kube_context=value.get("kube_context"),
    )


def _trainer(document: Document, value: Mapping[str, Any]) -> Trainer:
    texts = {key: value.get(key) for key in ("image", "worker_image", "package", "module", "runtime", "python")}
    env = tuple(sorted(value.get("env", {}).items()))
    return Trainer(**texts, args=_args(document, ("trainer", "args")), env=env)


def _training(document: Document, value: Mapping[str, Any]) -> Training:
    return Training(
        tuned_on=value["tuned_on"],
        batch_size=int(value["batch_size"]),
        train_steps=int(value["train_steps"]) if "train_steps" in value else None,
        epochs=_number(document, ("training", "epochs")) if "epochs" in value else None,
        learning_rate=_number(document, ("training", "learning_rate")) if "learning_rate" in value else None,
        learning_rate_rule=value.get("learning_rate_rule", "keep"),
        steps={key: int(count) for key, count in sorted(value.get("steps", {}).items())},
        flags=value.get("flags", {}),
    )


def _override(document: Document, size: str, value: Mapping[str, Any]) -> Override:
    path = ("overrides", size)
    return Override(
        batch_size=int(value["batch_size"]) if "batch_size" in value else None,
        learning_rate=_number(document, (*path, "learning_rate")) if "learning_rate" in value else None,
        machine=value.get("machine"),
        steps={key: int(count) for key, count in value.items() if key not in OVERRIDABLE},
        args=_args(document, (*path, "args")),
    )


def _number(document: Document, path: Path) -> Number:
    return Number.read(document.written(path))


def _args(document: Document, path: Path) -> tuple[Arg, ...]:
    node = document.node(path)
    return tuple(Arg(key, _values(document, (*path, key)), (*path, key)) for key in (node.keys if node else ()))


def _values(document: Document, path: Path) -> tuple[str | None, ...]:
    node = document.node(path)
    children = node.children if node is not None and isinstance(node.value, list) else (node,)
    return tuple(_argument(child) for child in children)


def _argument(node: Any) -> str | None:
    """As the program's command line has it: true and false in lower case, a number as the spec writes it."""
    if node.value is None or isinstance(node.value, str):
        return node.value
    return str(node.value).lower() if isinstance(node.value, bool) else str(node.text)


def _ordered(value: Any) -> Any:
    """Plain data with the keys of every mapping sorted; lists keep their order."""
    if isinstance(value, dict):
        return {key: _ordered(item) for key, item in sorted(value.items())}
    return [_ordered(item) for item in value] if isinstance(value, list) else value
