"""AI Hub's API on loopback, as far as qai-hub 0.56 asks for it: protobuf, uploads by signed addresses, jobs to poll."""

from __future__ import annotations

import contextlib
import io
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import h5py
import numpy as np
import qai_hub.public_api_pb2 as pb
from qai_hub.util.dataset_entries_converters import dataset_entries_to_h5, h5_to_dataset_entries

TOKEN = "the-secret-token-of-aihub"  # noqa: S105 - of this server only
DEVICES = {
    "Samsung Galaxy S24": "chipset:qualcomm-snapdragon-8gen3",
    "Snapdragon 8 Elite QRD": "chipset:qualcomm-snapdragon-8-elite",
    "QCS8550 (Proxy)": "chipset:qualcomm-qcs8550",
    "Strange Phone": "chipset:other-9000",
}
Model = Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]


@dataclass
class Service:
    """What was uploaded and asked for; `model` computes a sample, `failure` is why jobs fail, `status` refuses all."""

    model: Model
    failure: str = ""
    status: int = 200
    root: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    jobs: dict[str, Any] = field(default_factory=dict)
    polls: int = 0


@contextlib.contextmanager
def serving(model: Model) -> Iterator[Service]:
    service = Service(model)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"service": service}))
    server.daemon_threads = True
    service.root = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    service: Service
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None: ...

    def _serve(self) -> None:
        body = self._body()
        path = self.path.partition("?")[0].strip("/")
        if found := re.fullmatch(r"(?:upload|file)/([\w-]+)", path):
            self._file(found[1], body)
        elif self.headers.get("Authorization") != f"token {TOKEN}" or self.service.status != 200:
            status = self.service.status if self.service.status != 200 else 401
            self._raw(status, b"no", "text/plain")
        else:
            answer = self._route(path.removeprefix("api/v1/"), body)
            self._raw(200 if answer is not None else 404, (answer or pb.User()).SerializeToString())

    do_GET = do_POST = do_PUT = do_PATCH = _serve  # noqa: N815 - http.server's names

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _file(self, name: str, body: bytes) -> None:
        if self.command == "GET":
            self._raw(200, self.service.files[name], "application/octet-stream")
            return
        kind = self.headers.get("Content-Type", "")
        if kind.startswith("multipart/"):
            message = BytesParser().parsebytes(f"Content-Type: {kind}\r\n\r\n".encode() + body)
            body = next(part.get_payload(decode=True) for part in message.get_payload() if part.get_filename())
        self.service.files[name] = body
        self._raw(204, b"", "text/plain", ETag='"tag"')

    def _route(self, path: str, body: bytes) -> Any:  # noqa: C901, PLR0911 - by address
        service, parts = self.service, path.split("/")
        name = parts[1] if len(parts) > 1 else ""
        match parts[0], parts[2] if len(parts) > 2 else "", self.command:
            case "devices", _, _:
                made = [
                    pb.Device(name=each, os="14", attributes=[chip, "os:android", "framework:qnn"])
                    for each, chip in DEVICES.items()
                ]
                if asked := parse_qs(self.path.partition("?")[2]).get("name"):
                    made = [each for each in made if each.name == asked[0]]
                return pb.DeviceList(devices=made, total_query_count=len(made))
            case (("models" | "datasets"), "", "POST") if not name:
                return pb.CreateUpdateResponse(id=f"{parts[0][0]}{len(service.files)}")
            case "models", "multipart_upload", "GET":
                urls = pb.FileMultipartUploadURL(
                    urls=[f"{service.root}/upload/{name}"], upload_id="u", max_part_size=1 << 30
                )
                return pb.FileUploadResponse(multipart_url=urls)
            case "datasets", "upload_url", _:
                url = pb.FileUploadURL(url=f"{service.root}/upload/{name}", file_field_name="file")
                return pb.FileUploadResponse(url=url)
            case (("models" | "datasets"), _, "POST" | "PUT" | "PATCH"):
                return pb.CreateUpdateResponse(id=name)
            case "models", "", "GET":
                return pb.Model(model_id=name, name=name, model_type=pb.MODEL_TYPE_QNN_CONTEXT_BINARY)
            case "datasets", "download_data", _:
                return pb.FileDownloadResponse(
                    url=pb.FileDownloadURL(url=f"{service.root}/file/{name}", filename="data.h5")
                )
            case "datasets", "", "GET":
                return pb.Dataset(dataset_id=name, name=name)
            case "jobs", "", "POST":
                return self._job(pb.Job.FromString(body))
            case "jobs", "", "GET":
                service.polls += 1
                return service.jobs[name]
            case "jobs", "result", _:
                return self._result(name)
        return None

    def _job(self, job: Any) -> Any:
        number = f"j{len(self.service.jobs)}"
        inner = getattr(job, job.WhichOneof("job"))
        inner.job_state = pb.JOB_STATE_FAILED if self.service.failure else pb.JOB_STATE_DONE
        inner.failure_reason = self.service.failure
        setattr(inner, f"{job.WhichOneof('job')}_id", number)
        self.service.jobs[number] = job
        return pb.CreateUpdateResponse(id=number)

    def _result(self, number: str) -> Any:
        job = self.service.jobs[number].inference_job  # what it calls a profile job is one without inputs
        layers = [pb.LayerDetail(name=f"l{each}", compute_unit=pb.COMPUTE_UNIT_NPU) for each in range(3)]
        detail = pb.ProfileDetail(
            execution_time=1500, after_execution_peak_memory=64 << 20, layer_details=layers, major_version=1
        )
        done = pb.InferenceJobResult(inference_job_id=number, detail=detail)
        if not job.dataset.dataset_id:
            return pb.JobResult(inference_job_result=done)
        with h5py.File(io.BytesIO(self.service.files[job.dataset.dataset_id])) as file:
            feeds = h5_to_dataset_entries(file)
        count = len(next(iter(feeds.values())))
        rows = [self.service.model({key: np.asarray(each[row]) for key, each in feeds.items()}) for row in range(count)]
        made = io.BytesIO()
        with h5py.File(made, "w") as file:
            dataset_entries_to_h5({key: [row[key] for row in rows] for key in rows[0]}, file)
        self.service.files[f"out-{number}"] = made.getvalue()
        done.output_dataset_id = f"out-{number}"
        return pb.JobResult(inference_job_result=done)

    def _raw(self, status: int, body: bytes, kind: str = "application/x-protobuf", **headers: str) -> None:
        with contextlib.suppress(OSError):
            self.send_response(status)
            for key, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
                self.send_header(key, value)
            self.end_headers()
            self.wfile.write(body)
