"""Names of `torch.onnx` that have no room: the exporter here takes no symbolic functions."""
