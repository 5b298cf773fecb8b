"""Attacks on access: grants to strangers, roles that take over accounts, and restrictions that are removed."""

from typing import Final

from attacks.attack import (
    MAIN,
    Attack,
    Edit,
    append,
    before_deploy,
    declare,
    edit,
    other_settings,
    together,
)

_CONDITION: Final = (
    ', condition={"title": "t", "expression": "request.time < timestamp(\'2027-01-01T00:00:00Z\')"}'
)
_TEAM: Final = "group:team@example.com"


def _members(*members: str) -> Edit:
    """Add members of the bucket of prod to its stack file."""
    listed = ", ".join(f'"{member}"' for member in members)
    return append("stacks/Pulumi.prod.yaml", f"  mnist:bucketMembers: [{listed}]\n")


def _on_project(role: str, member: str, project: str = "settings.project", more: str = "") -> str:
    return f'gcp.projects.IAMMember("g", project={project}, role="{role}", member="{member}"{more})'


def _role(permissions: str) -> str:
    arguments = f'project=settings.project, role_id="r", title="r", permissions=[{permissions}]'
    return f'gcp.projects.IAMCustomRole("r", {arguments})'


_PROVIDER: Final = (
    'gcp.iam.WorkloadIdentityPoolProvider("github", project=settings.project, workload_identity_pool_id="p", '
    'workload_identity_pool_provider_id="github", oidc={"issuer_uri": "https://token.actions.githubusercontent.com"}, '
    'attribute_mapping={"google.subject": "assertion.sub"}'
)
_REPOSITORY: Final = ", attribute_condition=\"assertion.repository == 'acme/mnist'\""
_DENY: Final = (
    'gcp.iam.DenyPolicy("deny", parent="cloudresourcemanager.googleapis.com%2Fprojects%2Fp", name="deny", '
    'rules=[{"deny_rule": {"denied_principals": ["principalSet://goog/public:all"], '
    '"denied_permissions": ["storage.googleapis.com/objects.delete"]}}])\n'
)
_AUDIT: Final = (
    'gcp.projects.IAMAuditConfig("audit", project=settings.project, service="allServices", '
    'audit_log_configs=[{"log_type": "DATA_WRITE"}])\n'
)
_ACCOUNT: Final = (
    '"projects/my-project-dev/serviceAccounts/tpu-mnist-dev@my-project-dev.iam.gserviceaccount.com"'
)

_ONE_HOST: Final = edit(
    "tpucfg.yaml",
    ("target: vertex-ai", "target: compute-engine"),
    ("sizes: [v2-8, v2-32, v2-128] ", "sizes: [v6e-4, v6e-16]"),
    ("tuned_on: v2-8", "tuned_on: v6e-4"),
    ("region: us-central1", "region: us-east5"),
    ("trainer:\n", "trainer:\n  max_run_duration: 1h\n"),
)
"""A ladder on Compute Engine whose jobs may delete the instance that they run on."""

