"""Read YAML and JSON with the location of every key and value, and write values as YAML.

A text is read as a stream of parser events, so nothing in it is ever constructed or evaluated, and its size, depth and
repetition are bounded while it is read.
"""
