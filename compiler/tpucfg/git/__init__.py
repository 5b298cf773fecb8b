"""Git revisions of a project, read without a checkout.

Other rooms import these modules by their names, as few commands read a revision:

- `repository` finds a repository and runs git, and has the errors;
- `snapshots` opens two revisions of a spec with the files around it;
- `trees` lists and reads the files of a commit or of the working tree;
- `changed_files` and `program_files` find what a change touches, and what a stack program may read.
"""
