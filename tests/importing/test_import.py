"""Configs that others wrote become specs whose configs are those files again."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from spec_factory import CATALOG, ROOT, configs
from tpucfg.importing import Given, Imported, ImportRefusedError, import_config
from tpucfg.importing.comparison import tables
from tpucfg.paths import KeyPath, leaf_paths, value_at
from tpucfg.plan import Selection
from tpucfg.render.pipeline import compile_spec_file, render_configs
from tpucfg.yamldoc.reader import read_text

EXAMPLE = ROOT / "examples" / "import" / "jobset.yaml"
GIVEN = Given(project="my-project-dev", region="us-east5", batch_size=64, train_steps=100)
POD = ("spec", "replicatedJobs", 0, "template", "spec", "template", "spec")
CHILD = POD[:5]
CONTAINER = (*POD, "containers", 0)


def imported(text: str, given: Given = GIVEN) -> Imported:
    """Return the import of a file's text."""
    return import_config(read_text(text, "jobset.yaml", several=True), given, CATALOG)


def changed(path: KeyPath, value: Any) -> str:
    """Return the example with another value at a path."""
    data = yaml.safe_load(EXAMPLE.read_text())
    value_at(data, path[:-1])[path[-1]] = value
    return yaml.safe_dump(data)


def spec_of(text: str, given: Given = GIVEN) -> Any:
    """Return the data of the spec of a file."""
    return yaml.safe_load(imported(text, given).text)


def leaves(data: Any) -> list[tuple[KeyPath, Any]]:
    """Return the scalars of a value with their paths."""
    return [(path, value_at(data, path)) for path in leaf_paths(data)]


def reasons(result: Imported) -> str:
    """Return the list of what was not carried over."""
    return "\n".join(map(str, result.notes))


def is_equal(result: Imported) -> bool:
    """Return True if the rendered config is the file as the server reads it, without what is always left out."""
    return {note.reason for note in result.notes} <= {*tables()["left_out"].values()}


def test_the_example_becomes_a_spec_of_keys() -> None:
    """A JobSet of MaxText becomes figures, arguments and settings; privileged and ports are listed."""
    result = imported(EXAMPLE.read_text())
    spec = yaml.safe_load(result.text)
    assert is_equal(result)
    assert not result.gaps
    assert [note.path[-1] for note in result.notes] == ["privileged", "ports"]
    assert spec["sizes"] == ["v6e-16"]
    assert spec["training"] == {
        "tuned_on": "v6e-16",
        "per_device_batch_size": 4,
        "sequence_length": 8192,
        "train_steps": 2000,
        "learning_rate": "3e-5",  # PyYAML reads YAML 1.1, in which this is a text
        "flags": "maxtext",
    }
    assert spec["trainer"]["args"] == {
        "base_output_directory": "gs://my-project-dev-out/llama",
        "model_name": "llama3.1-8b",
        "checkpoint_period": 100,
    }
    assert spec["trainer"]["xla_flags"] == {"v6e": ["--xla_tpu_scoped_vmem_limit_kib=98304"]}
    assert spec["targets"]["gke"]["queue"] == "research"
    assert spec["targets"]["gke"]["host_network"] is True
    assert leaves(spec["targets"]["gke"]["extra"]) == [
        (("spec", "replicatedJobs", 0, "name"), "slice"),
        (
            (
                "spec",
                "replicatedJobs",
                0,
                "template",
                "spec",
                "template",
                "spec",
                "containers",
                0,
                "name",
            ),
            "trainer",
        ),
        ((*CONTAINER, "resources", "limits", "memory"), "300Gi"),
    ]


