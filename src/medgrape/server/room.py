"""All that a route works with, made once for each worker."""

import threading
from functools import cached_property

from medgrape.server.inference.decoder_pool import Darkroom
from medgrape.server.inference.encoder import Encoder, FeatureStore
from medgrape.server.inference.model_cache import Shelf
from medgrape.server.room_folder import Archive
from medgrape.server.settings import ServerSettings


class Room:
    """An archive with films and models at work."""

    def __init__(self, archive: Archive, settings: ServerSettings, *, login: bool) -> None:
        self.archive, self.settings, self.login = archive, settings, login
        self.folder, self.database = archive.folder, archive.database
        self.key = archive.folder.key()
        self.shelf = Shelf(settings.models_in_memory)
        self.features = FeatureStore(archive.folder.features)
        self.closing = threading.Event()

    @cached_property
    def darkroom(self) -> Darkroom:
        """Decoders, started when the first film needs them."""
        return Darkroom(self.folder, self.settings)

    @cached_property
    def encoder(self) -> Encoder:
        """The thread that runs backbones."""
        return Encoder()

    def close(self) -> None:
        """End everything that was started."""
        self.closing.set()
        if "encoder" in self.__dict__:
            self.encoder.close()
        if "darkroom" in self.__dict__:
            self.darkroom.close()
        self.archive.close()
