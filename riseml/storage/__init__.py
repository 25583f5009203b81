"""The files that experiments leave behind: output folders and what they record about themselves."""
