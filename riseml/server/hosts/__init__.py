"""The hosts of this server: choose, add, check and dismiss them. What is on their disks is in `server.data`."""
