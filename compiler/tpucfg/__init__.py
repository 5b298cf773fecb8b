"""tpucfg: one short spec in, one validated config.yaml per TPU size out."""

__version__ = "0.1.0"
