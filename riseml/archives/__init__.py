"""Project archives: one strict tar format, read and written from checked fields only, on the client and on the server.

Modules: `entries` (what an archive holds), `writer` (fields to bytes), `reader` (bytes to fields, or a refusal), `tree`
(the rules for all entries together: each path once, no link leads out), `digest` (the name of a project's content).

Readers of tar disagree about what few archives hold: extended headers, sparse files, names in two places. So nothing of
an archive is ever passed on: whoever takes one reads plain fields, checks them, and writes a new archive of them.

Not here: files of a project folder (`riseml.project`), where archives are kept (`riseml.store`), and who gets them
(`riseml.executors`).
"""
