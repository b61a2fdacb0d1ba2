"""Three servers and streams of three replicas, and what clients and networks do to them."""
