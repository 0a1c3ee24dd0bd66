#!/usr/bin/env bash
# Name a cache of GitHub's: the step outputs `key` and `path`, for `pip` (what is downloaded for qnnci itself) or `qairt`
# (an installed SDK). A script, since hashFiles() sees nothing outside of the workspace, where this action mostly is.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
cache=${QNNCI_CACHE:-$HOME/.cache/qnnci}
case $1 in
  pip)
    # A folder of its own: what else pip keeps on this machine is not ours to store.
    path=$RUNNER_TEMP/qnnci-pip
    # A Python that does not run is told by install.sh.
    parts=$("${QNNCI_INPUT_PYTHON:-python3}" -I -c 'import sys; print(sys.version_info[:2])' 2>&1 || true)
    files=("$root/pyproject.toml")
    ;;
  qairt)
    # The Python that uv may have fetched for the SDK's tools stands beside it.
    path=$cache/sdk$'\n'$cache/python
    parts=$(printf '%q ' "$cache" "${QNNCI_INPUT_SDK_VERSION:-}" "${QNNCI_INPUT_SDK_SOURCE:-}" "${QNNCI_INPUT_SDK_FOR:-}")
    files=("$root"/qnnci/data/{sdks.csv,tools-requirements.txt} "$root"/qnnci/toolchain/sdk*.py)
    ;;
esac
digest=$({ printf '%s\n' "$parts" && cat -- "${files[@]}"; } | sha256sum | cut -c1-16)
{
  echo "key=qnnci-$1-${RUNNER_OS:-Linux}-${RUNNER_ARCH:-X64}-$digest"
  # The digest ends the value: it can stand on no line of a path that it is made after.
  printf 'path<<%s\n%s\n%s\n' "$digest" "$path" "$digest"
} >>"$GITHUB_OUTPUT"
