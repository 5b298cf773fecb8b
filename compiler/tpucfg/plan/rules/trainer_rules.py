"""Rules about the merged trainer of the jobs: variables, compiler flags, mounts, and placeholders without a value."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from tpucfg.catalog import Catalog
from tpucfg.findings import Finding
from tpucfg.named_tuple import NamedTuple
from tpucfg.paths import grouped
from tpucfg.plan.job import XLA_FLAGS_VARIABLE, Job
from tpucfg.spec import Project, Settings, deletion_help
from tpucfg.spec.placeholders import TRAINER_KEYS, used_placeholders
from tpucfg.spec.sections import compares
from tpucfg.text_format import dotted, format_value, listed
from tpucfg.yamldoc import KeyPath

BUCKETS: Final = ("gs://", "${bucket}", "${job_dir}")
"""The starts of a mount's source: Cloud Storage FUSE mounts a bucket or a folder of one."""
MOVING_TAGS: Final = frozenset(
    (
        "latest",
        "main",
        "master",
        "trunk",
        "head",
        "develop",
        "dev",
        "nightly",
        "edge",
        "stable",
        "next",
        "staging",
    )
)
"""Tags that registries and build pipelines give to the newest image, most of them the names of branches."""
_XLA_FLAGS: Final[KeyPath] = ("trainer", "xla_flags")


@compares("trainer")
def trainer_findings(project: Project, _: Catalog) -> Iterator[Finding]:
    """Yield the findings about the programs of all jobs."""
    for settings in project.distinct_settings():
        for rule in _RULES:
            yield from rule(project, settings)


def _variables_set_twice(project: Project, settings: Settings) -> Iterator[Finding]:
    """Yield an error for each variable that has a value and a secret: a pod or a container takes only one."""
    variables = dict(settings.trainer.env)
    for secret in settings.trainer.secrets:
        if secret.variable in variables:
            path, other = (
                settings.source(("trainer", key, secret.variable)) for key in ("env", "secrets")
            )
            yield _exclusion(project, path, other, "a variable has one value")


def _compiler_flags_set_twice(project: Project, settings: Settings) -> Iterator[Finding]:
    """Yield an error for a variable that the flags of the TPU compiler would overwrite."""
    variables = {
        *dict(settings.trainer.env),
        *(secret.variable for secret in settings.trainer.secrets),
    }
    if not any(settings.trainer.xla_flags.values()) or XLA_FLAGS_VARIABLE not in variables:
        return
    key = "env" if XLA_FLAGS_VARIABLE in dict(settings.trainer.env) else "secrets"
    path, other = settings.source(("trainer", key, XLA_FLAGS_VARIABLE)), settings.source(_XLA_FLAGS)
    reason, further = (
        f"the flags become {XLA_FLAGS_VARIABLE}",
        f", and write its flags in {dotted(other)}",
    )
    yield _exclusion(project, path, other, reason, further)


def _command_of_package(project: Project, settings: Settings) -> Iterator[Finding]:
    """Yield an error for a command beside a package, whose module is the program."""
    if settings.trainer.command and settings.trainer.package:
        path, other = (
            settings.source(("trainer", "command")),
            settings.source(("trainer", "package")),
        )
        yield _exclusion(project, path, other, "a package is run by its module")


def _runtime_variables(project: Project, settings: Settings) -> Iterator[Finding]:
    """Yield an error for each variable from which the TPU runtime learns its machines: the service sets it."""
    secrets = [secret.variable for secret in settings.trainer.secrets]
    for key, names in (("env", dict(settings.trainer.env)), ("secrets", secrets)):
        for name in names:
            if row := runtime_variable(name):
                path = settings.source(("trainer", key, name))
                message = (
                    f"{dotted(path)} would {row.effect}: the service decides that on every host"
                )
                hint = f"{deletion_help(project.document, path)}, and choose the machines in sizes"
                details = (f"see {row.source}",)
                yield project.document.finding(
                    "TPU065", message, path, at_key=True, help=hint, details=details
                )


def _images_without_registry(project: Project, settings: Settings) -> Iterator[Finding]:
    """Yield an error for each image whose first part is no host: a host would ask Docker Hub for it."""
    for path, image in _images(project, settings):
        registry, slash, _ = image.partition("/")
        # https://github.com/distribution/reference/blob/main/normalize.go has the rule.
        if slash and (
            registry == "localhost" or any(mark in registry for mark in (".", ":", "${"))
        ):
            continue
        environment = next(iter(project.environments.values()))
        own = f"{environment.region}-docker.pkg.dev/{environment.project}/train/{image.rpartition('/')[2]}"
        public = f"docker.io/{image}" if slash else f"docker.io/library/{image}"
        problem = f"{dotted(path)} is {format_value(image, quoted=False)}, which names no registry"
        hint = f"set {dotted(path)} to {own}, or to {public} if that is meant"
        yield project.document.finding(
            "TPU123", f"{problem}: a host takes {public}", path, help=hint
        )


