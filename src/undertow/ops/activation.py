"""Elementwise activation functions of nn.functional."""
