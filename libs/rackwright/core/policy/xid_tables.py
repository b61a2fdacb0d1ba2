"""What NVIDIA's Xid workbook says of a GB200, as data: one class per number, and the decode tables.

Source: NVIDIA's Xid catalog workbook, sheets "Xids", "XID 144-150 decode" and the action buckets,
and the bit layout of the kernel's lines explained there. Where the workbook leaves the action blank
the class is `alert_only`.
"""

from dataclasses import dataclass
from enum import StrEnum

from rackwright.wire.nodes import RepairAction


class SignalClass(StrEnum):
    """What a signal asks for, from nothing to a new node.

    application: the work failed, the node is well. watch: counted. contained: the work restarts,
    the GPU is reset when convenient. symptom: loss elsewhere. limited: good for less. reset,
    reboot, replace, inspect: out of the job now, and then that. alert_only: not known, so nothing
    is done but to say so.
    """

    APPLICATION = "application"
    WATCH = "watch"
    CONTAINED = "contained"
    SYMPTOM = "symptom"
    LIMITED = "limited"
    RESET = "reset"
    REBOOT = "reboot"
    REPLACE = "replace"
    INSPECT = "inspect"
    ALERT_ONLY = "alert_only"


XIDS: dict[SignalClass, dict[int, str]] = {
    SignalClass.APPLICATION: {
        8: "ROBUST_CHANNEL_FIFO_ERROR_IDLE_TIMEOUT",
        11: "ROBUST_CHANNEL_GR_ERROR_MISSING_HW",
        13: "ROBUST_CHANNEL_GR_EXCEPTION",
        25: "ROBUST_CHANNEL_GR_ILLEGAL_NOTIFY",
        31: "ROBUST_CHANNEL_FIFO_ERROR_MMU_ERR_FLT",
        32: "ROBUST_CHANNEL_PBDMA_ERROR",
        39: "ROBUST_CHANNEL_CE0_ERROR",
        40: "ROBUST_CHANNEL_CE1_ERROR",
        41: "ROBUST_CHANNEL_CE2_ERROR",
        43: "ROBUST_CHANNEL_RESETCHANNEL_VERIF_ERROR",
        45: "ROBUST_CHANNEL_PREEMPTIVE_REMOVAL",
        60: "ROBUST_CHANNEL_SEC2_ERROR",
        68: "ROBUST_CHANNEL_NVDEC0_ERROR",
        69: "ROBUST_CHANNEL_GR_CLASS_ERROR",
        70: "ROBUST_CHANNEL_CE3_ERROR",
        71: "ROBUST_CHANNEL_CE4_ERROR",
        72: "ROBUST_CHANNEL_CE5_ERROR",
        75: "ROBUST_CHANNEL_CE6_ERROR",
        76: "ROBUST_CHANNEL_CE7_ERROR",
        77: "ROBUST_CHANNEL_CE8_ERROR",
        82: "ROBUST_CHANNEL_NVJPG0_ERROR",
        83: "ROBUST_CHANNEL_NVDEC1_ERROR",
        84: "ROBUST_CHANNEL_NVDEC2_ERROR",
        85: "ROBUST_CHANNEL_CE9_ERROR",
        86: "ROBUST_CHANNEL_OFA0_ERROR",
        88: "ROBUST_CHANNEL_NVDEC3_ERROR",
        89: "ROBUST_CHANNEL_NVDEC4_ERROR",
        96: "ROBUST_CHANNEL_NVDEC5_ERROR",
        97: "ROBUST_CHANNEL_NVDEC6_ERROR",
        98: "ROBUST_CHANNEL_NVDEC7_ERROR",
        99: "ROBUST_CHANNEL_NVJPG1_ERROR",
        100: "ROBUST_CHANNEL_NVJPG2_ERROR",
        101: "ROBUST_CHANNEL_NVJPG3_ERROR",
        102: "ROBUST_CHANNEL_NVJPG4_ERROR",
        103: "ROBUST_CHANNEL_NVJPG5_ERROR",
        104: "ROBUST_CHANNEL_NVJPG6_ERROR",
        105: "ROBUST_CHANNEL_NVJPG7_ERROR",
        126: "ROBUST_CHANNEL_CE10_ERROR",
        127: "ROBUST_CHANNEL_CE11_ERROR",
        128: "ROBUST_CHANNEL_CE12_ERROR",
        129: "ROBUST_CHANNEL_CE13_ERROR",
        130: "ROBUST_CHANNEL_CE14_ERROR",
        131: "ROBUST_CHANNEL_CE15_ERROR",
        132: "ROBUST_CHANNEL_CE16_ERROR",
        133: "ROBUST_CHANNEL_CE17_ERROR",
        134: "ROBUST_CHANNEL_CE18_ERROR",
        135: "ROBUST_CHANNEL_CE19_ERROR",
        137: "NVLINK_PRIV_ERR",
        139: "ROBUST_CHANNEL_OFA1_ERROR",
    },
    SignalClass.WATCH: {
        14: "ROBUST_CHANNEL_FAKE_ERROR",
        37: "ROBUST_CHANNEL_FECS_ERR_UNIMP_FIRMWARE_METHOD",
        38: "ROBUST_CHANNEL_FECS_ERR_WATCHDOG_TIMEOUT",
        44: "ROBUST_CHANNEL_GR_FAULT_DURING_CTXSW",
        63: "INFOROM_DRAM_RETIREMENT_EVENT",
        66: "ROBUST_CHANNEL_FECS_ERR_REG_ACCESS_VIOLATION",
        67: "ROBUST_CHANNEL_FECS_ERR_VERIF_VIOLATION",
        92: "EXCESSIVE_SBE_INTERRUPTS",
        106: "SMBPBI_TEST_MESSAGE",
        107: "SMBPBI_TEST_MESSAGE_SILENT",
        108: "NVLINK_REMOTE_TRANSLATION_ERROR",
        121: "C2C_ERROR",
        141: "ROBUST_CHANNEL_FAST_PATH_ERROR",
        157: "RESOURCE_RETIREMENT_FAILURE",
        159: "ROBUST_CHANNEL_CHI_NON_DATA_ERROR",
        160: "CHANNEL_RETIREMENT_EVENT",
        161: "CHANNEL_RETIREMENT_FAILURE",
        162: "PSHC_REENGAGED",
        163: "PSHC_DISENGAGED",
        164: "PSHC_LOW_LIFETIME",
        165: "PSHC_ZERO_LIFETIME",
        171: "UNCORRECTABLE_DRAM_ERROR",
        172: "UNCORRECTABLE_SRAM_ERROR",
    },
    SignalClass.CONTAINED: {
        94: "ROBUST_CHANNEL_CONTAINED_ERROR",
    },
    SignalClass.RESET: {
        46: "ROBUST_CHANNEL_GPU_TIMEOUT_ERROR",
        48: "ROBUST_CHANNEL_GPU_ECC_DBE",
        62: "PMU_HALT_ERROR",
        95: "ROBUST_CHANNEL_UNCONTAINED_ERROR",
        109: "ROBUST_CHANNEL_CTXSW_TIMEOUT_ERROR",
        110: "SEC_FAULT_ERROR",
        119: "GSP_RPC_TIMEOUT",
        120: "GSP_ERROR",
        140: "UNRECOVERABLE_ECC_ERROR_ESCAPE",
        143: "GPU_INIT_ERROR",
        155: "NVLINK_SW_DEFINED_ERROR",
        156: "RESOURCE_RETIREMENT_EVENT",
        158: "GPU_FATAL_TIMEOUT",
    },
    SignalClass.REBOOT: {
        79: "ROBUST_CHANNEL_GPU_HAS_FALLEN_OFF_THE_BUS",
        151: "ROBUST_CHANNEL_KEY_ROTATION_ERROR",
        167: "PCIE_FATAL_TIMEOUT",
    },
    SignalClass.REPLACE: {
        64: "INFOROM_DRAM_RETIREMENT_FAILURE",
    },
    SignalClass.ALERT_ONLY: {
        78: "VGPU_START_ERROR",
        142: "ROBUST_CHANNEL_NVENC3_ERROR",
        166: "NVLINK_SECURE_CRYPTO_ERR",
        168: "REDUCED_GPU_MEMORY_CAPACITY",
        169: "SEC2_HALT_ERROR",
        170: "NVLINK_SECURE_OTHER",
    },
}

