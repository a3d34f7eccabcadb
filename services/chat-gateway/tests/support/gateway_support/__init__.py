"""Other services as small programs of their own, for tests of the gateway: the same HTTP contract over a real socket."""