def test_the_spec_renders_the_program_of_the_file(tmp_path: Path) -> None:
    """The spec is valid as it is printed, and its config starts the same program on the same nodes."""
    path = tmp_path / "tpucfg.yaml"
    path.write_text(imported(EXAMPLE.read_text()).text)
    compiled = compile_spec_file(path, CATALOG, Selection())
    (config,) = render_configs(compiled)
    ours, file = config.request_body, yaml.safe_load(EXAMPLE.read_text())
    container, original = value_at(ours, CONTAINER), value_at(file, CONTAINER)
    assert container["command"] == original["command"]
    words = {word for word in original["args"] if not word.startswith("run_name=")}
    assert {*container["args"]} == {*words, "run_name=llama-8b-dev-v6e-16"}
    assert value_at(ours, (*POD, "nodeSelector")) == value_at(file, (*POD, "nodeSelector"))
    assert value_at(ours, (*CHILD, "parallelism")) == 4


@pytest.mark.parametrize("target", ["gke", "vertex-ai"])
def test_a_rendered_config_is_imported_without_a_difference(target: str) -> None:
    """A rendered config becomes a spec that renders it again, on each target whose config names the program."""
    data: dict[str, str] = {
        "gke": {"size": "v6e-16", "region": "us-east5", "kube_context": "c"},
        "vertex-ai": {"size": "v3-32", "region": "europe-west4"},
    }[target]
    spec: dict[str, Any] = {
        "version": 1,
        "name": "mnist",
        "target": target,
        "sizes": [data["size"]],
        "environments": {
            "dev": {"project": "my-project-dev", **{k: v for k, v in data.items() if k != "size"}}
        },
        "trainer": {
            "image": "us-docker.pkg.dev/p/train/mnist:1.0",
            "command": ["python3", "-m", "mnist"],
            "args": {"data_dir": "gs://data/mnist", "bare": None, "layers": [1, 2]},
            "max_run_duration": "90m",
            "env": {"FOO": "a$b ${bucket}"},
        },
        "training": {
            "tuned_on": data["size"],
            "batch_size": 1024,
            "train_steps": 100,
            "learning_rate": 0.1,
        },
    }
    (config,) = configs(spec)
    result = imported(config.text, Given(project="my-project-dev", region=data["region"]))
    lost = {note.path[:1] for note in result.notes}
    # Folders and accounts that are made of the project's name are those of another project.
    assert lost <= {("serviceAccount",), ("baseOutputDirectory",)}, reasons(result)
    again = yaml.safe_load(result.text)
    assert again["training"] == {**spec["training"]}
    assert again["trainer"]["args"] == spec["trainer"]["args"]


OWN: dict[str, dict[str, Any]] = {
    "plain": {},
    "mounts": {"trainer": {"mounts": {"/data": "gs://bucket-a/b/c", "/x/y": "gs://bucket-b"}}},
    "host network": {
        "gke": {"host_network": True},
        "trainer": {"mounts": {"/data": "gs://bucket-a/b"}},
    },
    "spot": {"capacity": "spot"},
    "on-demand": {"capacity": "on-demand"},
    "flex-start": {"capacity": "flex-start", "trainer": {"max_run_duration": "12h"}},
    "reservation": {"capacity": {"reservation": "projects/shared/reservations/mine"}},
    "restarts": {"trainer": {"restarts": 3}},
    "exit codes": {
        "trainer": {"restarts": {"times": 3, "exit_codes": [1, "42-44"]}, "max_run_duration": "2d"}
    },
    "queue": {
        "gke": {
            "queue": "q",
            "priority": "p",
            "namespace": "ns",
            "compute_class": "cc",
            "image_pull_secrets": ["a"],
        },
        "trainer": {"max_run_duration": "1h"},
    },
    "topology-aware": {"gke": {"queue": "q", "topology_aware": True}},
    "the namespace's queue": {
        "gke": {"topology_aware": True},
        "trainer": {"max_run_duration": "1h"},
    },
    "two slices": {"size": "v6e-256x2"},
    "ttl": {"gke": {"ttl": "1h"}},
    "no ttl": {"gke": {"ttl": None}},
    "two containers": {
        "size": "tpu7x-128",
        "region": "us-central1",
        "gke": {"containers_per_host": 2},
    },
    "two hosts of 4 chips": {"size": "v6e-8x2"},
    "one host": {"size": "v6e-4"},
    "machine": {"size": "v6e-8", "overrides": {"v6e-8": {"machine": "ct6e-standard-8t"}}},
    "topology": {"size": "v5p-256", "overrides": {"v5p-256": {"topology": "4x4x8"}}},
    "steps": {"training": {"steps": {"warmup_steps": 200}}},
    "pairs": {"trainer": {"arg_style": "--key value", "args": {"a": "b", "c": 1}}},
    "bare": {"trainer": {"command": ["run"], "args": {"a": None, "c": [1, 2]}}},
    "texts": {"trainer": {"command": ["run"], "args": ["-x", "a b", "--y"]}},
    "dollars": {"trainer": {"env": {"A": "$(B) $$ $${C}"}, "args": {"a": "$(HOME)"}}},
}
"""Settings of a gke spec."""


