"""Drawn films in the layouts in which TBX11K and ChestX-ray14 are published."""

import json
from pathlib import Path

from PIL import Image

from medgrape.concepts import ConceptSet
from medgrape.phantoms.cohort import plan
from medgrape.phantoms.film import PhantomFilm, draw

SIDE = 64
CATEGORIES = {
    "active_tb": "ActiveTuberculosis",
    "obsolete_tb": "ObsoletePulmonaryTuberculosis",
    "pulmonary_tb": "PulmonaryTuberculosis",
}
FOLDERS = {"healthy": "health", "sick_non_tb": "sick", "active_tb": "tb"}
HEADER = "Image Index,Finding Labels,Patient ID,Patient Age,Patient Gender,View Position"


def publish_tbx11k(folder: Path, films: int = 72) -> Path:
    """An official training list with boxes, an official validation list of four films, and eight borrowed films."""
    drawn = [draw(exam, SIDE) for exam in plan("tb", films, seed=5)]
    names = [f"{FOLDERS[film.exam.class_name]}/t{number:04}.png" for number, film in enumerate(drawn)]
    for name, film in zip(names, drawn, strict=True):
        _save(film, folder / "imgs" / name)
    for split, part in (("val", slice(0, 4)), ("train", slice(4, None))):
        _list_tbx11k(folder, f"TBX11K_{split}", dict(zip(names[part], drawn[part], strict=True)))
    for number, exam in enumerate(plan("tb", 8, seed=6)):
        _save(draw(exam, SIDE), folder / f"imgs/extra/CHNCXR_{number:04}_0.png")
    return folder


def publish_nih(folder: Path, films: int = 60) -> Path:
    """Films of the official training list alone."""
    drawn = [draw(exam, SIDE) for exam in plan("nih", films, seed=5)]
    concepts, rows, listed = ConceptSet.built_in("nih"), [HEADER], []
    for number, film in enumerate(drawn):
        exam, name = film.exam, f"{number:08}_000.png"
        findings = "|".join(concepts[concept].title for concept in exam.concepts) or "No Finding"
        rows.append(f"{name},{findings},{exam.patient},{exam.age},{exam.sex},{exam.view}")
        listed.append(name)
        _save(film, folder / "images" / name)
    (folder / "Data_Entry_2017_v2020.csv").write_text("\n".join(rows) + "\n")
    (folder / "BBox_List_2017.csv").write_text("header\n")
    (folder / "train_val_list.txt").write_text("\n".join(listed) + "\n")
    (folder / "test_list.txt").write_text("99999999_000.png\n")
    return folder


def _list_tbx11k(folder: Path, name: str, films: dict[str, PhantomFilm]) -> None:
    kinds = list(CATEGORIES)
    boxes = [
        (number, kinds.index(lesion.concept), lesion.box)
        for number, film in enumerate(films.values())
        for lesion in film.lesions
        if lesion.concept in kinds
    ]
    content = {
        "categories": [{"id": place, "name": CATEGORIES[kind]} for place, kind in enumerate(kinds)],
        "images": [
            {"id": number, "file_name": film, "width": SIDE, "height": SIDE} for number, film in enumerate(films)
        ],
        "annotations": [
            {"id": place, "image_id": image, "category_id": kind,
             "bbox": [box.x1, box.y1, box.x2 - box.x1, box.y2 - box.y1]}
            for place, (image, kind, box) in enumerate(boxes)
        ],
    }  # fmt: skip
    path = folder / "annotations/json" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def _save(film: PhantomFilm, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(film.pixels).save(path)
