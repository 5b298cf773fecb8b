"""A trainer for MNIST that takes the flags of the configs: `python -m trainer --help`.

Replace `network.py`, the model, and `data.py`, its examples, with your own. `replicas.py` distributes the work over the
TPU's cores, and `train.py` is the training loop; the other modules support it.
"""
