"""Order statistics and spread: median, quantile, mode, var, std, histc, bincount."""
