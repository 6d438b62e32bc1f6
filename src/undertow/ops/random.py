"""Random numbers: Generator, manual_seed, rand, randn, bernoulli, multinomial …."""
