"""The events of a watch, its files, and the objects in the PACS."""

import json
import sqlite3
from contextlib import closing

from medgrape.hospital.pacs.watch import watch


def run_watch(options):
    """Return a watch's events, and the number of films in each state."""
    events = []
    counts = watch(options, events.append)
    return [(event.kind, event.film) for event in events], counts


def readings(out):
    return {path.parent.name: json.loads(path.read_text()) for path in (out / "readings").rglob("reading.json")}


def reports(orthanc):
    """Return the film of every report in the PACS."""
    found = [one for one in orthanc.holds() if one["Modality"] == "SR"]
    evidence = [one["CurrentRequestedProcedureEvidenceSequence"][0] for one in found]
    return sorted(
        one["ReferencedSeriesSequence"][0]["ReferencedSOPSequence"][0]["ReferencedSOPInstanceUID"] for one in evidence
    )


def states(out, *columns):
    """Return state and other columns of the films in the ledger, in the order of their arrival."""
    with closing(sqlite3.connect(out / "ledger.db")) as rows:
        return rows.execute(
            f"SELECT {', '.join(('state', *columns))} FROM films WHERE state != 'own' ORDER BY number"
        ).fetchall()
