"""Which files the stage ``ingest`` is asked to read, and the URI of each; nothing is opened here."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Failure", "FoundFile", "walk"]

_URI_BYTES = 2000


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file to read.

    Attributes:
        path: Where it is.
        uri: Its path below the folder that was given, with ``/``; the name of a file that was given itself.
    """

    path: Path
    uri: str


@dataclass(frozen=True, slots=True)
class Failure:
    """Something that was not taken in, and why.

    Attributes:
        path: The file or folder, as the caller would write it; bytes that aren't UTF-8 are escaped.
        reason: One line.
        uri: What the document would be called, or empty.
        is_folder: Whether files below it may have gone unseen.
    """

    path: str
    reason: str
    uri: str = ""
    is_folder: bool = False


@dataclass(frozen=True, slots=True)
class _Folder:
    path: Path
    uri: str  # "" for one that was given, else with a slash at the end
    chain: tuple[tuple[int, int], ...]  # device and inode of it and of what it lies in


def walk(paths: Sequence[Path]) -> Iterator[FoundFile | Failure]:
    """Find files, in the order of the paths given, and below a folder in the order of URIs.

    Names that begin with a dot are skipped, unless given. Links to files and folders are followed, each
    folder once; a link to a folder that it lies in is a failure. So are a name that isn't UTF-8, a URI of over
    2,000 bytes and one that another path gave.

    Args:
        paths: Files and folders.

    Yields:
        Each file, whatever its kind, and what couldn't be looked into.
    """
    entered: set[tuple[int, int]] = set()  # folders entered through a link
    taken: dict[str, Path] | None = {} if len(paths) > 1 else None
    for path in paths:
        for found in _below(path, entered):
            if taken is None or isinstance(found, Failure):
                yield found
                continue
            other = taken.setdefault(found.uri, found.path)
            if other is found.path:
                yield found
            elif not _same(other, found.path):
                yield Failure(shown(found.path), f'its URI "{found.uri}" is that of {shown(other)} already')


def shown(path: Path) -> str:
    """A path that can be printed and stored."""
    text = str(path).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return re.sub("[\x00-\x1f\x7f]", lambda match: f"\\x{ord(match.group()):02x}", text)


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _below(given: Path, entered: set[tuple[int, int]]) -> Iterator[FoundFile | Failure]:
    try:
        status = given.stat()
    except (OSError, ValueError) as error:
        yield _failure(given, error, is_folder=True)
        return
    if not stat.S_ISDIR(status.st_mode):
        yield _file(given, given.name)
        return
    stack: list[Iterator[FoundFile | Failure | _Folder]] = [
        _entries(_Folder(given, "", ((status.st_dev, status.st_ino),)), entered)
    ]
    while stack:
        found = next(stack[-1], None)
        if found is None:
            stack.pop()
        elif isinstance(found, _Folder):
            stack.append(_entries(found, entered))
        else:
            yield found


def _entries(folder: _Folder, entered: set[tuple[int, int]]) -> Iterator[FoundFile | Failure | _Folder]:
    try:
        with os.scandir(folder.path) as scan:
            names = sorted(
                (entry.name + "/" * _is_folder(entry), entry.name)
                for entry in scan
                if not entry.name.startswith(".")
            )
    except OSError as error:
        yield _failure(folder.path, error, is_folder=True)
        return
    for _, name in names:
        yield _entry(folder, name, entered)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False  # a link to itself


def _entry(folder: _Folder, name: str, entered: set[tuple[int, int]]) -> FoundFile | Failure | _Folder:
    path = folder.path / name
    try:
        status = path.stat()
        linked = path.is_symlink()
    except OSError as error:
        return _failure(path, error, uri=folder.uri + name)
    if not stat.S_ISDIR(status.st_mode):
        return _file(path, folder.uri + name)
    key = (status.st_dev, status.st_ino)
    if key in folder.chain:
        return Failure(shown(path), "symlink loop: it leads to a folder that it lies in")
    if linked:
        if key in entered:
            return Failure(shown(path), "symlink to a folder that another symlink led to already")
        entered.add(key)
    return _Folder(path, f"{folder.uri}{name}/", (*folder.chain, key))


def _file(path: Path, uri: str) -> FoundFile | Failure:
    try:
        length = len(uri.encode("utf-8"))
    except UnicodeEncodeError:
        return Failure(shown(path), "its name isn't valid UTF-8: rename it")
    if length > _URI_BYTES:
        return Failure(shown(path), f"its path is {length:,} bytes long, over the limit of {_URI_BYTES:,}")
    return FoundFile(path, uri)


def _failure(path: Path, error: OSError | ValueError, *, uri: str = "", is_folder: bool = False) -> Failure:
    code = getattr(error, "errno", None)
    if code == errno.ELOOP:
        reason = "symlink loop: it leads to itself"
    elif code == errno.ENOENT:
        reason = "symlink to something that doesn't exist" if path.is_symlink() else "no such file or folder"
    elif code in (errno.EACCES, errno.EPERM):
        reason = "no permission to read it"
    else:
        reason = f"can't be read: {getattr(error, 'strerror', None) or error}"
    return Failure(shown(path), reason, shown(Path(uri)) if uri else "", is_folder)
