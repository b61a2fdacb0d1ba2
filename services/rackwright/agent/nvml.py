"""What the NVIDIA driver says of this node's GPUs, where there is one and its library is there."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

try:
    import pynvml
except ImportError:  # the optional dependency `nvml`
    pynvml = None

MAX_LINKS = 18  # per GPU of the NVLink 5 generation


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuReading:
    """One GPU. `pci` as in a kernel log: lower case, four digits of domain, no function.

    `links_active`, the row remapping, the memory in use (GB, 1e9 bytes) and `use` (share of the
    last moments in which it computed) are None where the GPU does not tell.
    """

    index: int
    uuid: str
    serial: str
    pci: str
    model: str
    links_active: int | None
    remap_pending: bool | None
    remap_failed: bool | None
    processes: tuple[int, ...]
    memory_used_gb: float | None = None
    use: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReading:
    """All GPUs that answered, and how many the driver counts."""

    driver: str
    count: int
    gpus: tuple[GpuReading, ...]


def short_pci(bus_id: str) -> str:
    """`0000:65:00` of NVML's `00000000:65:00.0`."""
    domain, _, rest = bus_id.lower().partition(":")
    return f"{domain[-4:]}:{rest.partition('.')[0]}"


def read_node() -> NodeReading | None:
    """Ask the driver; None without its library or without a driver. Takes milliseconds to a second:
    not to be called in the event loop.
    """
    if pynvml is None:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    try:
        count = int(pynvml.nvmlDeviceGetCount())
        gpus = []
        for index in range(count):
            try:
                gpus.append(_read_gpu(index, pynvml.nvmlDeviceGetHandleByIndex(index)))
            except pynvml.NVMLError:  # counted but lost: the count and the list tell
                continue
        driver = str(pynvml.nvmlSystemGetDriverVersion())
        return NodeReading(driver=driver, count=count, gpus=tuple(gpus))
    finally:
        pynvml.nvmlShutdown()


def _optional(ask: Callable[..., Any], *arguments: object) -> Any:
    """An answer that some GPUs do not give; None then."""
    try:
        return ask(*arguments)
    except (pynvml.NVMLError_NotSupported, pynvml.NVMLError_InvalidArgument):
        return None


def _read_gpu(index: int, handle: object) -> GpuReading:
    remap = _optional(pynvml.nvmlDeviceGetRemappedRows, handle)
    running = _optional(pynvml.nvmlDeviceGetComputeRunningProcesses, handle)
    memory = _optional(pynvml.nvmlDeviceGetMemoryInfo, handle)
    rates = _optional(pynvml.nvmlDeviceGetUtilizationRates, handle)
    return GpuReading(
        index=index,
        uuid=str(pynvml.nvmlDeviceGetUUID(handle)),
        serial=str(_optional(pynvml.nvmlDeviceGetSerial, handle) or ""),
        pci=short_pci(str(pynvml.nvmlDeviceGetPciInfo(handle).busId)),
        model=str(pynvml.nvmlDeviceGetName(handle)),
        links_active=_links(handle),
        remap_pending=None if remap is None else bool(remap[2]),
        remap_failed=None if remap is None else bool(remap[3]),
        processes=tuple(sorted(process.pid for process in running or ())),
        memory_used_gb=None if memory is None else int(memory.used) / 1e9,
        use=None if rates is None else int(rates.gpu) / 100.0,
    )


def _links(handle: object) -> int | None:
    """How many NVLinks are active; None if this GPU has none at all."""
    states = [_optional(pynvml.nvmlDeviceGetNvLinkState, handle, n) for n in range(MAX_LINKS)]
    known = [state for state in states if state is not None]
    return sum(state == pynvml.NVML_FEATURE_ENABLED for state in known) if known else None
