"""Plain functions on files: every stage's computation, without orchestration or tracking."""
