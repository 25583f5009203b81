"""The machine of this process: its cores, memory, ports and disks, and the removal of folders. No job is here."""
