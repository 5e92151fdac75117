"""One module per schema change, in order."""
