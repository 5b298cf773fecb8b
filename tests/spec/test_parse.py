"""A document becomes a project with every field of the spec, checked by the schema and the semantic rules."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from spec_factory import ROOT, WITHOUT, finding_with_id, ids, loaded, planned, project, spec
from tpucfg import schemas
from tpucfg.schemas import resolve_references
from tpucfg.spec.layers import LAYERED
from tpucfg.spec.parse import load_project, project_from_document
from tpucfg.spec.presets import PRESETS
from tpucfg.spec.project import (
    Cluster,
    Environment,
    Gate,
    Number,
    Override,
    Probe,
    Project,
    StepSetting,
    Training,
    overridable,
)
from tpucfg.spec.settings import Arg, Capacity, Duration, ExitCodes, FitStep, Mount, Secret, Trainer
from tpucfg.yamldoc.reader import read_file

MAXTEXT = PRESETS["maxtext"]
EVERY_KEY = Path(__file__).parent / "every_key.yaml"


@pytest.fixture(name="full")
def _full() -> Project:
    loaded_project, findings = load_project(EVERY_KEY)
    assert loaded_project is not None, findings
    assert findings == ()
    return loaded_project


def test_the_trainer_keeps_its_args_in_order(full: Project) -> None:
    """Args keep their order and source text: a list is several values, null a bare flag, booleans are lower case."""
    path = ("trainer", "args")
    assert full.base.trainer == Trainer(
        image="us-docker.pkg.dev/my-project/train/mnist:1.0",
        worker_image="us-docker.pkg.dev/my-project/train/mnist-tpu:1.0",
        package="gs://b/trainer-0.1.tar.gz",
        module="trainer.task",
        command=(),
        arg_style="--key=value",
        runtime="2.2",
        python="3.7",
        args=(
            Arg("distribution_strategy", ("tpu",), (*path, "distribution_strategy")),
            Arg("data_dir", ("${bucket}/data",), (*path, "data_dir")),
            Arg("rates", ("1e-3", "0x1F", ".50", "true", "no"), (*path, "rates")),
            Arg("bare", (None,), (*path, "bare")),
            Arg("use_tpu", ("true",), (*path, "use_tpu")),
            Arg("text", ("1e-3",), (*path, "text")),
            Arg("empty", (), (*path, "empty")),
            Arg("base_output_directory", ("${run_root}",), ("training", "flags")),
            Arg("run_name", ("${run_folder}",), ("training", "flags")),
        ),
        env=(("A", ""), ("TF_CPP_MIN_LOG_LEVEL", "2")),
        secrets=(
            Secret("HF_TOKEN", project="shared", name="hf", version="latest"),
            Secret("WANDB_API_KEY", project=None, name="wandb", version="3"),
        ),
        mounts=(Mount("/data", "${bucket}/data"),),
        xla_flags={"v2": ("--xla_a=true", "--xla_b=1")},
        restarts=3,
        exit_codes=ExitCodes((42, 250, 251, 252, 255), "255, 42, 250-252"),
        max_run_duration=Duration(43_200, "12h"),
        fit=FitStep("trainer.fit:abstract_step", ".venv/bin/python"),
    )


def test_training_settings_are_exact(full: Project) -> None:
    """Counts are integers in any notation; rates are exact, with their source text."""
    assert full.training == Training(
        tuned_on="v2-8",
        batch_size=1024,
        per_device_batch_size=None,
        batch_rule="keep",
        grad_accum=2,
        model_parallel=4,
        sequence_length=512,
        train_steps=4000,
        train_tokens=None,
        epochs=None,
        learning_rate=Number(Fraction(1, 10), "1e-1"),
        learning_rate_rule="linear",
        steps={
            "warmup_steps": StepSetting(200),
            "save_checkpoints_steps": StepSetting(500, scaled=False),
        },
        flags={**MAXTEXT.flags, "batch_size": "train_batch_size", "train_steps": None},
        preset=MAXTEXT,
    )
    assert isinstance(full.training.train_steps, int)


def test_environments_inherit_from_the_top_level(full: Project) -> None:
    """A setting that an environment does not have is that of the top level, or its default."""
    assert list(full.environments) == ["dev", "prod", "staging"]
    assert full.environments["dev"] == Environment(
        name="dev",
        project="my-project-dev",
        region="us-central1",
        target="vertex-ai",
        sizes=("v2-8", "v2-32", "v2-128"),
        sizes_path=("sizes",),
        bucket=None,
        creates_bucket=True,
        kms_key=None,
        soft_delete_days=None,
        reads={},
        grants_images=True,
        zones={},
        labels={},
        protect=False,
        keep_data=True,
        cluster=None,
        kube_context=None,
    )
    assert full.environments["prod"] == Environment(
        name="prod",
        project="example.com:my-project-prod",
        region="europe-west4",
        target="gke",
        sizes=("v3-8", "v3-32"),
        sizes_path=("environments", "prod", "sizes"),
        bucket="my-bucket",
        creates_bucket=False,
        kms_key="projects/my-project/locations/europe-west4/keyRings/train/cryptoKeys/checkpoints",
        soft_delete_days=14,
        reads={"gs://acme-datasets": "europe-west4"},
        grants_images=False,
        zones={"v3-32": "europe-west4-a"},
        labels={"team": "vision", "cost-centre": "12"},
        protect=True,
        keep_data=False,
        cluster=Cluster("my-project-prod", "europe-west4", "train"),
        kube_context="gke_my-project-prod_europe-west4_train",
    )


def test_the_other_sections_are_read(full: Project) -> None:
    """Overrides, gate, prices, allowed findings and target settings are in the project."""
    assert full.name == "mnist"
    assert full.overrides == {
        "v2-128": Override(
            batch_size=8192,
            learning_rate=Number(Fraction(2, 5), "0.40"),
            grad_accum=4,
            model_parallel=2,
            machine="some-machine",
            topology="4x8",
            fallback=("v2-32",),
            steps={"warmup_steps": 10},
        ),
        "v3-32": Override(steps={}),
    }
    assert full.probe == Probe(50)
    assert full.gate == Gate(
        min_scaling_efficiency=0.8,
        metric="accuracy",
        goal="max",
        max_drop=0.01,
        fit=True,
        same_image=True,
        max_usd=2000,
    )
    assert set(full.prices["v2"].values()) == {Number(Fraction(3, 2), "1.50")}
    assert {kind: price.text for kind, price in full.prices["v3"].items()} == {
        "on-demand": "2.2",
        "spot": "0.66",
        "flex-start": "1.1",
        "reservation": "1.8",
    }
    assert full.allow["TPU021"].reason == "quota granted"
    (place,) = full.allow["TPU017"].places
    assert place.line == place.end_line
    assert full.base.targets["compute-engine"]["disk_gb"] == 500
    assert full.base.targets["ai-platform"] == {
        "machine": "compute-engine",
        "extra": {"a": {"b": [1]}},
    }


def test_every_layer_has_a_part(full: Project) -> None:
    """A rung's settings are those of the top, its environment, its size, and its size in that environment."""
    rung = full.settings["staging", "v2-32"]
    assert (rung.capacity, rung.trainer.restarts) == (Capacity(is_set=False), 0)
    assert rung.trainer.max_run_duration == Duration(172_800, "2d")
    assert rung.trainer.env == (("A", "1"), ("TF_CPP_MIN_LOG_LEVEL", "2"))
    assert {
        key: rung.targets["cloud-tpu"].get(key) for key in ("tags", "subnetwork", "external_ips")
    } == {
        "tags": ["staging"],
        "subnetwork": None,
        "external_ips": True,
    }
    assert full.settings["staging", "v2-8"].capacity == Capacity("reservation", "mnist-2026")
    assert full.settings["prod", "v3-32"].capacity == Capacity("spot")

    large = full.settings["dev", "v2-128"].trainer
    assert dict(large.env)["A"] == "2"
    flags = {arg.key: arg for arg in large.args}
    assert flags["data_dir"] == Arg(
        "data_dir", ("/other",), ("overrides", "v2-128", "args", "data_dir")
    )
    assert "bare" not in flags


