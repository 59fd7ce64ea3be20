"""One film: read from PNG, JPEG or DICOM in a process of its own, and anonymised."""
