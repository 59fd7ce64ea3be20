"""Words for findings: text encoders."""