@pytest.mark.parametrize("name", OWN)
def test_each_setting_of_gke_is_read_back(name: str) -> None:
    """A config of tpucfg becomes keys again, with nothing in `extra` and nothing in the list."""
    changes = {"size": "v6e-16", "gke": {}, "trainer": {}, "training": {}, **OWN[name]}
    size, options, region = (
        changes.pop("size"),
        changes.pop("gke"),
        changes.pop("region", "us-east5"),
    )
    (config,) = configs(
        {
            "version": 1,
            "name": "mnist",
            "target": "gke",
            "sizes": [size],
            "environments": {
                "dev": {"project": "my-project-dev", "region": region, "kube_context": "c"}
            },
            **changes,
            "trainer": {"image": "us-docker.pkg.dev/p/train/mnist:1.0", **changes["trainer"]},
            "training": {
                "tuned_on": size,
                "batch_size": 1024,
                "train_steps": 100,
                **changes["training"],
            },
            "targets": {"gke": options},
        }
    )
    result = imported(config.text, Given(project="my-project-dev", region=region))
    assert reasons(result) == ""
    spec = yaml.safe_load(result.text)
    assert "extra" not in spec["targets"]["gke"]
    assert spec["sizes"] == [size]
    assert spec.get("capacity") == changes.get("capacity")


@pytest.mark.parametrize(
    ("path", "value", "key", "expected"),
    [
        ((*POD, "nodeSelector", "cloud.google.com/gke-spot"), "true", ("capacity",), "spot"),
        ((*POD, "nodeSelector", "cloud.google.com/gke-flex-start"), "true", ("capacity",), None),
        (
            (*POD, "nodeSelector", "cloud.google.com/reservation-name"),
            "mine",
            ("capacity",),
            {"reservation": "mine"},
        ),
        ((*POD, "priorityClassName"), "high", ("targets", "gke", "priority"), "high"),
        ((*POD, "serviceAccountName"), "trainer", ("targets", "gke", "service_account"), "trainer"),
        (("metadata", "namespace"), "research", ("targets", "gke", "namespace"), "research"),
        (
            ("metadata", "labels"),
            {"team": "nlp"},
            ("environments", "dev", "labels"),
            {"team": "nlp"},
        ),
        ((*CHILD, "activeDeadlineSeconds"), 5400, ("trainer", "max_run_duration"), "90m"),
        (("spec", "replicatedJobs", 0, "replicas"), 2, ("sizes",), ["v6e-16x2"]),
        (
            (*POD, "imagePullSecrets"),
            [{"name": "registry"}],
            ("targets", "gke", "image_pull_secrets"),
            ["registry"],
        ),
    ],
)
def test_a_field_becomes_its_key(path: KeyPath, value: Any, key: KeyPath, expected: Any) -> None:
    """Each field that a key writes is read as this key."""
    assert value_at(spec_of(changed(path, value)), key) == expected


