"""`fedpcs audit`: canaries through real pipelines, and whether these keep their claims."""
