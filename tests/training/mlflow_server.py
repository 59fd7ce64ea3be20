"""MLflow's own tracking server on a folder, as a process; prints its port when it listens.

``mlflow server`` itself would start several processes and needs flask-cors, but nobody here asks across origins: what
answers is MLflow's own application all the same. It keeps files, as making its database's tables takes seconds.
"""

import os
import sys
import types
from pathlib import Path


def main() -> None:
    """Serve until somebody ends the process."""
    folder = Path(sys.argv[1])
    if "flask_cors" not in sys.modules:
        stand_in = types.ModuleType("flask_cors")
        stand_in.CORS = lambda *_given, **_named: None
        sys.modules["flask_cors"] = stand_in
    os.environ |= {
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_ALLOW_FILE_STORE": "true",
        "_MLFLOW_SERVER_FILE_STORE": str(folder / "experiments"),
        "_MLFLOW_SERVER_ARTIFACT_ROOT": "mlflow-artifacts:/",
        "_MLFLOW_SERVER_ARTIFACT_DESTINATION": str(folder / "artifacts"),
        "_MLFLOW_SERVER_SERVE_ARTIFACTS": "true",
    }
    from mlflow.server import app
    from werkzeug.serving import make_server

    server = make_server("127.0.0.1", 0, app, threaded=True)
    print(server.server_port, flush=True)  # noqa: T201 (whoever started this waits for it)
    server.serve_forever()


main()
