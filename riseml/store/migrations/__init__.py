"""Alembic migrations, oldest first. One that has been released is never changed."""
