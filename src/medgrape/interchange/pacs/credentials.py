"""How we show a server who we are. Secrets are fetched when they are needed, and stand in no message."""

import os
import ssl
from base64 import b64encode

from medgrape.errors import UserError
from medgrape.interchange.pacs.failures import SecretError
from medgrape.interchange.pacs.servers import Server


def authorization(server: Server) -> str:
    """What the header of a request says of us; empty where the server wants nothing."""
    settings = server.settings
    if settings.username:
        secret = _secret(server, settings.password_env, settings.password_file)
        return "Basic " + b64encode(f"{settings.username}:{secret}".encode()).decode()
    token = _secret(server, settings.token_env, settings.token_file)
    return f"Bearer {token}" if token else ""


def _secret(server: Server, variable: str, file: str) -> str:
    if variable:
        found = os.environ.get(variable, "")
        if not found:
            raise SecretError(f"{server.name}: the environment variable {variable} is not set.")
        return found
    if not file:
        return ""
    try:
        found = server.file(file).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise SecretError(f"{server.name}: the secret in {server.file(file)} cannot be read.") from None
    if not found:
        raise SecretError(f"{server.name}: {server.file(file)} is empty.")
    return found


def trust(server: Server) -> ssl.SSLContext:
    """Whose certificates are believed, and our own. They are always checked."""
    settings = server.settings
    try:
        context = ssl.create_default_context(cafile=str(server.file(settings.ca_file)) if settings.ca_file else None)
        if settings.client_certificate:
            key = str(server.file(settings.client_key)) if settings.client_key else None
            context.load_cert_chain(str(server.file(settings.client_certificate)), key)
    except (OSError, ssl.SSLError) as error:
        raise UserError(f"{server.name}: its certificates cannot be used ({error.strerror or 'not PEM'}).") from None
    return context
