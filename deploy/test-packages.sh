#!/bin/sh
# Debian packages that tests compare against or talk to. Tests that need a missing one skip and say so;
# in CI (CI=true) a missing one is an error, so that a skip cannot hide there.
set -eu
need=""
command -v nginx >/dev/null 2>&1 || [ -x /usr/sbin/nginx ] || need="$need nginx-light"
command -v promtool >/dev/null 2>&1 || need="$need prometheus"
ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || need="$need postgresql"
[ -z "$need" ] && exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
  echo "Optional Debian packages are missing:$need (their tests will be skipped)"
  [ "${CI:-}" = true ] && exit 1
  exit 0
fi
echo "Installing$need"
export DEBIAN_FRONTEND=noninteractive
# Services must not start by themselves: tests run their own, on their own ports.
guard=/usr/sbin/policy-rc.d
made=""
[ -e "$guard" ] || { printf '#!/bin/sh\nexit 101\n' >"$guard"; chmod +x "$guard"; made=yes; }
apt-get update -qq >/dev/null
# shellcheck disable=SC2086  # a list of package names
apt-get install -y -qq --no-install-recommends $need >/dev/null
[ -z "$made" ] || rm -f "$guard"
