"""Bulk reading is timed against the model alone; here only that it is, with a model that takes no time."""

from benchmarks.bulk import SMALL, TARGET, bench_bulk
from benchmarks.untrained import untrained_reader
from medgrape.concepts import ConceptSet
from medgrape.config import parse_config


def test_films_in_bulk_are_timed_against_the_forward_pass_of_the_same_model(tmp_path):
    backbone = {"name": "efficientnet-lite0", "pretrained": False, "leave_off": 3}
    config = parse_config({"preprocessing": {"size": 64}, "backbone": backbone, "model": {"prototypes": 2, "width": 8}})
    reader = untrained_reader(config, ConceptSet.built_in("tbx11k"))
    reader.loaded.run.save(tmp_path, {"name": "none", "checksum": "none"})
    (ratio,) = bench_bulk(1, tmp_path, SMALL[:1], films=8, workers=1)
    assert ratio.what == "8 films in bulk, PNG, 256 px, 1 process"
    assert (ratio.at_most, ratio.target) == (True, TARGET)
    assert ratio.ours > 0 < ratio.theirs
