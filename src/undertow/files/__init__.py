"""Files: safetensors, and checkpoints in torch's own format, of which nothing is executed."""
