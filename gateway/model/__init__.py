"""Frozen values that cross layers, with their invariants. No behaviour beyond what a value can say about itself."""
