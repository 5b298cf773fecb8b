"""Meanings of settings and flags, by the names that common training programs give them."""

import re
from collections.abc import Mapping
from typing import Final

CHECKPOINT_INTERVALS: Final[Mapping[str, str]] = {
    "save_steps": "https://huggingface.co/docs/transformers/main_classes/trainer",
    "save_interval_steps": "https://orbax.readthedocs.io/en/stable/api_reference/checkpoint.checkpoint_manager.html",
    "save_interval": "https://docs.nvidia.com/nemo/megatron-bridge/latest/training/checkpointing.html",
    "save_every_n_steps": "https://github.com/apple/axlearn/blob/34aed43/axlearn/experiments/text/gpt/fuji.py",
    "save_model_freq": "https://github.com/young-geng/EasyLM/blob/main/EasyLM/models/llama/llama_train.py",
}
"""Names of an interval between two checkpoints that do not contain a word of CHECKPOINT_WORDS, with a source each."""
CHECKPOINT_WORDS: Final = ("checkpoint", "ckpt")
"""Words in the names of such intervals: `save_checkpoints_steps` of TensorFlow's estimators
(https://www.tensorflow.org/versions/r2.5/api_docs/python/tf/estimator/RunConfig), `checkpoint_period` of MaxText
(https://github.com/AI-Hypercomputer/maxtext/blob/e591f30/src/maxtext/configs/base.yml), `ckpt_steps` of Big Vision
(https://github.com/google-research/big_vision/blob/main/big_vision/train.py)."""

_SAVING_WORDS: Final = frozenset(("checkpoint", "checkpoints", "checkpointing", "ckpt", "ckpts", "save", "saves"))
"""Words of a name, between other characters than letters, that show that a program writes checkpoints."""


def shows_checkpoints(key: str) -> bool:
    """Return True if the name of a setting, a flag or a variable shows that the program writes checkpoints."""
    return not _SAVING_WORDS.isdisjoint(re.split("[^a-z]+", key.lower()))


def is_checkpoint_interval(key: str) -> bool:
    """Return True if a setting's name is that of an interval between two checkpoints."""
    name = key.lower().replace("-", "_").rpartition(".")[2]
    if name.startswith("keep"):
        return False  # the checkpoints that are never deleted, of those that are saved more often
    return name in CHECKPOINT_INTERVALS or any(word in key.lower() for word in CHECKPOINT_WORDS)


def is_warmup(key: str) -> bool:
    """Return True if a setting's name is that of a warm-up of the learning rate."""
    return "warmup" in key.lower().replace("-", "").replace("_", "")
