"""The results of experiments as rows: columns, conditions, order, ranks, groups and their statistics.

Pure: values in, values out. It knows no store, no HTTP and no terminal, so that server and command line can use it.
Not here: where rows come from (`server.api.views.results`), and how they are printed (`cli.output.results_view`).
"""
