"""All that a route works with, made once for each worker."""

import threading
from functools import cached_property

from medgrape.server.inference.decoder_pool import DecoderPool
from medgrape.server.inference.encoder import Encoder, FeatureStore
from medgrape.server.inference.model_cache import ModelCache
from medgrape.server.room_folder import RoomStore
from medgrape.server.settings import ServerSettings


class Room:
    """An archive with films and models at work."""

    def __init__(self, store: RoomStore, settings: ServerSettings, *, login: bool) -> None:
        self.store, self.settings, self.login = store, settings, login
        self.folder, self.database = store.folder, store.database
        self.key = store.folder.key()
        self.model_cache = ModelCache(settings.models_in_memory)
        self.features = FeatureStore(store.folder.features)
        self.closing = threading.Event()

    @cached_property
    def decoder_pool(self) -> DecoderPool:
        """Decoders, started when the first film needs them."""
        return DecoderPool(self.folder, self.settings)

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
            self.decoder_pool.close()
        self.store.close()
