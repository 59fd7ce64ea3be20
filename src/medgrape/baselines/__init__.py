"""Methods that GRAPE is compared with."""
