"""The head of a model card, which a hub's search reads: YAML with licence, tags and figures."""

from medgrape.hub.measured import Measured
from medgrape.model.checkpoint import LoadedRun
from medgrape.model.manifest import RunError
from medgrape.model.run_hub import NEEDED

TAGS = (
    "chest-x-ray",
    "concept-based",
    "explainability",
    "medical",
    "not-a-medical-device",
    "prototypes",
    "research-only",
)
TASK = "image-classification"


def front_matter(loaded: LoadedRun, measured: Measured, name: str, licence: str) -> str:
    """The lines between the dashes. Every figure of ours is followed by what the trivial answer gets."""
    try:
        from huggingface_hub import EvalResult, ModelCardData
    except ModuleNotFoundError as missing:
        raise RunError(f"A model card for a hub needs one more package: {NEEDED}.") from missing
    results = []
    if measured.report is not None and measured.tested:  # hubs rank models by these, and show no warning
        data_set, split = measured.report["data_set"], measured.report["split"]
        told = [(row.kind, row.name, row.value) for row in measured.rows]
        told += [
            (row.kind, f"{row.name}, by the trivial answer: {row.trivial}", row.trivial_value)
            for row in measured.rows
            if row.trivial_value is not None
        ]
        results = [
            EvalResult(
                task_type=TASK, dataset_type="private", dataset_name=data_set, dataset_split=split, metric_type=kind,
                metric_name=title, metric_value=round(value, 4), verified=False,
            )
            for kind, title, value in dict.fromkeys(told)
        ]  # fmt: skip
    data = ModelCardData(
        library_name="medgrape",
        license=licence,
        pipeline_tag=TASK,
        tags=[*TAGS, *loaded.run.concepts.names],
        model_name=name if results else None,
        eval_results=results or None,
    )
    return str(data.to_yaml())
