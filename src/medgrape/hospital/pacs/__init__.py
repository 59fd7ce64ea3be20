"""Films from a PACS and readings back into it, over DICOMweb (QIDO-RS, WADO-RS, STOW-RS)."""
