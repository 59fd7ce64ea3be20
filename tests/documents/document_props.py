"""Files that the commands of a page use: films, data sets, a trained run, settings."""

import csv
import datetime
import ipaddress
import json
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from cut_settings import write_cut
from PIL import Image

from medgrape.datasets.dataset import SplitRule
from medgrape.datasets.sources.phantoms import PhantomOptions, draw_dataset
from medgrape.films.dicom.writer import Person, write_dicom
from medgrape.phantoms.cohort import plan
from medgrape.phantoms.film import PhantomFilm, draw
from paper.published_films import publish_nih, publish_tbx11k
from small_settings import small

SIDE = 512
CHEST = 120
"""Number of the exam: a woman of 49 with active disease where the pages draw a box, 310,120,420,260."""
THIRD = "PulmonaryTuberculosis"
VINDR = ("Nodule/Mass", "Pleural effusion", "No finding")


def make_props(folder: Path) -> Path:
    """Write all files to the folder."""
    folder.mkdir(parents=True)
    sittings = plan("tb", 400, seed=1)
    _chest(draw(sittings[CHEST], SIDE), folder)
    _own_films([draw(sitting, 128) for sitting in plan("tb", 24, seed=7)], folder)
    write_cut(folder / "configs")
    _without_pulmonary(publish_tbx11k(folder / "TBX11K"))
    _with_test_films(publish_nih(folder / "ChestX-ray14"))
    _vindr([draw(sitting, 128) for sitting in plan("nih", 12, seed=7)], folder / "vindr-cxr")
    _certificate(folder)
    draw_dataset(PhantomOptions(films=60, seed=0), folder / "data/tb", SplitRule(test=0.2, seed=0))
    _train_run(folder)
    return folder


def _chest(film: PhantomFilm, folder: Path) -> None:
    Image.fromarray(film.pixels).save(folder / "chest.png")
    who = film.exam
    write_dicom(folder / "chest.dcm", film.pixels, Person(f"tb-{who.patient:06}", who.sex, who.age), "chest", who.view)


def _own_films(drawn: list[PhantomFilm], folder: Path) -> None:
    """Write a folder of pictures, a table of their findings, and boxes as COCO."""
    (folder / "films").mkdir()
    rows, images, boxes = [], [], []
    concepts = ("active_tb", "obsolete_tb", "pulmonary_tb")
    for number, film in enumerate(drawn):
        who, name = film.exam, f"film-{number:03}.png"
        Image.fromarray(film.pixels).save(folder / "films" / name)
        findings = "|".join(who.concepts) or "No Finding"
        rows.append(
            (f"films/{name}", findings, who.patient, who.sex, who.age, who.view, *map(who.concepts.count, concepts))
        )
        images.append({"id": number, "file_name": name, "width": 128, "height": 128})
        boxes += [
            (number, concepts.index(lesion.concept), lesion.box)
            for lesion in film.lesions
            if lesion.concept in concepts
        ]
    _write_csv(folder / "films.csv", ("file", "findings", "pid", "sex", "age", "view", *concepts), rows)
    annotations = [
        {
            "id": place,
            "image_id": image,
            "category_id": kind,
            "bbox": [box.x1, box.y1, box.x2 - box.x1, box.y2 - box.y1],
        }
        for place, (image, kind, box) in enumerate(boxes)
    ]
    categories = [{"id": place, "name": kind} for place, kind in enumerate(concepts)]
    content = {"categories": categories, "images": images, "annotations": annotations}
    (folder / "boxes.json").write_text(json.dumps(content))


def _without_pulmonary(tbx11k: Path) -> None:
    """Remove the boxes of the third concept, as the official training list has none."""
    for path in (tbx11k / "annotations/json").glob("*.json"):
        coco = json.loads(path.read_text())
        kept = [box for box in coco["annotations"] if coco["categories"][box["category_id"]]["name"] != THIRD]
        path.write_text(json.dumps(coco | {"annotations": kept}))


def _with_test_films(nih: Path) -> None:
    """Make the last films of the list the official test films."""
    names = (nih / "train_val_list.txt").read_text().split()
    entries = (nih / "Data_Entry_2017_v2020.csv").read_text().splitlines()
    patients = {row[0]: row[2] for row in csv.reader(entries)}
    test_patients = {patients[name] for name in names[-15:]}
    for file, wanted in (("train_val_list.txt", False), ("test_list.txt", True)):
        chosen = [name for name in names if (patients[name] in test_patients) is wanted]
        (nih / file).write_text("\n".join(chosen) + "\n")


def _vindr(drawn: list[PhantomFilm], folder: Path) -> None:
    """Write ten training films with three readers who agree, and two test films."""
    labels: dict[str, list[tuple[object, ...]]] = {"train": [], "test": []}
    for number, film in enumerate(drawn):
        split, name = ("train" if number < 10 else "test"), f"f{number:02}"
        seen = [int(number % 3 == place) for place in range(3)]
        readers = ("R1", "R2", "R3") if split == "train" else (None,)
        labels[split] += [(name, *([reader] if reader else []), *seen) for reader in readers]
        (folder / split).mkdir(parents=True, exist_ok=True)
        who = film.exam
        write_dicom(
            folder / split / f"{name}.dicom",
            film.pixels,
            Person(f"tb-{who.patient:06}", who.sex, who.age),
            name,
            who.view,
        )
    for split, rows in labels.items():
        reader = ("rad_id",) if split == "train" else ()
        _write_csv(folder / f"annotations/image_labels_{split}.csv", ("image_id", *reader, *VINDR), rows)
        box = (
            "f00" if split == "train" else "f10",
            "R1" if split == "train" else "",
            VINDR[0 if split == "train" else 1],
        )
        header = ("image_id", "rad_id", "class_name", "x_min", "y_min", "x_max", "y_max")
        _write_csv(folder / f"annotations/annotations_{split}.csv", header, [(*box, 20, 20, 50, 60)])


def _write_csv(path: Path, header: tuple[str, ...], rows: list[tuple[object, ...]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def _certificate(folder: Path) -> None:
    """Write a self-signed certificate as cert.pem and key.pem."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    who = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    signed = (
        x509.CertificateBuilder(who, who, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    (folder / "key.pem").write_bytes(private)


def _train_run(folder: Path) -> None:
    """Train a run on the drawn films for some seconds."""
    from medgrape.training.run import TrainingJob, train  # slow to import

    longer = {"concepts": {"epochs": 6}, "prototypes": {"epochs": 6}, "head": {"epochs": 10}}
    settings = small(stages=longer, model={"prototypes": 16}, safety={"gate": float("inf")})
    train(TrainingJob(settings, folder / "data/tb", folder / "runs/tb"))
