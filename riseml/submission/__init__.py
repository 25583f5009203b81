"""A submission, from a project's folder to an accepted experiment: what the command line and Python do alike.

Here: the riseml.yml of a folder, its check, the consent of the user, the sync of the files, the user's own server.
Not here: options of commands and what they print (`riseml.cli`), requests (`riseml.client`).
"""
