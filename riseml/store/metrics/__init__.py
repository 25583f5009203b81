"""The metrics of experiments: the values that their jobs reported, counted from their logs.

The log of an experiment is the source; its metrics are the result of counting the log up to a position. Here: the
history of a metric (`metric_history`), what is known of one metric (`metric_summary`), the metrics of one experiment
(`metric_tally`), their rows in SQL (`metric_rows`), and the store that counts and answers (`metric_store`). The first
three are pure. Not here: which lines are reports (`store.logs`), and who waits for them
(`server.reconcile.metric_counter`).
"""
