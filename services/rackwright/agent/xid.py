"""Lines of the NVIDIA driver in a kernel log, read into fields. Pure."""

import re
from dataclasses import dataclass

MARK = b"NVRM: Xid ("
MAX_TEXT = 512

_XID = re.compile(
    rb"NVRM: Xid \((?:PCI:)?(?P<pci>[0-9A-Fa-f:.]{4,16})[^)]{0,64}\): (?P<xid>\d{1,4})\b,?\s*"
)
# No number is longer than the driver's own: a garbled line may hold digits by the thousand.
_PROCESS = re.compile(r"pid='?(?P<pid>[0-9]{1,10}(?![0-9])|<unknown>)'?,?\s*")
_NAME = re.compile(r"name=(?P<name>[^,]*),\s*")
_LINK = re.compile(
    r"(?P<unit>[A-Z][A-Z0-9_/]+) (?P<severity>Fatal|Nonfatal|Non-fatal|Link Fatal)"
    r"(?: XC\d+)?(?: i\d+)?(?: Link (?P<link>-?[0-9]{1,4}(?![0-9])))?"
    r"(?: \((?P<words>[0-9A-Fa-fx ]*)\)?)?"
)
_RECOVERY = re.compile(r"recovery action changed from \S+ \([^)]*\) to \S+ \((?P<action>[^)]*)\)")
_UNKNOWN = "<unknown>"
_WORD_MAX = 0xFFFF_FFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class XidLine:
    """One Xid. `pci` is lower case without function, `text` what follows the number.

    For the NVLink 5 family (144-150): `mnemonic` is the unit (`NETIR_LINK_DOWN`), `severity`
    Fatal or Nonfatal, `link` the link, `words` the status words, interrupt information first and
    error status second. For Xid 154: `action` is the new recovery action.
    """

    pci: str
    xid: int
    text: str
    mnemonic: str = ""
    severity: str = ""
    link: int | None = None
    words: tuple[int, ...] = ()
    action: str = ""
    pid: int | None = None
    process: str = ""
    line: str = ""


def _head(found: re.Match[bytes]) -> tuple[str, int]:
    return found["pci"].decode("ascii").lower().partition(".")[0], int(found["xid"])


def head_of(line: bytes) -> tuple[str, int] | None:
    """PCI address and number of an Xid line, without reading the rest; None if it is no Xid."""
    found = _XID.search(line)
    return None if found is None else _head(found)


def parse_xid(line: bytes) -> XidLine | None:
    """Read a line of a kernel log, whatever stands before the driver's words; None if no Xid."""
    found = _XID.search(line)
    if found is None:
        return None
    pci, xid = _head(found)
    rest = line[found.end() :].decode("utf-8", errors="replace").strip()
    text = rest
    pid, process = None, ""
    if match := _PROCESS.match(rest):
        pid = None if match["pid"] == _UNKNOWN else int(match["pid"])
        rest = rest[match.end() :]
    if match := _NAME.match(rest):
        process = "" if match["name"] == _UNKNOWN else match["name"]
        rest = rest[match.end() :]
    link = _LINK.match(rest)
    recovery = _RECOVERY.search(rest)
    return XidLine(
        pci=pci,
        xid=xid,
        text=text[:MAX_TEXT],
        mnemonic=link["unit"] if link else "",
        severity=link["severity"].replace("-", "") if link else "",
        link=int(link["link"]) if link and link["link"] is not None else None,
        words=_words(link["words"]) if link and link["words"] else (),
        action=recovery["action"] if recovery else "",
        pid=pid,
        process=process,
        line=line[found.start() :].decode("utf-8", errors="replace").strip()[:MAX_TEXT],
    )


def _words(text: str) -> tuple[int, ...]:
    """Hexadecimal status words; a word cut off or garbled ends the list."""
    words: list[int] = []
    for word in text.split():
        try:
            number = int(word, 16)
        except ValueError:
            break
        if not 0 <= number <= _WORD_MAX:
            break
        words.append(number)
    return tuple(words)
