#!/usr/bin/env bash
# Install qnnci from the source that this script is part of, into a venv under RUNNER_TEMP, once for each source and
# Python of a job. Sets the step outputs `qnnci`, the program's path, and `fresh`, whether this call installed it. pip
# obeys PIP_* as always.
# `install.sh light` leaves the compiler out, for verbs that read no models: 40 MB in place of 530.
set -euo pipefail

fail() {
  local text=${1//'%'/%25}
  text=${text//$'\r'/%0D}
  printf '::error title=qnnci::%s\n' "${text//$'\n'/%0A}"
  exit 3 # what qnnci itself returns where a tool is missing
}

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
python=${QNNCI_INPUT_PYTHON:-python3}
way_out='put a step with actions/setup-python before this one'

# -I everywhere: a model repository may well have an onnx.py or a pip.py of its own, which Python would prefer.
version=$("$python" -I -c 'import sys; print(*sys.version_info[:3], sep=".")' 2>&1) ||
  fail "Python does not run as '$python': $way_out, or name another one by the input \`python\`"
case $version in
  [0-2].* | 3.[0-9].* | 3.10.*) fail "'$python' is Python $version, but the compiler needs 3.11 or newer: $way_out" ;;
esac

key=$(
  cd -- "$root"
  {
    "$python" -I -c 'import sys; print(sys.version, sys.base_prefix)'
    find pyproject.toml README.md qnnci -type f ! -name '*.pyc' -print0 | sort -z | xargs -0 sha256sum
  } | sha256sum | cut -c1-16
)
venv=$RUNNER_TEMP/qnnci-$key
fresh=false
[[ ${1:-} == light && ! -e $venv/complete ]] && venv+=-light

install() {
  # --no-compile: Python compiles what it imports, a tenth of what is installed.
  local pip=("$venv/bin/python" -I -m pip install --no-input --progress-bar off --no-compile)
  case $venv in
    *-light) "${pip[@]}" --requirement "$root/actions/light.txt" && "${pip[@]}" --no-deps "$root" ;;
    *) "${pip[@]}" "$root" ;;
  esac
}

if [[ ! -e $venv/complete ]]; then
  echo "::group::Install qnnci"
  "$python" -I -m venv --clear "$venv" || fail "'$python' cannot make a venv (python3-venv is missing?): $way_out"
  install || fail 'pip could not install qnnci; its last lines say why. A mirror is named by PIP_INDEX_URL.'
  touch "$venv/complete"
  fresh=true
  echo "::endgroup::"
fi
printf 'qnnci=%s\nfresh=%s\n' "$venv/bin/qnnci" "$fresh" >>"$GITHUB_OUTPUT"
