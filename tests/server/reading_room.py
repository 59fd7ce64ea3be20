"""A reading room for tests: a server in this process, with a user of every role."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image
from starlette.testclient import TestClient

from medgrape.datasets.dataset import Dataset
from medgrape.server.accounts import Role, add_user, create_token, hash_password, users
from medgrape.server.app import create_app
from medgrape.server.models import register
from medgrape.server.room import Room, RoomFolder, RoomStore
from medgrape.server.settings import ServerSettings
from medgrape.server.storage.database import migrate

PASSWORD = "correct horse battery"  # noqa: S105
PEOPLE = {"rita": Role.READER, "rolf": Role.READER, "cora": Role.CURATOR, "alma": Role.ADMIN}
HASHED = hash_password(PASSWORD)
WIDE = {"rate": {"per_second": 10_000.0, "burst": 100_000, "logins_per_minute": 10_000}}


@dataclass
class ReadingRoom:
    """A server, and people who ask it."""

    client: TestClient
    room: Room
    tokens: dict[str, str]

    def ask(self, who: str | None, method: str, path: str, **more):
        headers = {} if who is None else {"Authorization": f"Bearer {self.tokens[who]}"}
        headers |= more.pop("headers", {})
        return self.client.request(method, f"/api/v1{path}", headers=headers, **more)

    def get(self, who, path, **more):
        return self.ask(who, "GET", path, **more)

    def post(self, who, path, **more):
        return self.ask(who, "POST", path, **more)

    def upload(self, who, content, name="film.png"):
        return self.post(who, "/films", files={"file": (name, content)})

    def film(self, who="rita", seed=0):
        """A film's id."""
        answer = self.upload(who, drawn(seed))
        assert answer.status_code in (200, 201), answer.text
        return answer.json()["film"]["id"]

    def study(self, who="rita", film=None, **more):
        """Open a study; return its response."""
        answer = self.post(who, "/studies", json={"film": film or self.film(who)} | more)
        assert answer.status_code in (200, 201), answer.text
        return answer.json()

    def model_in_use(self):
        return next(one["version"] for one in self.get("rita", "/models").json() if one["in_use"])


@contextmanager
def reading_room(folder: Path, run: Path, url: str = "", *, login: bool = True, **changes) -> Iterator[ReadingRoom]:
    """Opened anew, or again with all that is in the folder."""
    settings = ServerSettings.model_validate(WIDE | {"database": url} | changes)
    store = RoomStore.opened(RoomFolder(folder), settings)
    migrate(store.database)
    register(store, [run])
    tokens = _people(store) if login else {}
    with TestClient(
        create_app(Room(store, settings, login=login)), base_url="http://127.0.0.1", raise_server_exceptions=False
    ) as client:
        yield ReadingRoom(client, client.app.state.services.room, tokens)


def _people(store: RoomStore) -> dict[str, str]:
    with store.database.writing() as session:
        known = {user.name: user for user in users(session)}
        found = {}
        for name, role in PEOPLE.items():
            user = known.get(name) or add_user(session, name, role, None)
            user.password = HASHED
            found[name] = str(create_token(session, user, "test", role, 1))
        return found


def drawn(seed: int = 0, side: int = 96) -> bytes:
    """A small film that looks like no other."""
    chance = np.random.default_rng(seed)
    blocks = chance.integers(0, 255, (6, 6)).astype(np.uint8)
    out = io.BytesIO()
    Image.fromarray(blocks).resize((side, side - 10), Image.Resampling.BICUBIC).save(out, "PNG")
    return out.getvalue()


def boxed_film(drawn_dataset: Path) -> tuple[bytes, str, list[float]]:
    """A film of the drawn_dataset with a box on it: its content, the finding, the corners."""
    dataset = Dataset.load(drawn_dataset)
    box = dataset.boxes[0]
    film = next(one for one in dataset.films if one.id == box.film)
    return dataset.film_path(film).read_bytes(), box.concept, list(box.box.corners)


def corners(values) -> dict[str, float]:
    return dict(zip(("x1", "y1", "x2", "y2"), values, strict=True))


def doubted(room, study):
    """A box and a claim that the model doubts."""
    names = [one["name"] for one in room.get("rita", f"/studies/{study}/explanation").json()["concepts"]]
    for left in range(0, 90, 15):
        box = corners((left, 0, left + 12, 40))
        for name in names:
            check = room.post("rita", f"/studies/{study}/check", json={"box": box, "concept": name}).json()
            if check["mismatch"]:
                return box, name, check
    raise AssertionError("the model doubts nothing")
