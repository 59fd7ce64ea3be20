"""What leaves medgrape for other software: models as ONNX files."""
