"""Project archives: one strict tar format, read and written from checked fields only, on the client and on the server.

Modules: `entries` (what an archive holds), `writer` (fields to bytes), `reader` (bytes to fields, or a refusal), `tree`
(the rules for all entries together: each path once, no link leads out), `digest` (the name of a project's content).

Readers of tar disagree about rare features: extended headers, sparse files, names in two places. So riseml never passes
bytes of a header on: the client, the server and each executor read plain fields, check them, and write new headers.

Not here: files of a project folder (`files.project`), where archives are kept (`riseml.store`), and who gets them
(`riseml.executors`).
"""
