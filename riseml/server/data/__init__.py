"""Data, outputs and leftovers on the disks of the hosts and of the server: bring, save, measure and remove them."""
