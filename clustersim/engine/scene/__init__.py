"""What is played: lanes, rendezvous and the resources that can bind, folded or full."""
