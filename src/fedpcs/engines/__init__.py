"""Where clients run: in this process, or in worker processes. The same tasks in, the same bits out."""
