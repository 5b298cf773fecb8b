"""Read YAML and JSON with the location of every key and value, and write values as YAML."""
