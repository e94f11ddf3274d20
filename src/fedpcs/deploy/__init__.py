"""The same round with clients on machines of their own."""
