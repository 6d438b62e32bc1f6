"""Names of `torch.utils` that have a room nowhere else."""
