"""The data that survives a restart of the server: records in SQL; logs and project archives in files.

Here: connections and transactions (`database`, `claim`, `database_errors`), the tables (`schema`, `rows`, `codec`,
`migrations`), the records in them (`experiments`, `searches`, `ends`, `milestones`, `marks`,
`written_files`, `usage`), queries for lists (`experiment_pages`, `experiment_names`, `outcomes`), and files (`logs`,
`metrics`, `samples`, `capsules`, `projects`). Not here: decisions, calls to hosts, and the output folders of
experiments (`files.storage`).
"""
