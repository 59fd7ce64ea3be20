"""Readings to take along: JSON, PDF and DICOM."""
