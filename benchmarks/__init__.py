"""How fast tpucfg is, as ratios of what is measured beside it in the same run: `make bench`."""
