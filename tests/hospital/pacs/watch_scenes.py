"""What a watch told, what it left, and what the PACS holds of it."""

import json
import sqlite3
from contextlib import closing

from medgrape.hospital.pacs.watch import watch


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


def states(out, *columns):
    """What the ledger says of films, in the order of their arrival."""
    with closing(sqlite3.connect(out / "ledger.db")) as rows:
        return rows.execute(
            f"SELECT {', '.join(('state', *columns))} FROM films WHERE state != 'own' ORDER BY number"
        ).fetchall()
