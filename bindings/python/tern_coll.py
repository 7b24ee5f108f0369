# SPDX-License-Identifier: BSD-3-Clause
"""Teams and collectives for Python: what <tern/coll.h> has, over the module tern.

Every member of a team makes the same calls on it, in the same order. Data are any objects with the
buffer protocol, and nothing is copied; reductions take the type of the elements from the buffer.
Each collective waits, or begins with the name's _start form and tells a tern.Op when it is done.
"""
from __future__ import annotations

from ctypes import byref, c_uint32, c_void_p
from enum import IntEnum
from typing import Any, Dict, List, Optional, Sequence, Tuple

import tern
from tern import Buffer, Op, _Bytes, _tern

tern._declare("""tern_team_all i pp  tern_team_split i piip  tern_team_list i ppup
tern_team_machine i pp  tern_team_survivors i pp  tern_team_free i p  tern_team_rank u p
tern_team_size u p  tern_team_member u pu  tern_team_quiet i p  tern_team_barrier i p
tern_team_barrier_start i pp  tern_team_broadcast i pupz  tern_team_broadcast_start i pupzp
tern_team_reduce i puppziu  tern_team_reduce_start i puppziup  tern_team_allreduce i pppziu
tern_team_allreduce_start i pppziup  tern_team_scan i pppziu  tern_team_scan_start i pppziup
tern_team_exscan i pppziu  tern_team_exscan_start i pppziup  tern_team_gather i puppz
tern_team_gather_start i puppzp  tern_team_allgather i pppz  tern_team_allgather_start i pppzp
tern_team_scatter i puppz  tern_team_scatter_start i puppzp  tern_team_alltoall i pppz
tern_team_alltoall_start i pppzp""")

COLOUR_NONE = -1


class Reduce(IntEnum):
    """What a reduction does; EXACT, added to one of them, makes the result reproducible."""
    SUM, PRODUCT, MIN, MAX, AND, OR, XOR, ALL, ANY = range(9)
    EXACT = 256


class Type(IntEnum):
    """Elements of a reduction."""
    INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, FLOAT, DOUBLE = range(10)
    COMPLEX_FLOAT, COMPLEX_DOUBLE = 10, 11


_INTEGERS = {1: 0, 2: 1, 4: 2, 8: 3}
_OTHERS: Dict[str, Type] = {"f": Type.FLOAT, "d": Type.DOUBLE, "Zf": Type.COMPLEX_FLOAT,
                            "Zd": Type.COMPLEX_DOUBLE}


def _elements(data: Buffer) -> Tuple[int, Type]:
    """How many elements a buffer has, and of what type."""
    with memoryview(data) as view:
        kind, size, length = view.format.lstrip("@=<"), view.itemsize, view.nbytes
    if kind in _OTHERS:
        return length // size, _OTHERS[kind]
    if kind in ("b", "h", "i", "l", "q", "n") and size in _INTEGERS:
        return length // size, Type(_INTEGERS[size])
    if kind in ("B", "H", "I", "L", "Q", "N") and size in _INTEGERS:
        return length // size, Type(_INTEGERS[size] + Type.UINT8)
    raise TypeError(f"a reduction of elements of format {kind!r}: see tern_coll.Type")


_Call = Tuple[List[_Bytes], Tuple[Any, ...]]  # the buffers in use, and the arguments