# Judged by sub-code and error status (144 to 150), or by the text of the line (154).
DECODED: dict[int, str] = {
    144: "NVLINK_SAW_ERROR",
    145: "NVLINK_RLW_ERROR",
    146: "NVLINK_TLW_ERROR",
    147: "NVLINK_TREX_ERROR",
    148: "NVLINK_NVLPW_CTRL_ERROR",
    149: "NVLINK_NETIR_ERROR",
    150: "NVLINK_MSE_ERROR",
    154: "GPU_RECOVERY_ACTION_CHANGED",
}

# Faults of other GPUs. Seen on a GB200 they mean nothing we know.
NOT_ON_GB200: dict[int, str] = {
    54: "SILENT_RUNNING_PWR_REDUCED_CLOCKING",
    74: "NVLINK_ERROR",
    80: "PBDMA_PUSHBUFFER_CRC_MISMATCH",
    93: "INFOROM_ERASE_LIMIT_EXCEEDED",
    136: "ALI_TRAINING_FAIL",
    152: "ROBUST_CHANNEL_DLA_SMMU_ERROR",
    153: "ROBUST_CHANNEL_DLA_TIMEOUT",
}

# Watched Xids that ask for something once the node is empty: 63 has a row remap pending, 121 a link
# to retrain.
LATER: dict[int, RepairAction] = {
    63: RepairAction.RESET,
    121: RepairAction.RESET,
    157: RepairAction.INSPECT,
    164: RepairAction.INSPECT,
    165: RepairAction.INSPECT,
}

