"""DICOM in and out, for single projection radiographs: CR, DX, and the older RG and SC."""
