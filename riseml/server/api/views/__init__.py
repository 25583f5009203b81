"""Records of the store as answers: the experiments that an ID names, and each record in its shape of `riseml.wire`.

Not here: the routes that send them (`api.routes`), and how a terminal or a page prints them (`cli.output`, `web`).
"""