def _moving_tags(project: Project, settings: Settings) -> Iterator[Finding]:
    """Yield a warning for each image without a digest whose tag is made to move, or is missing."""
    for path, image in _images(project, settings):
        tag = image.rpartition("/")[2].partition(":")[2]
        if "@" in image or (tag or "latest").lower() not in MOVING_TAGS:
            continue
        subject = (
            f"{dotted(path)} has the tag {tag}"
            if tag
            else f"{dotted(path)} has no tag, which means latest"
        )
        message = f"{subject}: it moves, so two runs of one config may run different programs"
        hint = f"set {dotted(path)} to {image.removesuffix(f':{tag}')}@sha256:DIGEST, or to a tag that stays"
        details = (f"print the digest with: docker buildx imagetools inspect {image}",)
        yield project.document.finding("TPU124", message, path, help=hint, details=details)


def _images(project: Project, settings: Settings) -> Iterator[tuple[KeyPath, str]]:
    for key, image in (
        ("image", settings.trainer.image),
        ("worker_image", settings.trainer.worker_image),
    ):
        if image and project.document.node(path := settings.source(("trainer", key))):
            yield path, image


def _exclusion(
    project: Project, path: KeyPath, other: KeyPath, reason: str, further: str = ""
) -> Finding:
    message = f"{dotted(path)} and {dotted(other)} exclude each other: {reason}"
    hint = f"{deletion_help(project.document, path)}{further}"
    related = ((project.document.key_location(other), "the other setting"),)
    return project.document.finding(
        "TPU054", message, path, at_key=True, help=hint, related=related
    )


def _other_mounts(project: Project, settings: Settings) -> Iterator[Finding]:
    """Yield an error for each mount whose source is no bucket."""
    for mount in settings.trainer.mounts:
        if not mount.source.startswith(BUCKETS):
            path = settings.source(("trainer", "mounts", mount.path))
            source = format_value(mount.source, quoted=False)
            message = f"{dotted(path)} is {source}, and a mount is a bucket or its folder"
            hint = f"set {dotted(path)} to ${{bucket}}/data, or to gs:// and the name of a bucket"
            yield project.document.finding("TPU007", message, path, help=hint)


_RULES: Final[tuple[Callable[[Project, Settings], Iterator[Finding]], ...]] = (
    _variables_set_twice,
    _compiler_flags_set_twice,
    _command_of_package,
    _runtime_variables,
    _images_without_registry,
    _moving_tags,
    _other_mounts,
)


# Placeholders without a value.


class _Placeholder(NamedTuple):
    """A placeholder that may lack a value."""

    is_missing: Callable[[Job], bool]
    problem: str
    """A clause with the sizes concerned as `{}`."""
    hint: str


_MISSING: Final[Mapping[str, _Placeholder]] = {
    "sequence_length": _Placeholder(
        lambda job: job.rung.sequence_length is None,
        "training.sequence_length is not set",
        "set training.sequence_length to 2048, or to the tokens of one of your examples",
    ),
    "train_steps": _Placeholder(
        lambda job: job.rung.train_steps is None,
        "the run is counted in epochs",
        "write ${epochs}, or set training.train_steps in place of training.epochs",
    ),
    "epochs": _Placeholder(
        lambda job: job.rung.epochs is None,
        "the run is counted in steps",
        "write ${train_steps}, or set training.epochs in its place",
    ),
    "learning_rate": _Placeholder(
        lambda job: job.rung.learning_rate is None,
        "training.learning_rate is not set",
        "set training.learning_rate to 3e-4, or to the rate that was tuned",
    ),
    "topology": _Placeholder(
        lambda job: job.slice.topology is None,
        "no source states the topology of {}",
        "replace it by the text that the program needs",
    ),
}


def missing_values(project: Project, jobs: Sequence[Job]) -> Iterator[Finding]:
    """Yield an error for each placeholder that would be an empty text in some of the jobs."""
    used = used_placeholders(
        text for settings in project.distinct_settings() for _, text in _texts(settings)
    )
    for name, placeholder in _MISSING.items():
        if name not in used:
            continue
        # Jobs share settings, whose texts are searched only once.
        by_settings = grouped(
            (job.settings.layer_paths, job) for job in jobs if placeholder.is_missing(job)
        ).values()
        uses = (
            (path, group)
            for group in by_settings
            for path, text in _texts(group[0].settings)
            if f"${{{name}}}" in text.replace("$${", "")
        )
        for path, sizes in grouped(
            (path, job.size) for path, group in uses for job in group
        ).items():
            problem, hint = (
                placeholder.problem.format(listed(tuple(dict.fromkeys(sizes)))),
                placeholder.hint,
            )
            if name == "epochs" and jobs[0].whole:
                problem, hint = (
                    "a probe is counted in steps",
                    "take the flag away in probe.args by {remove: true}",
                )
            message = f"{dotted(path)} has ${{{name}}}, but {problem}"
            location = project.document.text_location(path, f"${{{name}}}")
            yield Finding.of("TPU113", message, location, help=hint)


