"""Logs of jobs as every kind of executor reads them: frames after a cursor, and the timestamps of an engine."""
