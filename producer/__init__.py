"""The producer: the `parley` command, which checks, stores, feeds and watches runs."""
