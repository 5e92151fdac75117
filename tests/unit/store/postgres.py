"""A real PostgreSQL server of one's own: a fresh cluster in a temporary folder, on a free port, without root."""

import getpass
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path


def binaries() -> Path | None:
    """Where Debian (or the PATH) keeps the server's programs; None if there is no server."""
    found = shutil.which("initdb")
    if found:
        return Path(found).parent
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4]))
    return versions[-1].parent if versions else None


class Postgres:
    """Start, give a URL, stop."""

    def __init__(self) -> None:
        programs = binaries()
        assert programs is not None
        self._programs = programs
        self._folder = Path(tempfile.mkdtemp(prefix="quantgate-pg-"))
        self._folder.chmod(0o755)
        self._user = "postgres" if os.geteuid() == 0 else getpass.getuser()
        if os.geteuid() == 0:  # the server refuses to run as root
            entry = pwd.getpwnam("postgres")
            os.chown(self._folder, entry.pw_uid, entry.pw_gid)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]

    @property
    def url(self) -> str:
        return f"postgresql://{self._user}@127.0.0.1:{self._port}/postgres"

    def start(self) -> "Postgres":
        data = str(self._folder / "data")
        self._run("initdb", "-D", data, "-A", "trust", "-E", "UTF8", "--no-sync")
        options = f"-p {self._port} -h 127.0.0.1 -k {self._folder} -c fsync=off -c full_page_writes=off"
        self._run("pg_ctl", "-D", data, "-o", options, "-l", str(self._folder / "log"), "-w", "start")
        return self

    def stop(self) -> None:
        """Stop at once; the data is of no use to anybody."""
        self._run("pg_ctl", "-D", str(self._folder / "data"), "-m", "immediate", "stop")
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self, program: str, *words: str) -> None:
        command = [str(self._programs / program), *words]
        user = self._user if os.geteuid() == 0 else None
        done = (
            subprocess.run(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, user=user, cwd=self._folder, check=False
            )
            if "start" not in words
            else subprocess.run(
                command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, user=user, cwd=self._folder, check=False
            )
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed: {(done.stdout or b'').decode()[-500:]}")
