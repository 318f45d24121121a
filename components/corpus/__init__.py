"""Raw text to a corpus: read, normalise, filter, deduplicate, split into sentences; then words."""
