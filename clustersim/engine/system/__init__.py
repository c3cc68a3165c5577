"""Jobs on a topology, as one graph of ranks, groups and resources."""
