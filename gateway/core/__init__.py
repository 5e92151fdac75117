"""Pure decisions: values in, values out. Time, randomness and sockets are arguments; there is no I/O in this layer."""
