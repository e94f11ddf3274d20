"""The rounds of one trial: from the first, or the last checkpoint, to the result."""
