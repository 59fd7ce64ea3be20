"""What a watch told, what it left, and what the PACS holds of it."""

import json

from medgrape.interchange.pacs.watch import watch


def heard(order):
    """What a watch tells, and what it adds up to."""
    news = []
    counts = watch(order, news.append)
    return [(one.what, one.film) for one in news], counts


def readings(out):
    return {path.parent.name: json.loads(path.read_text()) for path in (out / "readings").rglob("reading.json")}


def reports(orthanc):
    """Which films the PACS has reports of, each report once."""
    found = [one for one in orthanc.holds() if one["Modality"] == "SR"]
    evidence = [one["CurrentRequestedProcedureEvidenceSequence"][0] for one in found]
    return sorted(
        one["ReferencedSeriesSequence"][0]["ReferencedSOPSequence"][0]["ReferencedSOPInstanceUID"] for one in evidence
    )
