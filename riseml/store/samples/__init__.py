"""The samples of jobs in files of bounded size: what each job used, downsampled as it gets older.

Here belong the fixed record of one sample (`sample_rows`, pure), the file of one job with its three resolutions
(`sample_file`) and the samples of a server (`sample_store`). Not here: when a job is sampled (`server.usage`), and how
a host measures (`executors`).
"""