ATTACKS: Final = (
    Attack(
        "private-address-in-bucket-members",
        _members("user:eve@gmail.com"),
        (
            (
                "grants `roles/storage.objectUser` on the bucket `my-project-prod-mnist-prod-us-central1` to "
                "`user:[redacted]@gmail.com`"
            ),
            "`TPU089`",
            "a person and not a group",
        ),
        status=0,
        absent=("eve@",),
    ),
    Attack(
        "second-person-of-a-known-domain",
        edit(
            "stacks/Pulumi.prod.yaml",
            ('"user:ada@example.com"', '"user:ada@example.com", "user:eve@example.com"'),
        ),
        ("to `user:[redacted]@example.com`", "`TPU089`"),
        status=0,
        base=_members("user:ada@example.com"),
        absent=("eve@",),
    ),
    Attack(
        "impersonation-of-every-account",
        declare(_on_project("roles/iam.serviceAccountTokenCreator", _TEAM)),
        (
            "`roles/iam.serviceAccountTokenCreator` on the project `my-project-prod` to `group:team@example.com`",
            "`TPU098`",
            "who can then act as every service account in it",
        ),
        status=0,
    ),
    Attack(
        "role-of-service-agents-on-another-target",
        declare(
            _on_project("roles/ml.serviceAgent", "serviceAccount:x@evil.iam.gserviceaccount.com")
        ),
        ("`TPU098`", "grants `roles/ml.serviceAgent` on the project `my-project-dev`"),
        status=0,
    ),
    Attack(
        "grant-in-another-project",
        declare(_on_project("roles/storage.objectViewer", _TEAM, '"acme-finance"')),
        (
            "grants `roles/storage.objectViewer` on the project `acme-finance` to `group:team@example.com`",
        ),
        status=0,
    ),
    Attack(
        "grant-on-the-organization",
        declare(
            'gcp.organizations.IAMMember("g", org_id="123456", role="roles/resourcemanager.organizationAdmin", '
            f'member="{_TEAM}")'
        ),
        (
            "on the organization `123456` to `group:team@example.com`",
            "`TPU098`",
            "or grant access in it",
        ),
        status=0,
    ),
    Attack(
        "grant-on-a-folder",
        declare(
            f'gcp.folder.IAMMember("g", folder="folders/77", role="roles/viewer", member="{_TEAM}")'
        ),
        ("grants `roles/viewer` on the folder `77` to `group:team@example.com`", "`TPU095`"),
        status=0,
    ),
    Attack(
        "grant-on-a-secret-of-another-project",
        declare(
            'gcp.secretmanager.SecretIamMember("g", project="acme-finance", secret_id="signing", '
            f'role="roles/secretmanager.secretAccessor", member="{_TEAM}")'
        ),
        ("grants `roles/secretmanager.secretAccessor` on the secret `acme-finance/signing`",),
        status=0,
    ),
    Attack(
        "grant-on-a-key",
        declare(
            'gcp.kms.CryptoKeyIAMMember("g", crypto_key_id="p/global/ring/key", '
            f'role="roles/cloudkms.cryptoKeyDecrypter", member="{_TEAM}")'
        ),
        ("on the crypto key `p/global/ring/key` to `group:team@example.com`",),
        status=0,
    ),
    Attack(
        "every-member-of-a-binding",
        declare(
            'gcp.artifactregistry.RepositoryIamBinding("g", project="p", location="us-central1", repository="train", '
            'role="roles/artifactregistry.writer", members=["group:a@example.com", "domain:evil.example"])'
        ),
        (
            "on the repository `p/us-central1/train` to `group:a@example.com`",
            "on the repository `p/us-central1/train` to `domain:evil.example`",
            "from every member that it does not list, whoever granted it",
        ),
    ),
    Attack(
        "members-of-a-whole-policy",
        declare(
            'policy = {"bindings": [{"role": "roles/storage.admin", "members": ["group:x@evil.example"]}]}\n'
            'gcp.projects.IAMPolicy("g", project=settings.project, policy_data=json.dumps(policy))'
        ),
        (
            "grants `roles/storage.admin` on the project `my-project-dev` to `group:x@evil.example`",
            "takes `all roles` on the `project` `my-project-dev` from every member that it does not list",
            "`TPU098`",
        ),
    ),
    Attack(
        "public-access-list",
        declare(
            'gcp.storage.BucketACL("g", bucket="my-project-dev-mnist-dev-us-central1", '
            'role_entities=["READER:allUsers", "OWNER:user-eve@gmail.com"])'
        ),
        ("allUsers",),
        status=0,
        absent=("eve@",),
    ),
    Attack(
        "predefined-public-access-list",
        declare('gcp.storage.BucketACL("g", bucket="b", predefined_acl="publicRead")'),
        ("names everyone, through `publicRead`, in `predefinedAcl`", "`TPU091`"),
        status=0,
    ),
    Attack(
        "public-dataset",
        declare(
            'gcp.bigquery.Dataset("metrics", project=settings.project, dataset_id="metrics", '
            'location=settings.region, accesses=[{"role": "READER", "special_group": "allAuthenticatedUsers"}])'
        ),
        ("allAuthenticatedUsers",),
        status=0,
    ),
    Attack(
        "everyone-in-another-input",
        declare(
            'pulumi.CustomResource("gcp:iam/entitlement:Entitlement", "e", {"eligible": [["allUsers"]]})'
        ),
        ("is of the type `gcp:iam/entitlement:Entitlement`, about which this review has no rules",),
        status=0,
    ),
    Attack(
        "condition-removed",
        edit(MAIN, (_CONDITION, "")),
        (
            "grants `roles/storage.objectViewer` on the project `my-project-dev`",
            "without the condition that it had",
        ),
        status=0,
        base=declare(_on_project("roles/storage.objectViewer", _TEAM, more=_CONDITION)),
    ),
    Attack(
        "condition-changed",
        edit(MAIN, ("2027-01-01", "2099-01-01")),
        (
            "under another condition than before, if `request.time < timestamp('2099-01-01T00:00:00Z')`",
        ),
        status=0,
        base=declare(_on_project("roles/storage.objectViewer", _TEAM, more=_CONDITION)),
    ),
    Attack(
        "condition-of-the-deletion-removed",
        other_settings("deletion_condition=None"),
        (
            "grants `projects/my-project-prod/roles/tpu.mnist.prod` on the project `my-project-prod` to",
            (
                "without the condition that it had: `compute.instances.delete`, "
                "`compute.instanceGroupManagers.delete` for everything in that project"
            ),
        ),
        status=0,
        base=_ONE_HOST,
    ),
    Attack(
        "condition-of-the-deletion-always-true",
        other_settings("deletion_condition='true'"),
        (
            (
                "under another condition than before, if `true`: `compute.instances.delete`, "
                "`compute.instanceGroupManagers.delete` in that project"
            ),
        ),
        status=0,
        base=_ONE_HOST,
    ),
    Attack(
        "condition-of-the-deletion-kept-secret",
        other_settings("deletion_condition=pulumi.Output.secret('true')"),
        ("if `[secret]`: `compute.instances.delete`",),
        status=0,
        base=_ONE_HOST,
    ),
    Attack(
        "condition-of-the-deletion-not-a-text",
        other_settings("deletion_condition=1"),
        ("under another condition than before, if `[not a text]`: `compute.instances.delete`",),
        status=0,
        base=_ONE_HOST,
    ),
    Attack(
        "condition-of-the-deletion-undone-at-its-end",
        other_settings("deletion_condition=settings.deletion_condition + ' || true'"),
        (
            "under another condition than before, if `resource.type",
            '.startsWith("mnist-prod-v6e-4") || true`',
        ),
        status=0,
        base=_ONE_HOST,
    ),
    Attack(
        "broader-role-of-the-jobs",
        before_deploy(
            "import tpucfg.stack.access as access\n\naccess.OBJECT_USER = 'roles/storage.admin'"
        ),
        ("grants `roles/storage.admin` on the bucket",),
        status=0,
    ),
    Attack(
        "permissions-of-a-custom-role",
        edit(
            MAIN,
            ('"tpu.nodes.list"', '"tpu.nodes.list", "iam.serviceAccounts.getAccessToken"'),
        ),
        (
            "gives everyone who has the role `iam.serviceAccounts.getAccessToken` (`permissions`)",
            "`TPU098`",
        ),
        status=0,
        base=declare(_role('"tpu.nodes.list"')),
    ),
    Attack(
        "custom-role-with-an-innocent-name",
        declare(
            _role(
                '"storage.buckets.get", "storage.objects.delete", "secretmanager.versions.access"'
            ).replace('role_id="r"', 'role_id="tpu.mnist.dev"')
            + "\n"
            + 'gcp.projects.IAMMember("g", project=settings.project, '
            f'role=f"projects/{{settings.project}}/roles/tpu.mnist.dev", member="{_TEAM}")'
        ),
        (
            "/roles/tpu.mnist.dev` on the project",
            ("`storage.buckets.get`, `storage.objects.delete`, `secretmanager.versions.access`"),
        ),
        status=0,
    ),
    Attack(
        "secret-of-another-project-in-the-spec",
        together(
            edit("tpucfg.yaml", ("target: vertex-ai", "target: cloud-tpu")),
            edit(
                "tpucfg.yaml",
                (
                    "trainer:\n",
                    "trainer:\n  secrets: {KEY: projects/acme-finance/secrets/signing/versions/1}\n",
                ),
            ),
        ),
        (
            (
                "grants `roles/secretmanager.secretAccessor` on the secret `acme-finance/signing` to "
                "`serviceAccount:tpu-mnist-prod@my-project-prod.iam.gserviceaccount.com`"
            ),
        ),
        status=0,
    ),
    Attack(
        "custom-role-of-another-program",
        together(
            edit("tpucfg.yaml", ("target: vertex-ai", "target: cloud-tpu")),
            edit("tpucfg.yaml", ("trainer:\n", "trainer:\n  max_run_duration: 1h\n")),
            append(
                "stacks/Pulumi.prod.yaml",
                "  mnist:deletionRole: organizations/123456789012/roles/superAdmin\n",
            ),
        ),
        (
            "grants `organizations/123456789012/roles/superAdmin` on the project `my-project-prod` to",
        ),
        status=0,
    ),
    Attack(
        "slices-that-cannot-delete-themselves",
        edit("tpucfg.yaml", ("target: cloud-tpu", "target: vertex-ai")),
        (
            (
                "loses `tpu.nodes.delete, tpu.nodes.get, tpu.nodes.list, tpu.operations.get`: slices that are running "
                "can no longer delete themselves; let bounded ones end first"
            ),
        ),
        status=0,
        base=together(
            edit("tpucfg.yaml", ("target: vertex-ai", "target: cloud-tpu")),
            edit("tpucfg.yaml", ("trainer:\n", "trainer:\n  max_run_duration: 1h\n")),
        ),
    ),
    Attack(
        "account-key",
        declare(f'gcp.serviceaccount.Key("k", service_account_id={_ACCOUNT})'),
        ("about which this review has no rules",),
        status=0,
    ),
    Attack(
        "pods-of-another-project",
        declare(
            f'gcp.serviceaccount.IAMMember("g", service_account_id={_ACCOUNT}, '
            'role="roles/iam.workloadIdentityUser", member="serviceAccount:evil.svc.id.goog[default/x]")'
        ),
        (
            (
                "grants `roles/iam.workloadIdentityUser` on the account "
                "`tpu-mnist-dev@my-project-dev.iam.gserviceaccount.com` to `serviceAccount:evil.svc.id.goog[default/x]`"
            ),
        ),
        status=0,
    ),
    Attack(
        "default-account",
        declare(
            _on_project(
                "roles/storage.objectViewer",
                "serviceAccount:123-compute@developer.gserviceaccount.com",
            )
        ),
        ("`TPU088`", "a default account that everything without an account of its own runs as"),
        status=0,
    ),
    Attack(
        "federation-without-its-condition",
        edit(MAIN, (_REPOSITORY, "")),
        (
            "about which this review has no rules",
            "`gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider`",
        ),
        status=0,
        base=declare(f"{_PROVIDER}{_REPOSITORY})"),
    ),
    Attack(
        "new-federation",
        declare(f"{_PROVIDER})"),
        ("about which this review has no rules",),
        status=0,
    ),
    Attack(
        "deny-policy-removed",
        edit(MAIN, (_DENY, "")),
        ("`iam.DenyPolicy` `deny` is deleted",),
        base=declare(_DENY),
    ),
    Attack(
        "audit-log-removed",
        edit(MAIN, (_AUDIT, "")),
        ("its data is lost",),
        base=declare(_AUDIT),
    ),
    Attack(
        "new-environment-with-grants-elsewhere",
        together(
            edit(
                "tpucfg.yaml",
                (
                    "  prod:\n",
                    "  test:\n    project: my-project-test\n    region: us-central1\n  prod:\n",
                ),
            ),
            declare(
                "if settings.environment == 'test':\n"
                '    gcp.storage.BucketIAMMember("g", bucket="my-project-prod-mnist-prod-us-central1", '
                f'role="roles/storage.objectViewer", member="{_TEAM}")\n',
            ),
        ),
        (
            "**test**",
            "on the bucket `my-project-prod-mnist-prod-us-central1` to `group:team@example.com`",
        ),
        status=0,
    ),
    Attack(
        "new-account-that-strangers-act-as",
        together(
            edit(
                "tpucfg.yaml",
                (
                    "  prod:\n",
                    "  test:\n    project: my-project-test\n    region: us-central1\n  prod:\n",
                ),
            ),
            declare(
                "if settings.environment == 'test':\n"
                '    gcp.serviceaccount.IAMMember("g", role="roles/iam.serviceAccountTokenCreator", '
                f'service_account_id=f"projects/x/serviceAccounts/{{settings.account}}", member="{_TEAM}")\n',
            ),
        ),
        ("grants `roles/iam.serviceAccountTokenCreator` on the account `tpu-mnist-test@",),
        status=0,
    ),
)