def test_probe_args_are_the_last_layer(full: Project) -> None:
    """A probe has the arguments of the rung, with its own merged into them, then those that its preset adds."""
    args = {arg.key: arg for arg in full.with_probe_args().settings["dev", "v2-128"].trainer.args}
    assert args["data_dir"].values == ("/other",)
    assert args["profiler"] == Arg("profiler", ("xplane",), ("probe", "args", "profiler"))
    assert "use_tpu" not in args
    assert [*args][-2:] == ["enable_checkpointing", "learning_rate_schedule_steps"]
    assert "profiler" not in {arg.key for arg in full.settings["dev", "v2-128"].trainer.args}


def test_words_of_a_probe_follow_those_of_the_program() -> None:
    """A list is appended to a list, each word with its own path."""
    listed = project(
        spec(trainer__args=["a.yml", "x=1"], probe={"steps": 5, "args": ["profiler=xplane"]})
    )
    assert listed.with_probe_args().settings["dev", "v2-8"].trainer.args == (
        Arg("", ("a.yml",), ("trainer", "args", 0)),
        Arg("", ("x=1",), ("trainer", "args", 1)),
        Arg("", ("profiler=xplane",), ("probe", "args", 0)),
    )


@pytest.mark.parametrize(
    ("args", "of_probe", "kinds"),
    [({"a": "1"}, ["b"], ("a list", "a mapping")), (["a"], {"b": 1}, ("a mapping", "a list"))],
)
def test_args_of_another_kind_cannot_be_merged(
    args: Any, of_probe: Any, kinds: tuple[str, str]
) -> None:
    """A mapping over a list, and a list over a mapping, is an error in probe.args."""
    data = spec(trainer__args=args, probe={"steps": 5, "args": of_probe})
    finding = finding_with_id("TPU006", planned(data).findings)
    assert (
        finding.message
        == f"probe.args is {kinds[0]}, and trainer.args is {kinds[1]}: they cannot be merged"
    )


