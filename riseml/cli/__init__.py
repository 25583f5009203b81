"""The command line: one file a group of verbs; `render` is the only printer. No part of the server is imported here."""
