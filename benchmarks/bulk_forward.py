"""A process that only runs a model, for the number of films on each line of its input."""

import sys
from pathlib import Path


def main(run: Path, batch: int) -> None:
    """Run the model on noise that is in memory."""
    import torch

    from medgrape.reader import load

    torch.set_num_threads(1)
    loaded = load(run).loaded.run
    side = loaded.config.preprocessing.size
    films = torch.rand(batch, 1, side, side)
    with torch.inference_mode():
        for line in sys.stdin:
            left = int(line)
            while left > 0:
                loaded.model.predict_with_mean_maps(films[:left])
                left -= batch
            sys.stdout.write("done\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
