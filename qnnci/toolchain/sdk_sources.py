"""Where an SDK's zip comes from: the mirror, the vendor, any other server or Hub repo. Downloads resume."""

from __future__ import annotations

from pathlib import Path

from qnnci.errors import MachineError, QnnciError, UsageError

MIRROR = "hf://csukuangfj/qnn-toolkit"
# Both serve the same files without a login.
VENDOR_HOSTS = (
    "https://softwarecenter.qualcomm.com/api/download/software",
    "https://apigwx-aws.qualcomm.com/qsc/public/v1/api/download/software",
)
_NEW = "sdks/Qualcomm_AI_Runtime_Community/All/{version}/v{version}.zip"
_OLD = "qualcomm_neural_processing_sdk/v{version}.zip"
_LAST_OLD = (2, 31)
FORMS = "mirror, vendor, hf://org/repo, https://…/v{version}.zip, a zip file, or a folder that holds an SDK"


def addresses(source: str, version: str) -> tuple[str, ...]:
    """What to download, in the order of trying; empty where `source` is a path.

    Raises:
        UsageError: a form that is not known.

    """
    if source == "vendor":
        release = tuple(int(part) for part in version.split(".")[:2])
        pattern = _OLD if release <= _LAST_OLD else _NEW
        return tuple(f"{host}/{pattern.format(version=version)}" for host in VENDOR_HOSTS)
    source = MIRROR if source == "mirror" else source.replace("{version}", version)
    scheme, separator, rest = source.partition("://")
    if not separator:
        return ()
    if scheme == "hf":
        repo, at, revision = rest.partition("@")
        whole = repo if repo.endswith(".zip") else f"{repo.rstrip('/')}/v{version}.zip"
        return (f"hf://{whole}{at}{revision}",)
    if scheme in ("https", "http"):
        return (source,)
    raise UsageError(f"an SDK does not come from {scheme[:20]}://", hint=f"sources are {FORMS}")


def size(address: str) -> int | None:
    """How many bytes a download has, where the server says so at once."""
    try:
        return _hub_size(address) if address.startswith("hf://") else _web_size(address)
    except Exception:  # noqa: BLE001 - whatever is wrong, the download itself meets it and tells
        return None


def download(choices: tuple[str, ...], folder: Path) -> Path:
    """Bring the zip into `folder` from the first address that has it, going on with what is there already.

    Raises:
        UsageError: none has it.
        MachineError: the network or the disk failed.

    """
    problems: list[QnnciError] = []
    for address in choices:
        try:
            return _from_hub(address, folder) if address.startswith("hf://") else _from_web(address, folder)
        except (UsageError, MachineError) as error:
            problems.append(error)
    # What can be tried again is told before what can not: a host that is down may have what the other lacks.
    raise next((error for error in problems if isinstance(error, MachineError)), problems[-1])


def _from_web(address: str, folder: Path) -> Path:
    from qnnci import http

    path = folder / "sdk.zip"
    http.download(address, path)
    return path


def _from_hub(address: str, folder: Path) -> Path:
    from qnnci import hub

    file = hub.parse(address.removeprefix("hf://"))
    hub.download(file, folder)
    return folder / file.path


def _web_size(address: str) -> int | None:
    from qnnci import http

    http.check_url(address)
    with (
        http.session(tries=1) as session,
        session.head(address, headers=http.PLAIN, allow_redirects=True, timeout=http.TIMEOUT[0]) as response,
    ):
        length = response.headers.get("Content-Length", "")
        return int(length) if response.ok and length.isdigit() else None


def _hub_size(address: str) -> int | None:
    from qnnci import hub

    return hub.size(hub.parse(address.removeprefix("hf://")))
