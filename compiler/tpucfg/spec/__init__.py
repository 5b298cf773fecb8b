"""The spec: tpucfg.yaml, from its text to frozen values."""