def test_exit_codes_become_ranges() -> None:
    """The policy of xpk, which restarts nothing with `maxRestarts: 0`, is a list of exit codes.

    With more restarts it counts those after a preemption, which no spec does.
    """
    data = yaml.safe_load(EXAMPLE.read_text())
    data["spec"]["failurePolicy"] = {
        "maxRestarts": 0,
        "rules": [{"action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy"]}],
    }
    codes = {"containerName": "jax-tpu", "operator": "NotIn", "values": [42, *range(127, 256)]}
    value_at(data, CHILD)["podFailurePolicy"] = {
        "rules": [{"action": "FailJob", "onPodConditions": [], "onExitCodes": codes}]
    }
    result = imported(yaml.safe_dump(data))
    assert is_equal(result), reasons(result)
    assert yaml.safe_load(result.text)["trainer"]["restarts"] == {
        "times": 0,
        "exit_codes": [42, "127-255"],
    }
    data["spec"]["failurePolicy"]["maxRestarts"] = 3
    assert "a preemption restarts the job too, and does not count" in reasons(
        imported(yaml.safe_dump(data))
    )


def test_a_script_stays_text_with_placeholders() -> None:
    """A `bash -c` script is kept word for word, and its figures are placeholders."""
    script = 'echo $(date) ${HOME};\npython3 -m MaxText.train base.yml per_device_batch_size=0.5 steps=30 key=$$ "$@"\n'
    data = yaml.safe_load(EXAMPLE.read_text())
    container = value_at(data, CONTAINER)
    container["command"] = ["bash", "-c", script.replace("$$", "$$$$")]
    del container["args"]
    result = imported(yaml.safe_dump(data))
    spec = yaml.safe_load(result.text)
    assert is_equal(result), reasons(result)
    assert spec["trainer"]["command"][2] == script.replace("${HOME}", "$${HOME}").replace(
        "0.5", "${per_device_batch_size}"
    ).replace("steps=30", "steps=${train_steps}")
    assert spec["training"]["per_device_batch_size"] == 0.5
    assert spec["training"]["model_parallel"] == 2
    assert spec["training"]["flags"] == {"batch_size": None, "train_steps": None}


@pytest.mark.parametrize(
    ("word", "figures"),
    [
        ("per_device_batch_size=16.0", {"per_device_batch_size": 16}),
        (
            "per_device_batch_size=0.125 ici_context_parallelism=8",
            {"per_device_batch_size": 0.125, "model_parallel": 8},
        ),
        ("learning_rate=3.e-5", {}),
        ("per_device_batch_size=$SIZE", {}),
        ("per_device_batch_size=2 per_device_batch_size=4", {"per_device_batch_size": 2}),
        ("xper_device_batch_size=2", {}),
        ("per_device_batch_size=0", {}),
    ],
)
def test_only_plain_numbers_are_figures(word: str, figures: dict[str, float]) -> None:
    """A number of a script is a figure if its own name precedes it and it is written as a number."""
    data = yaml.safe_load(EXAMPLE.read_text())
    container = value_at(data, CONTAINER)
    container["command"], container["args"] = (
        ["bash", "-c"],
        [f"python3 -m MaxText.train base.yml {word}"],
    )
    result = imported(yaml.safe_dump(data))
    assert is_equal(result), reasons(result)
    training = yaml.safe_load(result.text)["training"]
    names = ("per_device_batch_size", "learning_rate", "model_parallel")
    assert {name: training[name] for name in names if name in training} == figures


def test_a_run_named_as_the_job_keeps_its_job_apart() -> None:
    """`run_name` with the job's name is the name of each rung's job, and any other name stays."""
    data = yaml.safe_load(EXAMPLE.read_text())
    container = value_at(data, CONTAINER)
    line = "python3 -m MaxText.train base.yml run_name=llama-8b) || run_name=llama-8b-old run_name=other"
    container["command"], container["args"] = ["bash", "-c", line], []
    result = imported(yaml.safe_dump(data))
    assert is_equal(result), reasons(result)
    words = yaml.safe_load(result.text)["trainer"]["command"][2].split()
    assert words[4:] == ["run_name=${run})", "||", "run_name=llama-8b-old", "run_name=other"]


