"""Turn a config of another tool into a spec, and prove the spec by rendering it again."""

from tpucfg.importing.convert import Imported, import_config
from tpucfg.importing.draft import Given, ImportRefusedError

__all__ = ["Given", "ImportRefusedError", "Imported", "import_config"]
