"""Lines as the NVIDIA driver writes them into the kernel log, for faults on demand."""

from rackwright.cli.failures import BadInput
from rackwright.core.policy.xid_tables import XIDS

PCI = ("0008:01:00", "0009:01:00", "0018:01:00", "0019:01:00")  # the four GPUs of a compute tray

KNOWN: dict[int, str] = {
    13: "pid=4711, name=python, Graphics SM Warp Exception on (GPC 3, TPC 2, SM 1): Out Of Range"
    " Address",
    31: "pid=4711, name=python, Ch 0000000b, intr 00000000. MMU Fault: ENGINE GRAPHICS GPC1"
    " GPCCLIENT_T1_2 faulted @ 0x7f1a_2c000000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ",
    43: "pid=4711, name=python, Ch 00000008, engmask 00000101",
    45: "pid=4711, name=python, Ch 0000000b",
    48: "pid='<unknown>', name=<unknown>, An uncorrectable double bit error (DBE) has been detected"
    " on GPU in the framebuffer at partition 2, subpartition 0.",
    63: "Row Remapper: New row marked for remapping, reset gpu to activate.",
    64: "Row Remapper: Error trying to remap a row",
    79: "pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
    94: "pid=4711, name=python, Contained: SM (0x1). RST: No, D-RST: No",
    95: "pid=4711, name=python, Uncontained: LTC TAG (0x2,0x0). RST: Yes, D-RST: No",
    119: "pid=4711, name=python, Timeout after 6s of waiting for RPC response from GPU0 GSP!"
    " Expected function 76 (GSP_RM_CONTROL) (0x2080a0d7 0x4).",
    120: "GSP task exception: illegal instruction (cause:0x2) @ pc:0x4bd5b6, partition:0#0, task:1",
    145: "RLW_REMAP Fatal XC0 i0 Link 05 (0x00000882 0x00000004)",
    149: "NETIR_LINK_DOWN Fatal XC0 i0 Link 14 (0x004505c6 0x00000000 0x00000000 0x00000000"
    " 0x00000000 0x00000000)",
    154: "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",
}

# What the other ends of a link say when one end is at fault.
SYMPTOMS: dict[int, str] = {
    145: "RLW_SRC_TRACK Nonfatal XC1 i2 Link 00 (0x040988e2 0x00000008)",
    149: "NETIR_LINK_DOWN Fatal XC0 i0 Link 14 (0x021505c6 0x00000000 0x00000000 0x00000000"
    " 0x00000000 0x00000000)",
}


def line_of(xid: int, gpu: int = 0, *, symptom: bool = False) -> str:
    """The line of an Xid of one GPU. Raises BadInput for a symptom without a line, and a GPU that a
    compute tray does not have."""
    if not 0 <= gpu < len(PCI):
        raise BadInput(
            f"--gpu: {gpu} must be 0 to {len(PCI) - 1}, as a compute tray has {len(PCI)}"
        )
    if symptom and xid not in SYMPTOMS:
        known = " and ".join(map(str, SYMPTOMS))
        raise BadInput(f"--symptom goes with --xid {known}, which echo the fault of a peer")
    text = SYMPTOMS[xid] if symptom else KNOWN.get(xid) or _name(xid)
    return f"NVRM: Xid (PCI:{PCI[gpu]}): {xid}, {text}"


def _name(xid: int) -> str:
    """The workbook's name of an Xid that has no line here."""
    for numbers in XIDS.values():
        if xid in numbers:
            return numbers[xid].replace("_", " ").lower()
    return "unknown error"
