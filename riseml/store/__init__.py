"""What survives a restart of the server: records in SQL; logs and project archives in files.

Here belong connections and transactions (`database`, `claim`, `database_errors`), the tables (`schema`, `rows`,
`codec`, `migrations`), what is kept in them (`experiments`, `drained_hosts`, `kept_outputs`, `usage`), and the files
(`logs`, `snapshots`, `project_archive`). Nothing here decides anything or talks to a host; the output folders of
experiments are in `storage`.
"""
