"""GPUs read through the driver's library, where there is one."""

from types import SimpleNamespace

import pytest

from rackwright.agent import nvml


class FakeError(Exception):
    """Stands for the library's errors."""


def library(**answers: object) -> SimpleNamespace:
    """A library with two GPUs, of which one is lost."""

    def handle(index: int) -> int:
        if index == 1:
            raise FakeError
        return index

    def link(_: int, number: int) -> int:
        if number >= 18:
            raise FakeError
        return int(number != 5)

    functions = {
        "NVMLError": FakeError,
        "NVMLError_NotSupported": FakeError,
        "NVMLError_InvalidArgument": FakeError,
        "NVML_FEATURE_ENABLED": 1,
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlDeviceGetCount": lambda: 2,
        "nvmlDeviceGetHandleByIndex": handle,
        "nvmlSystemGetDriverVersion": lambda: "580.1",
        "nvmlDeviceGetRemappedRows": lambda _: (0, 1, 0, 1),
        "nvmlDeviceGetComputeRunningProcesses": lambda _: [SimpleNamespace(pid=7)],
        "nvmlDeviceGetMemoryInfo": lambda _: SimpleNamespace(used=1_500_000_000),
        "nvmlDeviceGetUtilizationRates": lambda _: SimpleNamespace(gpu=4, memory=1),
        "nvmlDeviceGetUUID": lambda _: "GPU-1",
        "nvmlDeviceGetSerial": lambda _: "123",
        "nvmlDeviceGetPciInfo": lambda _: SimpleNamespace(busId="00000018:01:00.0"),
        "nvmlDeviceGetName": lambda _: "NVIDIA GB200",
        "nvmlDeviceGetNvLinkState": link,
    }
    return SimpleNamespace(**{**functions, **answers})


def test_no_library_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "pynvml", None)
    assert nvml.read_node() is None


def test_no_driver_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise FakeError

    monkeypatch.setattr(nvml, "pynvml", library(nvmlInit=refuse))
    assert nvml.read_node() is None


def test_a_lost_gpu_is_counted_and_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "pynvml", library())
    reading = nvml.GpuReading(
        index=0,
        uuid="GPU-1",
        serial="123",
        pci="0018:01:00",
        model="NVIDIA GB200",
        links_active=17,
        remap_pending=False,
        remap_failed=True,
        processes=(7,),
        memory_used_gb=1.5,
        use=0.04,
    )
    assert nvml.read_node() == nvml.NodeReading(driver="580.1", count=2, gpus=(reading,))


def test_what_a_gpu_does_not_tell_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise FakeError

    silent = library(
        nvmlDeviceGetRemappedRows=refuse,
        nvmlDeviceGetNvLinkState=refuse,
        nvmlDeviceGetSerial=refuse,
        nvmlDeviceGetComputeRunningProcesses=refuse,
        nvmlDeviceGetMemoryInfo=refuse,
        nvmlDeviceGetUtilizationRates=refuse,
    )
    monkeypatch.setattr(nvml, "pynvml", silent)
    node = nvml.read_node()
    assert node is not None
    (gpu,) = node.gpus
    assert (gpu.memory_used_gb, gpu.use) == (None, None)
    assert (gpu.links_active, gpu.remap_failed, gpu.serial, gpu.processes) == (None, None, "", ())
