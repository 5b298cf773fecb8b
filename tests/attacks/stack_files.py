"""Attacks on the files that `pulumi up` reads besides the spec: project and stack files, links, and other code."""

from typing import Final

from attacks.attack import Attack, Edit, append, delete, edit, link, together, write, write_ignored

_STACK: Final = "stacks/Pulumi.prod.yaml"
_MEMBERS: Final = """\
  bucketMembers:
    type: array
    items: {type: string}
    default: []
    description: Other members that read and write the bucket's objects, such as group:team@example.com.
"""
_SALT: Final = "encryptionsalt: v1:one:v1:two:three\n"
_EVIL: Final = "group:evil@example.com"
_GRANT: Final = ("grants `roles/storage.objectUser` on the bucket", f"to `{_EVIL}`")
_LARGE: Final = "# " + "x" * (1 << 20)


def _project(text: str) -> Edit:
    return append("Pulumi.yaml", text)


def _stack(text: str) -> Edit:
    return append(_STACK, text)


def _default(text: str) -> Edit:
    return edit("Pulumi.yaml", (_MEMBERS, text))


ATTACKS: Final = (
    # The project file
    Attack(
        "members-by-default",
        _default(_MEMBERS.replace("[]", f"['{_EVIL}']")),
        _GRANT,
        status=0,
    ),
    Attack(
        "members-by-a-short-default",
        _default(f"  bucketMembers: ['{_EVIL}']\n"),
        _GRANT,
        status=0,
    ),
    Attack(
        "members-by-a-quoted-path",
        _default(f"  '[\"bucketMembers\"]': {{default: ['{_EVIL}']}}\n"),
        ('config `["bucketMembers"]` is', _EVIL, "applies to a part of a value", "changes to resources are unknown"),
    ),
    Attack(
        "member-by-a-path-into-the-list",
        _project(f"  bucketMembers[0]: {{default: '{_EVIL}'}}\n"),
        ("config `bucketMembers[0]` is", "applies to a part of a value"),
    ),
    Attack(
        "public-members-by-default",
        _default(_MEMBERS.replace("[]", "[allUsers]")),
        ("changes to resources are unknown",),
        status=1,
    ),
    Attack(
        "backend-moved",
        _project("backend: {url: 'gs://evil'}\n"),
        ("`backend.url` added (`gs://evil`)", "or another state"),
    ),
    Attack(
        "provider-from-the-repository",
        together(_project("plugins:\n  providers: [{name: gcp, path: ./bin}]\n"), write("bin/pulumi-resource-gcp", "")),
        ("`plugins.providers.0.path`", "./bin", "Pulumi runs other code"),
    ),
    Attack(
        "provider-binary-swapped",
        write("bin/pulumi-resource-gcp", "evil"),
        ("Pulumi runs or reads what this review does not: `bin/pulumi-resource-gcp",),
        base=together(
            _project("plugins:\n  providers: [{name: gcp, path: ./bin}]\n"), write("bin/pulumi-resource-gcp", "")
        ),
    ),
    Attack(
        "package-added",
        _project("packages: {gcp: github.com/evil/gcp}\n"),
        ("`packages.gcp` added (`github.com/evil/gcp`)",),
    ),
    Attack(
        "virtual-environment-moved",
        edit("Pulumi.yaml", ("virtualenv: .venv", "virtualenv: tools/env")),
        ("`runtime.options.virtualenv` changed from `.venv` to `tools/env`",),
    ),
    Attack(
        "virtual-environment-committed",
        write_ignored(".venv/bin/python", "#!/bin/sh\n"),
        ("Pulumi runs or reads what this review does not: `.venv/bin/python",),
    ),
    Attack(
        "other-runtime",
        edit("Pulumi.yaml", ("  name: python\n", "  name: nodejs\n")),
        ("`runtime.name` changed from `python` to `nodejs`",),
    ),
    Attack(
        "program-in-another-folder",
        together(write("other/__main__.py", ""), edit("Pulumi.yaml", ("main: stacks", "main: other"))),
        ("`main` changed from `stacks` to `other`: Pulumi runs other code",),
    ),
    Attack(
        "stack-files-in-another-folder",
        together(
            write("other/Pulumi.prod.yaml", "config:\n  mnist:spec: tpucfg.yaml\n"),
            edit("Pulumi.yaml", ("stackConfigDir: stacks", "stackConfigDir: other")),
        ),
        ("`stackConfigDir` changed from `stacks` to `other`",),
    ),
    Attack(
        "json-project-file",
        write(
            "Pulumi.json", '{"name": "mnist", "runtime": "python", "main": "stacks", "backend": {"url": "gs://evil"}}'
        ),
        ("Pulumi reads `Pulumi.json` as its project file instead of `Pulumi.yaml`", "gs://evil"),
    ),
    Attack(
        "project-file-with-a-merge-key",
        _project("<<: {backend: {url: 'gs://evil'}}\n"),
        ("`Pulumi.yaml` cannot be read by this review", "merge keys"),
    ),
    Attack("unknown-project-setting", _project("future: {plugin: evil}\n"), ("`future.plugin`",), status=0),
    Attack(
        "project-file-is-a-link",
        together(
            write("shared.yaml", "name: mnist\nruntime: python\nmain: stacks\n"), link("Pulumi.yaml", "shared.yaml")
        ),
        ("Pulumi.yaml (link to shared.yaml)",),
    ),
    Attack(
        "json-project-file-is-a-link",
        together(write("x.json", '{"name": "mnist", "runtime": "python"}'), link("Pulumi.json", "x.json")),
        ("Pulumi.json (link to x.json)",),
    ),
    # The stack files
    Attack(
        "stack-file-is-a-link",
        together(
            write("shared.yaml", f"config: {{mnist:bucketMembers: ['{_EVIL}']}}\n"), link(_STACK, "../shared.yaml")
        ),
        (f"{_STACK} (link to ../shared.yaml)",),
    ),
    Attack(
        "target-of-a-linked-stack-file",
        write("shared.yaml", f"config: {{mnist:bucketMembers: ['{_EVIL}']}}\n"),
        (f"{_STACK} (link to ../shared.yaml)",),
        base=together(write("shared.yaml", "config: {mnist:spec: tpucfg.yaml}\n"), link(_STACK, "../shared.yaml")),
    ),
    Attack(
        "stack-file-leads-out-of-the-repository",
        append("stacks/bucket.py", "\n"),
        (f"{_STACK} (link to /etc/pulumi/prod.yaml)",),
        base=link(_STACK, "/etc/pulumi/prod.yaml"),
    ),
    Attack("stack-file-is-too-large", _stack(_LARGE), (f"{_STACK} (large)",)),
    Attack(
        "stack-file-with-an-alias",
        _stack("x: &x [allUsers]\n<<: {config: {mnist:bucketMembers: *x}}\n"),
        (f"`{_STACK}` cannot be read by this review",),
    ),
    Attack(
        "esc-environment",
        _stack("environment: [evil/env]\n"),
        ("**prod**", '`environment` `["evil/env"]`', "another key or service"),
    ),
    Attack(
        "secrets-provider",
        _stack("secretsprovider: gcpkms://evil\n"),
        ("`secretsprovider` `gcpkms://evil` added", "another key"),
        base=_stack(_SALT),
    ),
    Attack(
        "salt-changed",
        edit(_STACK, ("v1:one", "v1:evil")),
        ("`encryptionsalt` changed", "another key or service"),
        base=_stack(_SALT),
    ),
    Attack(
        "encrypted-value-changed",
        edit(_STACK, ("v1:aaaa", "v1:bbbb")),
        ("encrypted value of config `projectNumber` changed: this review cannot read it",),
        base=_stack(f"  mnist:projectNumber: {{secure: v1:aaaa}}\n{_SALT}"),
        absent=("v1:bbbb",),
    ),
    Attack(
        "encrypted-members-added",
        _stack("  mnist:bucketMembers: [{secure: v1:evil}]\n"),
        ("encrypted value of config `bucketMembers` changed",),
    ),
    Attack(
        "key-in-its-former-spelling",
        _stack(f"  mnist:config:bucketMembers: ['{_EVIL}']\n"),
        ("applies to a part of a value", _EVIL, "changes to resources are unknown"),
    ),
    Attack(
        "provider-endpoint",
        _stack("  gcp:storageCustomEndpoint: https://evil.example.com/\n"),
        ("config `gcp:storageCustomEndpoint` added",),
    ),
    Attack(
        "provider-account-by-default",
        _project("  gcp:impersonateServiceAccount: evil@evil.iam.gserviceaccount.com\n"),
        ("config `gcp:impersonateServiceAccount` added (`evil@evil.iam.gserviceaccount.com`)",),
    ),
    Attack(
        "autonaming",
        _stack("  pulumi:autonaming: {mode: disabled}\n"),
        ("config `pulumi:autonaming`", "replaces them"),
    ),
    Attack(
        "default-providers-allowed",
        edit(_STACK, ("  pulumi:disable-default-providers: ['*']\n", "")),
        ("config `pulumi:disable-default-providers` removed",),
        base=_stack("  pulumi:disable-default-providers: ['*']\n"),
    ),
    # The program's files
    Attack("program-is-a-link", link("stacks/bucket.py", "/srv/evil.py"), ("stacks/bucket.py (link",)),
    Attack(
        "linked-module",
        together(write("x/evil.py", ""), link("stacks/evil", "../x")),
        ("stacks/evil (link to ../x)",),
    ),
    Attack(
        "module-behind-a-link-changed",
        write("x/evil.py", "import os\n"),
        ("stacks/evil (link to ../x)",),
        base=together(write("x/evil.py", ""), link("stacks/evil", "../x")),
    ),
    Attack("module-is-too-large", write("stacks/evil.py", _LARGE), ("stacks/evil.py (large)",)),
    Attack(
        "packages-changed",
        write("stacks/requirements.txt", "pulumi\nevil\n"),
        ("stack program changed in `stacks/requirements.txt",),
        status=0,
        base=write("stacks/requirements.txt", "pulumi\n"),
    ),
    Attack(
        "program-changed",
        append("stacks/bucket.py", "# x\n"),
        ("stack program changed in `stacks/bucket.py`",),
        status=0,
    ),
    Attack("program-deleted", delete("stacks/__main__.py"), ("stack program `stacks/__main__.py` removed",)),
)
