"""What scripts/gpu-suite is made of."""
