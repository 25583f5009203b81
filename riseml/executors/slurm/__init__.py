"""Jobs on a Slurm cluster: a gang is one sbatch, and Slurm decides where and when it runs.

The script of that job is `gang_supervisor`, which starts the roles, meets them at a barrier, ends them and writes their
ends into a folder that all nodes share; so a gang needs neither the server nor a connection to it. The server reads
this folder, and asks Slurm for all jobs with one squeue. Does not belong here: which experiment comes next, and
anything that another kind of executor needs.
"""
