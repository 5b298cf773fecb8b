"""`python -m trainer`: entry point of the image."""

import sys

from trainer.flags import parse

if __name__ == "__main__":
    FLAGS = parse(sys.argv[1:])
    # Imported after parsing, so that an invalid flag is reported before the slow import.
    from trainer.train import train

    train(FLAGS)
