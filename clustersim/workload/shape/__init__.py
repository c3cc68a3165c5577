"""What an architecture adds to a decoder of plain attention and MLPs: one small frozen object each."""
