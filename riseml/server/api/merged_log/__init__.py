"""The merged log of an experiment or a set: lines of all jobs and changes of state, in order, each once.

Not here: where lines are stored (`store.logs`), and the route that sends the stream (`api.routes.log_routes`).
"""
