"""One sampler with one seed, from its configuration to its result on disk."""
