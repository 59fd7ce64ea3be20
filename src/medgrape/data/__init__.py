"""Films and data sets: from files on disk to upright, grey, square pixels with boxes on them."""
