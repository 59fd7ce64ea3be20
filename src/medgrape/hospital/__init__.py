"""Readings as DICOM objects, and DICOMweb."""
