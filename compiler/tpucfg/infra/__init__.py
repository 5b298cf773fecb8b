"""Infrastructure of a spec: stack files, declared resources and their rules, stack outputs. Pulumi is optional.

The names below are what a stack program imports. A project keeps its copy of stacks/, so they stay.
"""

from tpucfg.infra.stack_files import (
    file_findings,
    is_known,
    project_file,
    project_findings,
    pulumi_project,
)

__all__ = ["file_findings", "is_known", "project_file", "project_findings", "pulumi_project"]
