"""A trainer that takes the flags of the configs: `python -m trainer --help`.

`train.py` is the training loop. Replace the model and its examples with your own.
"""
