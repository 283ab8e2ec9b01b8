"""Threads that share the tasks of one launch."""
