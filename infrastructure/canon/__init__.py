"""Canon over HTTP and server-sent events."""
