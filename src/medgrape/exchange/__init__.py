"""Boxes and readings for other programs: COCO, CSV, Label Studio, CVAT."""
