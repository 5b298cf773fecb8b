"""Changes to jobs, ladders and training, and the warnings that come and go with them."""