def test_the_config_of_a_spec_with_named_figures_becomes_a_spec() -> None:
    """`--sequence_length` and `--model_parallel`, as a config of tpucfg has them, are figures with named flags."""
    words = [
        "--batch_size=256",
        "--sequence_length=8192",
        "--model_parallel=4",
        "--train_steps=100",
    ]
    data = yaml.safe_load(changed((*CONTAINER, "command"), ["python3", "train.py", *words]))
    del value_at(data, CONTAINER)["args"]
    result = imported(yaml.safe_dump(data))
    assert is_equal(result), reasons(result)
    training = yaml.safe_load(result.text)["training"]
    assert (training["sequence_length"], training["model_parallel"]) == (8192, 4)
    assert training["flags"] == {
        "sequence_length": "sequence_length",
        "model_parallel": "model_parallel",
    }


def test_missing_figures_are_gaps() -> None:
    """A value that no file names is `null  # fill in`, and the options fill it in."""
    text = changed((*CONTAINER, "args"), ["--data=gs://d"])
    result = imported(text, Given())
    assert [*map(tuple, result.gaps)] == [
        ("environments", "dev", "project"),
        ("environments", "dev", "region"),
        ("training", "batch_size"),
        ("training", "train_steps"),
    ]
    assert result.text.count("null  # fill in") == 4
    assert not imported(text).gaps


def test_figures_beside_a_missing_batch_are_kept() -> None:
    """The batch that stands in for the missing one divides by the accumulation of the file."""
    words = [
        "python3",
        "train.py",
        "--bs=128",
        "--grad_accum=2",
        "--train_steps=100",
        "--learning_rate=2e-4",
    ]
    data = yaml.safe_load(changed((*CONTAINER, "command"), words))
    del value_at(data, CONTAINER)["args"]
    result = imported(yaml.safe_dump(data), GIVEN._replace(batch_size=None))
    assert result.gaps == (("training", "batch_size"),)
    training = yaml.safe_load(result.text)["training"]
    assert (training["grad_accum"], training["train_steps"], training["learning_rate"]) == (
        2,
        100,
        "2e-4",
    )
    assert "command" not in reasons(result)


def test_unknown_machines_are_a_gap() -> None:
    """Machines of no size of the catalog leave the size open, and another number of hosts than the size's is listed."""
    result = imported(changed((*POD, "nodeSelector", "cloud.google.com/gke-tpu-topology"), "3x5"))
    assert ("sizes", 0) in result.gaps
    assert "no size of the catalog has the machines of the file" in reasons(result)
    assert "parallelism: tpucfg renders another value" in reasons(
        imported(changed((*CHILD, "parallelism"), 5))
    )


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((*POD, "nodeSelector", "cloud.google.com/gke-preemptible"), "true"),
        ((*POD, "nodeName"), "node-1"),
        ((*CHILD, "backoffLimit"), 3),
        ((*POD, "restartPolicy"), "OnFailure"),
        (("spec", "failurePolicy", "maxRestarts"), 2),
        ((*POD, "tolerations"), [{"operator": "Exists"}]),
        (
            (*POD, "containers"),
            [{"name": "a", "image": "i", "resources": {"limits": {"google.com/tpu": 4}}}] * 2,
        ),
    ],
)
def test_what_the_config_does_not_have_is_listed(path: KeyPath, value: Any) -> None:
    """A field that no spec can say is never dropped silently."""
    assert not is_equal(imported(changed(path, value)))


def test_the_topology_of_a_slice_may_stand_twice() -> None:
    """Recipes write it as an annotation of the pods too; that of another slice is refused."""
    before = imported(EXAMPLE.read_text())
    own = value_at(
        yaml.safe_load(EXAMPLE.read_text()),
        (*POD, "nodeSelector", "cloud.google.com/gke-tpu-topology"),
    )
    for topology, is_carried_over in ((own, True), ("2x2x2", False)):
        text = changed(
            (*POD[:-1], "metadata"),
            {"annotations": {"cloud.google.com/gke-tpu-slice-topology": topology}},
        )
        result = imported(text)
        assert (is_equal(result), reasons(result) == reasons(before)) == (
            is_carried_over,
            is_carried_over,
        )


