"""What survives a restart: rows in SQL, logs and code in files. Nothing here decides anything."""