def test_the_example_has_every_key_of_the_schema() -> None:
    """The file that the tests above load has every key, so a new key needs a line there and an assertion."""
    data = read_file(EVERY_KEY).data
    data["training"] |= {
        "epochs": 1,
        "train_tokens": 1,
        "per_device_batch_size": 1,
    }  # keys that exclude another
    data["overrides"]["v2-128"]["per_device_batch_size"] = 1
    schema = schemas.load_schema("tpucfg")
    data["trainer"]["args"]["bare"] = {"remove": True}  # which only a later layer may have
    assert set(_keys(schema, schema, data, "")) == set()


def _keys(
    schema: Mapping[str, Any], root: Mapping[str, Any], data: Any, path: str
) -> Iterator[str]:
    """Yield the paths of the schema's keys that the data lacks; entries of a mapping with free names are merged.

    The keys of a layered setting are those at the top of the spec, so that one layer has them all.
    """
    schema = resolve_references(root, schema)
    if not isinstance(data, dict):
        return  # a short form: `capacity: spot` has no keys
    for key, below in schema.get("properties", {}).items():
        if key not in data:
            yield f"{path}.{key}"
        elif not path or key not in LAYERED:
            yield from _keys(below, root, data[key], f"{path}.{key}")
    free = schema.get("additionalProperties")
    if isinstance(free, dict):
        names = [name for name in data if name not in schema.get("properties", {})]
        assert names, f"{path} has no entry"
        merged = {
            key: item
            for name in names
            if isinstance(data[name], dict)
            for key, item in data[name].items()
        }
        yield from _keys(free, root, merged, f"{path}.*")


def test_a_trainer_needs_an_image_or_a_package_with_its_module() -> None:
    """An image suffices, a package needs its module, and a trainer without either is an error."""
    assert project(spec(trainer={"image": "a"})).base.trainer.image == "a"
    assert project(spec(trainer={"package": "p", "module": "m"})).base.trainer.module == "m"
    for trainer in ({"package": "p"}, {"module": "m"}, {}):
        assert ids(loaded(spec(trainer=trainer))[1]) == ["TPU005"]


