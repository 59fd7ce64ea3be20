"""A model on disk and elsewhere: checkpoint, manifest, ONNX export and model hub."""