def _texts(settings: Settings) -> Iterator[tuple[KeyPath, str]]:
    """Yield each text of the trainer in which placeholders are replaced, with its path."""
    for key in TRAINER_KEYS:
        if layered := settings.layers.find("trainer", key):
            yield from layered.texts()


# Variables from which the TPU runtime learns its chips, its topology, its workers and its slices.
#
# The services set them on every host for the machines that they created. Another value makes the program use other
# chips than the plan counts, or wait for hosts that do not exist. Variables that tune the runtime, such as
# `TPU_MIN_LOG_LEVEL` or `MEGASCALE_GRPC_ENABLE_XOR_TRACER`, are not among them.


class RuntimeVariable(NamedTuple):
    """A variable that the TPU runtime reads."""

    effect: str
    """The effect of setting it, as a clause that follows `it would`."""
    source: str
    """The public page that shows the variable."""


_JAX: Final = "https://github.com/jax-ml/jax/blob/main/jax/_src/clusters/cloud_tpu_cluster.py"
_TORCH: Final = "https://github.com/pytorch/xla/blob/master/torch_xla/core/xla_env_vars.py"
_RAY: Final = (
    "https://github.com/ray-project/ray/blob/master/python/ray/_private/accelerators/tpu.py"
)
_SUBSETS: Final = "https://gist.github.com/skye/f82ba45d2445bb19d53545538754f9a3"
_DISTRIBUTED: Final = "https://github.com/jax-ml/jax/blob/main/jax/_src/distributed.py"
_CHIPS: Final = "let the program use other chips of its host than the size has"
_TOPOLOGY: Final = "describe another topology than the slice has"
_PLACE: Final = "give a host another place in the slice than the service does"
_SLICES: Final = "describe other slices than the service created"

RUNTIME_VARIABLES: Final[Mapping[str, RuntimeVariable]] = {
    "TPU_VISIBLE_CHIPS": RuntimeVariable(_CHIPS, _RAY),
    "TPU_VISIBLE_DEVICES": RuntimeVariable(_CHIPS, _SUBSETS),
    "TPU_NUM_DEVICES": RuntimeVariable(_CHIPS, _TORCH),
    "TPU_CHIPS_PER_HOST_BOUNDS": RuntimeVariable(_CHIPS, _RAY),
    "TPU_CHIPS_PER_PROCESS_BOUNDS": RuntimeVariable(_CHIPS, _TORCH),
    "TPU_HOST_BOUNDS": RuntimeVariable(_TOPOLOGY, _RAY),
    "TPU_TOPOLOGY*": RuntimeVariable(_TOPOLOGY, _RAY),
    "TPU_ACCELERATOR_TYPE": RuntimeVariable(_TOPOLOGY, _RAY),
    "TPU_PROCESS_*": RuntimeVariable(_PLACE, _TORCH),
    "TPU_WORKER_*": RuntimeVariable(_PLACE, _JAX),
    "JAX_COORDINATOR_ADDRESS": RuntimeVariable(_PLACE, _DISTRIBUTED),
    "JAX_NUM_PROCESSES": RuntimeVariable(_PLACE, _DISTRIBUTED),
    "JAX_PROCESS_ID": RuntimeVariable(_PLACE, _DISTRIBUTED),
    "CLOUD_TPU_TASK_ID": RuntimeVariable(_PLACE, _TORCH),
    "MEGASCALE_COORDINATOR_ADDRESS": RuntimeVariable(_SLICES, _JAX),
    "MEGASCALE_NUM_SLICES": RuntimeVariable(_SLICES, _JAX),
    "MEGASCALE_PORT": RuntimeVariable(_SLICES, _JAX),
    "MEGASCALE_SLICE_ID": RuntimeVariable(_SLICES, _JAX),
}
"""The variables by name; a final `*` matches any rest."""


def runtime_variable(name: str) -> RuntimeVariable | None:
    """Return the row of a variable; None if the TPU runtime does not learn its machines from it."""
    if row := RUNTIME_VARIABLES.get(name):
        return row
    starts = (
        (pattern[:-1], row) for pattern, row in RUNTIME_VARIABLES.items() if pattern.endswith("*")
    )
    return next((row for start, row in starts if name.startswith(start)), None)
