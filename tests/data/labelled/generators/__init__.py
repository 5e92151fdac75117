"""Hand-written generators of the labelled set's synthetic part. `build.py` runs them all, in this order."""
