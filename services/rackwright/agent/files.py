"""Files that a reader sees whole: the old one or the new one, never a part."""

from pathlib import Path


def replace_file(path: Path, text: str) -> None:
    """Write a file in place of what was there. Not flushed: a power loss may take it back."""
    scratch = path.with_name(f".{path.name}.new")
    scratch.write_text(text, encoding="utf-8")
    scratch.replace(path)
