"""What a run leaves behind, read off starts, ends and the history."""
