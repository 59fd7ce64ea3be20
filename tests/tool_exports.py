"""Files in the formats of Label Studio and CVAT."""

import json


def rectangle(x, y, width, height, label="Cavity", *, size=(96, 80), rotation=0, **more):
    """Return a rectangle of Label Studio, in percent."""
    value = {"x": x, "y": y, "width": width, "height": height, "rotation": rotation, "rectanglelabels": [label]}
    told = {"id": "Dx_aB91ISN", "type": "rectanglelabels", "from_name": "label", "to_name": "image", "value": value}
    if size is not None:
        told |= {"original_width": size[0], "original_height": size[1], "image_rotation": 0}
    return told | more


def task(image, *people, key="image", number=1, predictions=(), skipped=()):
    """Return a task of Label Studio: the marks of each person, and who skipped it."""
    annotations = [
        {"id": number * 10 + place, "completed_by": place, "was_cancelled": place in skipped, "ground_truth": False,
         "created_at": "2026-11-18T09:16:08.728353Z", "lead_time": 4.288, "result": list(results)}
        for place, results in enumerate(people)
    ]  # fmt: skip
    predicted = [{"model_version": "1", "score": 0.5, "result": [one]} for one in predictions]
    return {
        "id": number, "annotations": annotations, "predictions": predicted, "drafts": [], "meta": {}, "project": 1,
        "file_upload": "abcd1234-film.png", "data": {key: image}, "total_annotations": len(people),
    }  # fmt: skip


def label_studio(*tasks):
    return json.dumps(list(tasks))


def cvat(*images, labels=("Cavity", "Pleural fluid"), extra="", before=""):
    """Return a file in the format CVAT for images 1.1."""
    listed = "".join(f"<label><name>{name}</name><color>#fa3253</color><type>any</type></label>" for name in labels)
    films = "".join(images)
    return f"""<?xml version="1.0" encoding="utf-8"?>
{before}<annotations>
  <version>1.1</version>
  <meta><task><id>4</id><name>drawn_dataset</name><size>{len(images)}</size><mode>annotation</mode>
    <labels>{listed}{extra}</labels><owner><username>ada</username><email></email></owner></task>
    <dumped>2026-11-18 11:38:28.799808+00:00</dumped></meta>
  {films}
</annotations>
"""


def image(name, *shapes, size=(96, 80), number=0):
    return f'<image id="{number}" name="{name}" width="{size[0]}" height="{size[1]}">{"".join(shapes)}</image>'


def shape(kind, label="Cavity", **told):
    attributes = " ".join(f'{key}="{value}"' for key, value in told.items())
    inside = '<attribute name="sure">yes</attribute>'
    return f'<{kind} label="{label}" source="manual" occluded="0" {attributes} z_order="0">{inside}</{kind}>'


def box(x1, y1, x2, y2, label="Cavity", **told):
    return shape("box", label, xtl=x1, ytl=y1, xbr=x2, ybr=y2, **told)