@pytest.mark.slow
def test_every_field_of_the_file_counts() -> None:
    """Another value of any field changes the spec or the list: nothing of the file is unread."""
    data = yaml.safe_load(EXAMPLE.read_text())
    before = imported(yaml.safe_dump(data))
    names = {"name", "mountPath", "key", "apiVersion", "kind"}
    for path, value in leaves(data):
        if value is None or path[-1] in names or path[-1] in ("containerPort", "privileged"):
            continue
        other = deepcopy(data)
        value_at(other, path[:-1])[path[-1]] = (
            value + 1 if type(value) is int else f"{value}x" if value is not True else False
        )
        try:
            after = imported(yaml.safe_dump(other))
        except ImportRefusedError:
            continue
        assert (after.text, after.notes) != (before.text, before.notes), path


def test_a_credential_is_not_printed() -> None:
    """A token in a variable leaves the spec, and the list names the setting that takes its place."""
    token = "hf_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3g"
    result = imported(changed((*CONTAINER, "env", 1), {"name": "HF_TOKEN", "value": token}))
    assert token not in result.text
    assert token not in reasons(result)
    (note,) = (note for note in result.notes if "HF_TOKEN" in note.reason)
    assert note.path == ("trainer", "env", "HF_TOKEN")


def test_a_policy_keeps_the_default_that_it_needs() -> None:
    """The operator of `successPolicy` is required, so it is a default only of a policy without targets."""
    policy = {"operator": "All", "targetReplicatedJobs": ["slice"]}
    result = imported(changed(("spec", "successPolicy"), policy))
    assert is_equal(result), reasons(result)
    assert yaml.safe_load(result.text)["targets"]["gke"]["extra"]["spec"]["successPolicy"] == policy
    without_targets = spec_of(changed(("spec", "successPolicy"), {"operator": "All"}))
    assert "successPolicy" not in without_targets["targets"]["gke"]["extra"]["spec"]


def test_a_file_that_cannot_be_compared_is_no_short_list() -> None:
    """The list ends with the fields that it lacks if the compiler refuses a value that no import can leave out."""
    notes = imported(EXAMPLE.read_text(), GIVEN._replace(environment="Prod")).notes
    assert "environments" in notes[-2].path
    assert str(notes[-1]).startswith("the other fields, as the spec has an error")


def test_defaults_of_the_server_are_absent() -> None:
    """The output of `kubectl get jobset -o yaml` becomes the same spec as the file that was applied."""
    data = yaml.safe_load(EXAMPLE.read_text())
    data["metadata"] |= {
        "uid": "1",
        "resourceVersion": "3",
        "generation": 1,
        "managedFields": [{"manager": "kubectl"}],
    }
    data["metadata"]["namespace"] = "default"
    data["status"] = {"restarts": 0}
    data["spec"] |= {
        "suspend": False,
        "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
    }
    data["spec"] |= {
        "startupPolicy": {"startupPolicyOrder": "AnyOrder"},
        "successPolicy": {"operator": "All"},
    }
    data["spec"]["failurePolicy"]["restartStrategy"] = "Recreate"
    data["spec"]["replicatedJobs"][0] |= {"groupName": "default"}
    value_at(data, CHILD).update(
        completionMode="Indexed", suspend=False, podReplacementPolicy="Failed"
    )
    value_at(data, POD).update(
        schedulerName="default-scheduler", securityContext={}, terminationGracePeriodSeconds=30
    )
    container = value_at(data, CONTAINER)
    container |= {"terminationMessagePolicy": "File"}
    container["resources"]["requests"] = {"google.com/tpu": "4", "memory": "300Gi"}
    listing = {"apiVersion": "v1", "kind": "List", "items": [data]}
    assert imported(yaml.safe_dump(listing)).text == imported(EXAMPLE.read_text()).text


