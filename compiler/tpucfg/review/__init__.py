"""Review of a change: what it does to jobs, infrastructure and access, as values and as a pull request's comment.

The command line imports these modules by their names, as a review is printed in one format:

- `scope` finds the specs to review, and `build` makes the values of `review`;
- `comment`, `json_report` and `folds` print a review, its data, and a difference without a review;
- `cautions` has the verdict for the exit status.
"""
