"""The layers of a dense transformer, each as a block of kernels cut to one rank."""
