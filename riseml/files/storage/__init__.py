"""The files that experiments leave behind: output folders, and the record of the configuration in each.

Modules: `outputs` (an output folder and its record), `owned_folders` (folders made by descriptor, which no other user
can redirect), `capsule_files`.
The server's own files (database, logs, project archives) are in `store`.
"""
