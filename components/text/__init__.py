"""What several stages do to text: normalise, split into sentences, segment into words, number the words."""
