"""The behaviour of an earlier commit as data, and its comparison with the behaviour now.

`bad.json` and `examples.json` have the checks and configs of tests/bad and of the examples, `review.json` and
`attacks.json` the reviews of the recorded histories in `histories.bundle`. `gone.yaml` lists what may differ, and why.
"""
