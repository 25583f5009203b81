"""Jobs on a Slurm cluster: a gang is one sbatch, and Slurm decides where and when it runs.

The script of that job is `gang_supervisor`. It starts the roles, holds them at a barrier until all are there, ends
them, and writes their ends into a folder that all nodes share. So a gang needs neither the server nor a connection to
it. The server reads this folder, and asks Slurm for all jobs with one squeue. Does not belong here: the order of
experiments, and anything that another kind of executor needs.
"""
