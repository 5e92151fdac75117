"""Runs ``supervisor.serve`` in a process of its own: options as JSON in the first argument."""

import sys
from pathlib import Path

import msgspec

from gateway.app import supervisor
from gateway.app.supervisor import Programs, ServeOptions, serve

if __name__ == "__main__":
    supervisor.WORKER_STOP_S = 0.1
    worker = (sys.executable, str(Path(__file__).with_name("stub_worker.py")))
    options = msgspec.json.decode(sys.argv[1], type=ServeOptions, dec_hook=lambda kind, value: kind(value))
    raise SystemExit(serve(options, Programs(worker=worker)))