def test_other_objects_are_listed() -> None:
    """A Service beside the JobSet is left out with its reason."""
    service = (
        "apiVersion: v1\nkind: Service\nmetadata: {name: headless}\nspec: {clusterIP: None}\n---\n"
    )
    result = imported(service + EXAMPLE.read_text())
    assert "the Service headless is left out" in reasons(result)


@pytest.mark.slow
def test_a_hostile_file_is_bounded() -> None:
    """A file that is larger than any config is refused, and many refusals or differences are cut."""
    data = yaml.safe_load(EXAMPLE.read_text())
    value_at(data, CONTAINER)["env"] = [
        {"name": f"9 {number}", "value": "$("} for number in range(900)
    ]
    result = imported(yaml.safe_dump(data))
    assert not is_equal(result)
    assert len(result.notes) <= 101
    value_at(data, CONTAINER)["env"] *= 4
    with pytest.raises(ImportRefusedError, match="more than 3,000 values"):
        imported(yaml.safe_dump(data))
    with pytest.raises(ImportRefusedError, match="100,000 characters"):
        imported(changed((*CONTAINER, "command"), ["bash", "-c", "$(" * 60_000]))


@pytest.mark.parametrize(
    "text",
    [
        "a: 1",
        "[]",
        "kind: JobSet",
        "kind: JobSet\nspec: 3",
        "spec: {replicatedJobs: 3}",
        "kind: JobSet\nspec: {replicatedJobs: []}",
        "workerPoolSpecs: x",
        "workerPoolSpecs: [{machineSpec: [1]}]",
        "trainingInput: []",
        "tpu: {nodeSpec: [[]]}",
        "apiVersion: batch/v1\nkind: Job\nspec: {template: {}}",
        "jobSpec: {workerPoolSpecs: 3}",
        "{kind: List, apiVersion: v1, items: [3]}",
    ],
)
def test_other_files_are_refused(text: str) -> None:
    """A file without a request body is refused with a message."""
    with pytest.raises(ImportRefusedError):
        imported(text)


@pytest.mark.parametrize("on_pods", [{}, {"team": "vision"}])
def test_labels_of_a_job_are_those_of_its_pods(on_pods: dict[str, str]) -> None:
    """The labels of a JobSet become those of the environment, which are rendered on its pods as well."""
    data = yaml.safe_load(
        changed(("metadata", "labels"), {"team": "vision", "tpucfg-size": "v6e-16"})
    )
    value_at(data, POD[:-1]).setdefault("metadata", {})["labels"] = on_pods
    result = imported(yaml.safe_dump(data))
    assert is_equal(result)
    assert yaml.safe_load(result.text)["environments"]["dev"]["labels"] == {"team": "vision"}


def test_a_label_of_pods_alone_is_extra() -> None:
    """No key gives a label to pods and not to their JobSet."""
    data = yaml.safe_load(EXAMPLE.read_text())
    value_at(data, POD[:-1]).setdefault("metadata", {})["labels"] = {"step": "one"}
    result = imported(yaml.safe_dump(data))
    assert is_equal(result)
    extra = yaml.safe_load(result.text)["targets"]["gke"]["extra"]
    assert ("step", "one") in [(path[-1], value) for path, value in leaves(extra)]


def test_all_refused_values_leave_the_spec_together() -> None:
    """However many keys the compiler refuses, the rest is rendered, and `extra` has what no key takes."""
    data = yaml.safe_load(EXAMPLE.read_text())
    value_at(data, CONTAINER)["env"] = [
        {"name": f"{number} wrong", "value": "x"} for number in range(60)
    ]
    result = imported(yaml.safe_dump(data))
    assert is_equal(result), reasons(result)
    assert "env" not in yaml.safe_load(result.text)["trainer"]
