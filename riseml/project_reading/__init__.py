"""What a project says about itself: from its files to a riseml.yml that fits. Nothing of a project is executed.

Here: the bounded reading of a folder, the syntax of its scripts and notebooks, its files of packages, its Dockerfile,
the choice of what to run, and the text of the riseml.yml.
Not here: questions to the user (`cli`), what a riseml.yml may have (`spec`), which files are sent (`files.project`).

Floors, from below: `project_files` and `findings`, then `syntax`, then the readers of one kind of file, then
`proposal`, then `config_text`.
"""
