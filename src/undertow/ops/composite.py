"""Plain functions over ops: softmax, linear, embedding, attention, distances."""