# Said at once though the node stays: nobody else's fault explains it.
IMMEDIATE_YET_WATCHED = frozenset({157})

# Others may have caused them: wait for a culprit of the rack before believing them.
SYMPATHETIC = frozenset({45, 94})

# Repeats on one GPU, in different jobs, point at the GPU. Repeats of 45 never do.
REPEATS_MATTER = frozenset({13, 31})

# NVML's numbers for the recovery action that Xid 154 announces.
RECOVERY_NONE, RECOVERY_RESET, RECOVERY_REBOOT, RECOVERY_P2P, RECOVERY_DRAIN = range(5)
RECOVERY_NAMES: dict[str, int] = {
    "drain and reset": RECOVERY_DRAIN,
    "drain p2p": RECOVERY_P2P,
    "node reboot required": RECOVERY_REBOOT,
    "gpu reset required": RECOVERY_RESET,
    "none": RECOVERY_NONE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One sub-code of Xids 144 to 150, and what the bits of its error status ask for.

    `old` and `new` are its number in the first word: bits 9 to 5 before driver R575, bits 6 to 0
    since. `escalating` bits ask for a reset only if the driver marked the word as well.
    """

    xid: int
    names: tuple[str, ...]
    old: int
    new: tuple[int, ...]
    nothing: int = 0
    application: int = 0
    symptom: int = 0
    reset: int = 0
    escalating: int = 0

    @property
    def slug(self) -> str:
        """The name as it stands in a verdict's code."""
        return self.names[0].lower().replace("_", "-")


SOFTWARE = 0x8000_0000  # in each unit: reported by the driver itself, not by the hardware

UNITS = (
    Unit(xid=144, names=("SAW_MVB",), old=1, new=(1,), nothing=0x2D, reset=0x12),
    Unit(xid=145, names=("RLW_CTRL",), old=3, new=(3,), nothing=SOFTWARE),
    # 0x4 to 0x20 of REMAP follow a link that went down somewhere in the partition.
    Unit(
        xid=145,
        names=("RLW_REMAP",),
        old=4,
        new=(4,),
        nothing=SOFTWARE | 0x300,
        application=0x3,
        symptom=0x3C,
        reset=0xC0,
    ),
    Unit(xid=145, names=("RLW_RSPCOL",), old=5, new=(5,), nothing=SOFTWARE | 0x1, reset=0x2),
    Unit(xid=145, names=("RLW_RXPIPE",), old=6, new=(6,), nothing=SOFTWARE | 0xF, escalating=0x7),
    # 0x4 and 0x8: a read, a write of ours never came back.
    Unit(
        xid=145,
        names=("RLW_SRC_TRACK",),
        old=7,
        new=(7,),
        nothing=SOFTWARE | 0x2,
        symptom=0xC,
        reset=0x31,
    ),
    Unit(
        xid=145,
        names=("RLW_TAGSTATE",),
        old=8,
        new=(8,),
        nothing=SOFTWARE | 0x1_0001,
        reset=0x12_0002,
    ),
    Unit(xid=146, names=("TLW_CTRL",), old=9, new=(9,), nothing=SOFTWARE | 0x3, reset=0x4),
    Unit(
        xid=146,
        names=("TLW_RX", "TLW_RX_PIPE0", "TLW_RX_PIPE1"),
        old=10,
        new=(10, 11),
        nothing=SOFTWARE | 0x3,
        reset=0x4,
    ),
    Unit(
        xid=146,
        names=("TLW_TX", "TLW_TX_PIPE0", "TLW_TX_PIPE1"),
        old=11,
        new=(12, 13),
        nothing=SOFTWARE | 0x3,
        reset=0x4,
    ),
    Unit(xid=147, names=("TREX",), old=12, new=(14,), nothing=SOFTWARE | 0x1),
    Unit(xid=148, names=("NVLPW", "NVLPW_CTRL"), old=0, new=(15,), nothing=SOFTWARE),
    Unit(xid=149, names=("NETIR_INT", "NETIR"), old=0, new=(24,)),
    Unit(xid=149, names=("NETIR_LINK_DOWN", "NETIR_LINK_EVT"), old=14, new=(17,)),
    Unit(xid=149, names=("NETIR_BER", "NETIR_BER_EVENT"), old=17, new=(19,)),
    Unit(xid=149, names=("NETIR_MFDE", "NETIR_MFDE_EVENT"), old=18, new=(20,)),
    Unit(xid=150, names=("MSE", "MSE_WATCHDOG", "MSE DEGRADED"), old=0, new=(0,)),
)

# Reasons of a link down: bits 25 to 20 of the first word of Xid 149.
PEER_SIDE = frozenset({0x15, 0x20, 0x21, 0x22, 0x23, 0x24, 0x25})  # the far end went down first
HARMLESS_DOWN = frozenset({0x26, 0x28})  # somebody's order, or seen from the host: no action

# NETIR_MFDE_EVENT numbers its events; they are no bits.
MFDE_RESET = frozenset({1, 4, 5, 7})
MFDE_NOTHING = frozenset({3})