class Team:
    """A list of ranks that call together; without a handle, all ranks of the job."""

    def __init__(self, endpoint: tern.Endpoint, handle: Optional[int] = None) -> None:
        self._endpoint = endpoint
        if handle is None:
            team = c_void_p()
            with endpoint._unended():
                endpoint._make(_tern.tern_team_all, byref(team))
            handle = team.value
        self._team = handle
        self.rank: int = _tern.tern_team_rank(handle)
        self.size: int = _tern.tern_team_size(handle)

    def __enter__(self) -> Team:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.free()

    def free(self) -> None:
        """All members call it; when one has died, each on its own."""
        if self._team is not None:
            self._do(_tern.tern_team_free)
            self._team = None

    def member(self, i: int) -> int:
        """The rank in the job of member i."""
        if not 0 <= i < self.size:
            raise IndexError(f"the team has members 0 to {self.size - 1}, and not {i}")
        return int(_tern.tern_team_member(self._handle(), i))

    # New teams; None where this rank is not in one
    def split(self, colour: int, key: int = 0) -> Optional[Team]:
        """Members of the same colour, ordered by key; COLOUR_NONE: in none."""
        return self._make(_tern.tern_team_split, colour, key)

    def list(self, ranks: Sequence[int]) -> Optional[Team]:
        return self._make(_tern.tern_team_list, (c_uint32 * len(ranks))(*ranks), len(ranks))

    def machine(self) -> Optional[Team]:
        """The members that share memory with this one."""
        return self._make(_tern.tern_team_machine)

    def survivors(self) -> Optional[Team]:
        """Those who live, agreed by all of them."""
        return self._make(_tern.tern_team_survivors)

    # Collectives; a reduction's `out` matters at the root only
    def quiet(self) -> None:
        """Nothing is under way among the members that could still run a handler."""
        self._do(_tern.tern_team_quiet)

    def barrier(self) -> None:
        self._do(_tern.tern_team_barrier)

    def barrier_start(self, op: Optional[Op] = None) -> Op:
        return self._endpoint._begin(op, [], _tern.tern_team_barrier_start, self._handle())

    def broadcast(self, root: int, data: Buffer) -> None:
        self._both("broadcast", False, None, *self._broadcast(root, data))

    def broadcast_start(self, root: int, data: Buffer, op: Optional[Op] = None) -> Op:
        return self._both("broadcast", True, op, *self._broadcast(root, data))

    def reduce(self, root: int, data: Buffer, out: Optional[Buffer], how: int) -> None:
        self._both("reduce", False, None, *self._reduce((root,), data, out, how))

    def reduce_start(self, root: int, data: Buffer, out: Optional[Buffer], how: int,
                     op: Optional[Op] = None) -> Op:
        return self._both("reduce", True, op, *self._reduce((root,), data, out, how))

    def allreduce(self, data: Buffer, out: Buffer, how: int) -> None:
        self._both("allreduce", False, None, *self._reduce((), data, out, how))

    def allreduce_start(self, data: Buffer, out: Buffer, how: int, op: Optional[Op] = None) -> Op:
        return self._both("allreduce", True, op, *self._reduce((), data, out, how))

    def scan(self, data: Buffer, out: Buffer, how: int) -> None:
        """Member i gets the combination of members 0 to i."""
        self._both("scan", False, None, *self._reduce((), data, out, how))

    def scan_start(self, data: Buffer, out: Buffer, how: int, op: Optional[Op] = None) -> Op:
        return self._both("scan", True, op, *self._reduce((), data, out, how))

    def exscan(self, data: Buffer, out: Buffer, how: int) -> None:
        """Of members 0 to i - 1; `out` of member 0 stays as it is."""
        self._both("exscan", False, None, *self._reduce((), data, out, how))

    def exscan_start(self, data: Buffer, out: Buffer, how: int, op: Optional[Op] = None) -> Op:
        return self._both("exscan", True, op, *self._reduce((), data, out, how))

    def gather(self, root: int, data: Buffer, out: Optional[Buffer] = None) -> None:
        """The bytes of all members, one behind the other, at the root."""
        self._both("gather", False, None, *self._gather((root,), data, out))

    def gather_start(self, root: int, data: Buffer, out: Optional[Buffer] = None,
                     op: Optional[Op] = None) -> Op:
        return self._both("gather", True, op, *self._gather((root,), data, out))

    def allgather(self, data: Buffer, out: Buffer) -> None:
        self._both("allgather", False, None, *self._gather((), data, out))

    def allgather_start(self, data: Buffer, out: Buffer, op: Optional[Op] = None) -> Op:
        return self._both("allgather", True, op, *self._gather((), data, out))

    def scatter(self, root: int, data: Optional[Buffer], out: Buffer) -> None:
        """Each member gets its part of the root's bytes."""
        self._both("scatter", False, None, *self._scatter(root, data, out))

    def scatter_start(self, root: int, data: Optional[Buffer], out: Buffer,
                      op: Optional[Op] = None) -> Op:
        return self._both("scatter", True, op, *self._scatter(root, data, out))

    def alltoall(self, data: Buffer, out: Buffer) -> None:
        """Part i of the bytes goes to member i, and part i of `out` comes from it."""
        self._both("alltoall", False, None, *self._alltoall(data, out))

    def alltoall_start(self, data: Buffer, out: Buffer, op: Optional[Op] = None) -> Op:
        return self._both("alltoall", True, op, *self._alltoall(data, out))

    # How arguments become those of C
    def _broadcast(self, root: int, data: Buffer) -> _Call:
        b = _Bytes(data, root != self.rank)
        return [b], (root, b.p, b.len)

    def _reduce(self, root: Tuple[int, ...], data: Buffer, out: Optional[Buffer],
                how: int) -> _Call:
        n, kind = _elements(data)
        here = not root or root[0] == self.rank
        buffers, (i, o) = self._in_out(data, out if here else None, 1, 1 if here else 0)
        return buffers, (*root, i, o, n, kind, int(how))

    def _gather(self, root: Tuple[int, ...], data: Buffer, out: Optional[Buffer]) -> _Call:
        here = not root or root[0] == self.rank
        buffers, (i, o) = self._in_out(data, out if here else None, 1, self.size if here else 0)
        return buffers, (*root, i, o, buffers[0].len)

    def _scatter(self, root: int, data: Optional[Buffer], out: Buffer) -> _Call:
        o = _Bytes(out, True)
        if root != self.rank:
            return [o], (root, None, o.p, o.len)
        o.release()
        buffers, (i, p) = self._in_out(data, out, self.size, 1)
        return buffers, (root, i, p, buffers[1].len)

    def _alltoall(self, data: Buffer, out: Buffer) -> _Call:
        buffers, (i, o) = self._in_out(data, out, self.size, self.size)
        return buffers, (i, o, buffers[0].len // self.size)

    @staticmethod
    def _in_out(data: Optional[Buffer], out: Optional[Buffer], ins: int,
                outs: int) -> Tuple[List[_Bytes], Tuple[Optional[int], Optional[int]]]:
        """Both buffers, whose lengths are to each other as `ins` to `outs`."""
        if data is None or (outs and out is None):
            raise TypeError("a buffer is missing")
        buffers = [_Bytes(data)]
        try:
            if outs and out is not None:
                buffers.append(_Bytes(out, True))
            if outs and buffers[0].len * outs != buffers[1].len * ins:
                raise ValueError(f"{buffers[0].len} bytes go in, and {buffers[1].len} come out")
        except BaseException:
            for b in buffers:
                b.release()
            raise
        return buffers, (buffers[0].p, buffers[1].p if outs else None)

    def _both(self, name: str, start: bool, op: Optional[Op], buffers: List[_Bytes],
              args: Tuple[Any, ...]) -> Op:
        """A collective that begins; one that waits is over, and its Op means nothing."""
        if start:
            call = getattr(_tern, f"tern_team_{name}_start")
            return self._endpoint._begin(op, buffers, call, self._handle(), *args)
        try:
            self._do(getattr(_tern, f"tern_team_{name}"), *args)
        finally:
            for b in buffers:
                b.release()
        return Op(self._endpoint)

    def _handle(self) -> int:
        if self._team is None:
            raise ValueError("the team has been freed")
        return self._team

    def _do(self, call: Any, *args: Any) -> None:
        with self._endpoint._unended():
            self._endpoint._call(call, self._handle(), *args)

    def _make(self, call: Any, *args: Any) -> Optional[Team]:
        team = c_void_p()
        self._do(call, *args, byref(team))
        return Team(self._endpoint, team.value) if team.value else None
