"""What a ladder found, as one page to read, as Markdown and as data; every number says which file it comes from."""
