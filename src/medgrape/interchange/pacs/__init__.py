"""Films from a PACS, and readings back into it, by DICOMweb: QIDO, WADO and STOW with servers that somebody set up."""