def test_a_training_has_steps_or_epochs() -> None:
    """Both, or neither, is an error."""
    assert ids(loaded(spec(training__epochs=1))[1]) == ["TPU008"]
    assert ids(loaded(spec(training__train_steps=WITHOUT))[1]) == ["TPU005"]


def test_each_environment_needs_a_ladder() -> None:
    """Without sizes at the top level, each environment needs its own, and each that lacks them is reported."""
    dev, prod = (
        {"project": f"my-project-{name}", "region": "us-central1"} for name in ("dev", "prod")
    )
    _, findings = loaded(
        spec(
            sizes=WITHOUT, environments={"dev": dev, "prod": prod, "ok": {**dev, "sizes": ["v2-8"]}}
        )
    )
    assert [finding.message.split()[0] for finding in findings] == [
        "environments.dev",
        "environments.prod",
    ]
    assert ids(findings) == ["TPU005", "TPU005"]
    own = loaded(spec(sizes=WITHOUT, environments={"dev": {**dev, "sizes": ["v2-8"]}}))[0]
    assert own is not None
    assert own.environments["dev"].sizes_path == ("environments", "dev", "sizes")


@pytest.mark.parametrize(
    ("override", "help_"),
    [
        ({"warmup_step": 1}, "did you mean warmup_steps?"),
        ({"Batch_size": 8}, "did you mean batch_size?"),
        ({"train_steps": 100}, "delete train_steps: it follows from the batch size"),
        ({"epochs": 1}, "delete epochs: it follows from the batch size"),
        ({"seed": 1}, "add seed to training.steps"),
    ],
)
def test_an_override_has_only_its_own_keys(override: dict[str, Any], help_: str) -> None:
    """An override takes its own keys and those of training.steps; the length of a run follows from the batch."""
    _, findings = loaded(spec(training__steps={"warmup_steps": 10}, overrides={"v2-8": override}))
    assert finding_with_id("TPU004", findings).help.startswith(help_)


@pytest.mark.parametrize(
    "key", ["train_steps", "train_tokens", "epochs", "overrides", *overridable()]
)
def test_a_step_setting_has_a_name_of_its_own(key: str) -> None:
    """A key of training.steps cannot be the name of another setting or of another key of an override."""
    _, findings = loaded(spec(training__steps={key: 1, "warmup_steps": 1}))
    assert ids(findings) == ["TPU007"]
    assert key in findings[0].message


def test_flags_name_settings_of_the_training() -> None:
    """A flag for a setting that does not exist is an error."""
    _, findings = loaded(spec(training__flags={"batchsize": "b"}))
    assert finding_with_id("TPU004", findings).help == "did you mean batch_size?"
    assert loaded(spec(training__flags={"epochs": "e", "learning_rate": None}))[1] == ()


@pytest.mark.parametrize("id_", ["TPU999", "TPU004"])
def test_only_an_allowable_finding_can_be_allowed(id_: str) -> None:
    """An unknown id is an error, and so is the id of a finding that cannot be allowed."""
    _, findings = loaded(spec(allow={id_: "because"}))
    assert finding_with_id("TPU007", findings).message.startswith(f"{id_} cannot be allowed")


def test_mistakes_of_different_kinds_are_reported_in_one_run() -> None:
    """All rules report in one run, in the order of locations."""
    _, findings = loaded(
        spec(
            trainer__args={"a": "${nope}"},
            training__flags={"nope": "x"},
            overrides={"v2-8": {"nope": 1}},
            allow={"TPU999": "x"},
        )
    )
    assert ids(findings) == ["TPU009", "TPU004", "TPU004", "TPU007"]


@pytest.mark.parametrize("text", ["[]", "1", "null", "x", "a: 1"])
def test_a_file_that_is_no_spec_has_findings(text: str) -> None:
    """A document of another kind has findings and no project."""
    loaded_project, findings = loaded(text)
    assert loaded_project is None
    assert findings


def test_the_examples_are_valid() -> None:
    """No spec of the repository's examples has a finding about its structure."""
    for path in (ROOT / "tpucfg.yaml", *ROOT.glob("examples/**/tpucfg.yaml")):
        assert project_from_document(read_file(path))[1] == ()
