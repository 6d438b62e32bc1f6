"""grid_sample, affine_grid and one_hot."""
