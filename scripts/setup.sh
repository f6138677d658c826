#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes a virtual environment with the locked dependencies and the packages of this workspace.
set -eu

venv=$1

fail() {
    echo "setup: $1" >&2
    exit 1
}

apt_install() {
    sudo=""
    [ "$(id -u)" = 0 ] || sudo="sudo"
    echo "setup: installing $1, which $2"
    { $sudo apt-get update -qq && $sudo apt-get install -y -qq "$1" >/dev/null; } ||
        fail "install $1, then run make again"
}

# The lock holds for these versions only.
is_supported() {
    "$1" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null
}

python="" found=""
for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11 python3.10}; do
    if is_supported "$candidate"; then
        python=$candidate
        break
    fi
    version=$("$candidate" -c 'import sys; print(sys.version.split()[0])' 2>/dev/null) || continue
    found="$found$candidate is Python $version, "
done
[ -n "$python" ] || fail "${found:-no ${PYTHON:-python3} found, }but sysid needs Python 3.10 to 3.13; \
install one (the distribution's package, or 'uv python install 3.13') and name it: \
make setup PYTHON=/path/to/python3.13"

if ! "$python" -m venv "$venv" >/dev/null 2>&1; then
    # Debian and Ubuntu keep venv in a package of its own.
    rm -rf "$venv"
    package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    apt_install "$package" "Python needs to make virtual environments"
    "$python" -m venv "$venv" || fail "python -m venv failed"
fi

pip="$venv/bin/python -m pip --disable-pip-version-check"
echo "setup: installing the locked dependencies into $venv"
$pip install -q --no-compile -r requirements.lock
for package in src/*/pyproject.toml; do
    set -- "$@" -e "$(dirname "$package")"
done
shift
# setuptools warns of spellings that older ones, as on ROS 2, still need
PYTHONWARNINGS=ignore $pip install -q --no-deps --no-build-isolation "$@"
# pip compiles on one core alone, and nothing that stays where it is; some packages bring what is
# not for this Python
"$venv/bin/python" -m compileall -q -j 0 "$venv/lib" src >/dev/null 2>&1 || true

# Pinocchio's wheel brings all its libraries but OpenMP's, which the smallest systems lack.
case $("$venv/bin/python" -c 'import pinocchio' 2>&1) in
*libgomp*) apt_install libgomp1 "Pinocchio needs" ;;
esac
