"""A chunk of the model, forward and backward, as the pieces that a stage's program repeats for each micro-batch."""
