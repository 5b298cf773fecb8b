"""Load the spec, tpucfg.yaml, from its document to frozen values."""
