"""The Pulumi component with an environment's bucket, identities and access; the only package that imports Pulumi.

A stack program of a project is:

    from tpucfg.stack import deploy

    environment = deploy()
"""

from tpucfg.stack.component import EnvironmentComponent as Environment
from tpucfg.stack.component import deploy

__all__ = ["Environment", "deploy"]
