"""Jobs as processes of this machine, without Docker.

`supervisor` runs one job and outlives the server; `job_records`, `job_processes` and `job_folders` find what it wrote
and started; `log_reader` and `watch` follow it; `venvs`, `venv_recipe` and `build_step` make environments;
`project_files` unpacks projects; `executor` joins them behind the seam.

Not here: anything of Docker (`executors.docker`).
"""
