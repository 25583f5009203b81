"""What running jobs use of their hosts: samples, GPU load, and how long a job has done nothing. No decision is here."""
