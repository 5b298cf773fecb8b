"""The spec, tpucfg.yaml: parsing, rules, and the resulting immutable values."""
