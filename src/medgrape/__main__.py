"""``python -m medgrape``."""

from medgrape.cli import main

if __name__ == "__main__":
    main()
