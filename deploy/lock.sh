#!/bin/sh
# Writes requirements.lock (what runs in the image) and build.lock (what builds the package, compiled), with hashes of every file of each
# version, from a fresh environment of the Python that the image has. Run it when pyproject.toml changes: make lock.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3.11}
"$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || { echo "the image runs Python 3.11: PYTHON=python3.11 $0"; exit 1; }
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
"$python" -m venv "$fresh/venv"
"$fresh/venv/bin/pip" install --quiet --disable-pip-version-check pip-tools
compile() {
  "$fresh/venv/bin/pip-compile" --quiet --no-header --generate-hashes --strip-extras --allow-unsafe --no-emit-index-url \
    --no-emit-trusted-host --no-emit-find-links --no-emit-options "$@"
}
compile --extra postgres --output-file "$fresh/requirements.lock" pyproject.toml
compile --extra postgres --extra compile --output-file "$fresh/build.lock" pyproject.toml
for name in requirements build; do
  { echo "# Python 3.11. Made by deploy/lock.sh; do not edit."; cat "$fresh/$name.lock"; } >"deploy/$name.lock"
done
