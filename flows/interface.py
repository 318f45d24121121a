"""The MLflow UI over the home's store, on loopback."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

from components.errors import InputError
from flows.environment import Home
from flows.mlflow_runs import open_tracking
from flows.views import install_views, named_views, view_path


def serve(home: Home, port: int) -> int:
    """Serve the UI until interrupted; prints the address and the views worth opening first.

    Raises:
        InputError: The port is taken.
    """
    client = open_tracking(home)
    install_views(client)
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", port)) == 0:
            raise InputError(f"port {port} is in use", remedy="rungs ui --port ANOTHER")
    address = f"http://127.0.0.1:{port}"
    print(f"MLflow UI: {address}")
    for view in named_views("ladders", "comparison", "evaluation"):
        experiment = client.get_experiment_by_name(view["experiment"])
        print(f"  {view['name']:<46} {address}/{view_path(experiment.experiment_id, view['key'])}")
    print("Stop with Ctrl-C.", flush=True)
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    stores = ["--backend-store-uri", home.tracking_uri, "--artifacts-destination", str(home.artifact_location)]
    environment = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    process = subprocess.Popen([*command, *stores], env=environment)
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.terminate()
        process.wait(timeout=15)
        return 0
