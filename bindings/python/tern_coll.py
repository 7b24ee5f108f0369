# SPDX-License-Identifier: BSD-3-Clause
"""Teams and collectives for Python: what <tern/coll.h> has, over the module tern.

Every member of a team makes the same calls on it, in the same order. Data are any objects with the
buffer protocol, and nothing is copied; reductions take the type of the elements from the buffer.
Each collective waits, or begins with the name's _start form and tells a tern.Op when it is done.
"""
from __future__ import annotations

import os
import traceback
from ctypes import (CFUNCTYPE, POINTER, Structure, addressof, byref, c_int64, c_size_t, c_uint,
                    c_uint32, c_void_p)
from enum import IntEnum
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

import tern
from tern import Buffer, Op, _Bytes, _tern

tern._declare("""tern_team_all i pp  tern_team_split i piip  tern_team_list i ppup
tern_team_machine i pp  tern_team_survivors i pp  tern_team_free i p  tern_team_rank u p
tern_team_size u p  tern_team_member u pu  tern_team_id q pu  tern_team_quiet i p
tern_team_barrier_start i pp  tern_team_broadcast_start i pupzp
tern_team_reduce_start i puppzizp  tern_team_allreduce_start i pppzizp
tern_team_scan_start i pppzizp  tern_team_exscan_start i pppzizp  tern_team_gather_start i puppzp
tern_team_allgather_start i pppzp  tern_team_scatter_start i puppzp
tern_team_alltoall_start i pppzp  tern_team_alltoallv_start i pppp
tern_team_gatherv_start i puppp  tern_team_allgatherv_start i pppp  tern_team_scatterv_start i puppp
tern_team_reduce_scatter_start i ppppizp  tern_team_exchange_start i ppzp""")

COLOR_NONE = -1
RANK_NONE = 0xFFFFFFFE  # nobody


class Reduce(IntEnum):
    """What a reduction does; EXACT, added to one of them, makes the result reproducible."""
    SUM, PRODUCT, MIN, MAX, AND, OR, XOR, ALL, ANY = range(9)
    EXACT = 256


class Type(IntEnum):
    """Elements of a reduction."""
    INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, FLOAT, DOUBLE = range(10)
    COMPLEX_FLOAT, COMPLEX_DOUBLE, USER = 10, 11, 64


_FUNCTION = CFUNCTYPE(None, c_void_p, c_void_p, c_size_t, c_void_p)


class By(Structure):
    """A reduction by a function: combine(left, right) changes `left`, an element of `size` bytes.

    It is given as `how`, and is kept until the call is over; each member gives its own. Elements
    are combined in the order of the members. What the function raises ends the process.
    """
    _fields_ = [("fn", _FUNCTION), ("arg", c_void_p), ("size", c_size_t)]

    def __init__(self, size: int, combine: Callable[[memoryview, memoryview], None]) -> None:
        def each(left: int, right: int, n: int, _: Optional[int]) -> None:
            try:
                for at in range(0, n * size, size):
                    combine(tern._view(left + at, size, True), tern._view(right + at, size, False))
            except BaseException:  # nobody would hear of it
                traceback.print_exc()
                os._exit(1)
        super().__init__(_FUNCTION(each), None, size)


How = Union[int, By]


class _Part(Structure):  # one run of bytes
    _fields_ = [("base", c_void_p), ("run", c_size_t), ("dims", c_uint), ("count", c_void_p),
                ("stride", c_void_p)]


class _Neighbor(Structure):
    _fields_ = [("to", c_uint32), ("from_", c_uint32), ("in_", _Part), ("out", _Part)]


class Grid(Structure):
    """Members in a grid; a size of 0 is chosen so that the grid has `members`."""
    _fields_ = [("dims", c_uint), ("size", c_uint32 * 8), ("around", c_uint)]

    def __init__(self, members: int, sizes: Sequence[int], around: Sequence[bool] = ()) -> None:
        super().__init__(len(sizes), (c_uint32 * 8)(*sizes),
                         sum(1 << d for d, bit in enumerate(around) if bit))
        tern._checked(_tern.tern_grid_fit(byref(self), members))
        self.shape: Tuple[int, ...] = tuple(self.size[:self.dims])

    def coords(self, member: int) -> Tuple[int, ...]:
        at = (c_int64 * 8)()
        _tern.tern_grid_coords(byref(self), member, at)
        return tuple(at[:self.dims])

    def member(self, coords: Sequence[int]) -> int:
        """Who is there; RANK_NONE if nobody."""
        return int(_tern.tern_grid_member(byref(self), (c_int64 * 8)(*coords)))

    def neighbor(self, member: int, dim: int, distance: int) -> int:
        return int(_tern.tern_grid_neighbor(byref(self), member, dim, distance))


_tern.tern_grid_fit.argtypes = [POINTER(Grid), c_uint32]
_tern.tern_grid_coords.argtypes = [POINTER(Grid), c_uint32, POINTER(c_int64)]
_tern.tern_grid_coords.restype = None
_tern.tern_grid_member.argtypes = [POINTER(Grid), POINTER(c_int64)]
_tern.tern_grid_member.restype = c_uint32
_tern.tern_grid_neighbor.argtypes = [POINTER(Grid), c_uint32, c_uint, c_int64]
_tern.tern_grid_neighbor.restype = c_uint32

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


# To whom, what goes, from whom, where that goes; RANK_NONE and None: nobody, and nothing
Neighbor = Tuple[int, Optional[Buffer], int, Optional[Buffer]]
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

    def id(self, id: int) -> int:
        """The id under which members send and receive among themselves."""
        return int(_tern.tern_team_id(self._handle(), id))

    # New teams; None where this rank is not in one
    def split(self, color: int, key: int = 0) -> Optional[Team]:
        """Members of the same color, ordered by key; COLOR_NONE: in none."""
        return self._make(_tern.tern_team_split, color, key)

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
        self._do(_tern.tern_team_barrier_start, None)

    def barrier_start(self, op: Optional[Op] = None) -> Op:
        return self._endpoint._begin(op, [], _tern.tern_team_barrier_start, self._handle())

    def broadcast(self, root: int, data: Buffer) -> None:
        self._both("broadcast", False, None, *self._broadcast(root, data))

    def broadcast_start(self, root: int, data: Buffer, op: Optional[Op] = None) -> Op:
        return self._both("broadcast", True, op, *self._broadcast(root, data))

    def reduce(self, root: int, data: Buffer, out: Optional[Buffer], how: How) -> None:
        self._both("reduce", False, None, *self._reduce((root,), data, out, how))

    def reduce_start(self, root: int, data: Buffer, out: Optional[Buffer], how: How,
                     op: Optional[Op] = None) -> Op:
        return self._both("reduce", True, op, *self._reduce((root,), data, out, how))

    def allreduce(self, data: Buffer, out: Buffer, how: How) -> None:
        self._both("allreduce", False, None, *self._reduce((), data, out, how))

    def allreduce_start(self, data: Buffer, out: Buffer, how: How, op: Optional[Op] = None) -> Op:
        return self._both("allreduce", True, op, *self._reduce((), data, out, how))

    def scan(self, data: Buffer, out: Buffer, how: How) -> None:
        """Member i gets the combination of members 0 to i."""
        self._both("scan", False, None, *self._reduce((), data, out, how))

    def scan_start(self, data: Buffer, out: Buffer, how: How, op: Optional[Op] = None) -> Op:
        return self._both("scan", True, op, *self._reduce((), data, out, how))

    def exscan(self, data: Buffer, out: Buffer, how: How) -> None:
        """Of members 0 to i - 1; `out` of member 0 stays as it is."""
        self._both("exscan", False, None, *self._reduce((), data, out, how))

    def exscan_start(self, data: Buffer, out: Buffer, how: How, op: Optional[Op] = None) -> Op:
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

    # Lengths that differ: lists have a buffer for each member, or None for no bytes
    def alltoallv(self, data: Sequence[Optional[Buffer]],
                  out: Sequence[Optional[Buffer]]) -> None:
        self._both("alltoallv", False, None, *self._parts((), self._all(data), self._all(out)))

    def alltoallv_start(self, data: Sequence[Optional[Buffer]], out: Sequence[Optional[Buffer]],
                        op: Optional[Op] = None) -> Op:
        return self._both("alltoallv", True, op,
                          *self._parts((), self._all(data), self._all(out)))

    def allgatherv(self, data: Optional[Buffer], out: Sequence[Optional[Buffer]]) -> None:
        self._both("allgatherv", False, None, *self._parts((), [data], self._all(out)))

    def allgatherv_start(self, data: Optional[Buffer], out: Sequence[Optional[Buffer]],
                         op: Optional[Op] = None) -> Op:
        return self._both("allgatherv", True, op, *self._parts((), [data], self._all(out)))

    def gatherv(self, root: int, data: Optional[Buffer],
                out: Optional[Sequence[Optional[Buffer]]] = None) -> None:
        self._both("gatherv", False, None,
                   *self._parts((root,), [data], self._all(out, root == self.rank)))

    def gatherv_start(self, root: int, data: Optional[Buffer],
                      out: Optional[Sequence[Optional[Buffer]]] = None,
                      op: Optional[Op] = None) -> Op:
        return self._both("gatherv", True, op,
                          *self._parts((root,), [data], self._all(out, root == self.rank)))

    def scatterv(self, root: int, data: Optional[Sequence[Optional[Buffer]]],
                 out: Optional[Buffer]) -> None:
        self._both("scatterv", False, None,
                   *self._parts((root,), self._all(data, root == self.rank), [out]))

    def scatterv_start(self, root: int, data: Optional[Sequence[Optional[Buffer]]],
                       out: Optional[Buffer], op: Optional[Op] = None) -> Op:
        return self._both("scatterv", True, op,
                          *self._parts((root,), self._all(data, root == self.rank), [out]))

    def reduce_scatter(self, data: Buffer, out: Buffer, counts: Sequence[int], how: How) -> None:
        """Member i gets counts[i] elements, behind those of the members before it."""
        self._both("reduce_scatter", False, None, *self._reduce_scatter(data, out, counts, how))

    def reduce_scatter_start(self, data: Buffer, out: Buffer, counts: Sequence[int], how: How,
                             op: Optional[Op] = None) -> Op:
        return self._both("reduce_scatter", True, op,
                          *self._reduce_scatter(data, out, counts, how))

    def exchange(self, neighbors: Sequence[Neighbor]) -> None:
        """For each (to, data, source, out): data goes to a member, and out comes from one."""
        self._both("exchange", False, None, *self._exchange(neighbors))

    def exchange_start(self, neighbors: Sequence[Neighbor], op: Optional[Op] = None) -> Op:
        return self._both("exchange", True, op, *self._exchange(neighbors))

    # How arguments become those of C
    def _broadcast(self, root: int, data: Buffer) -> _Call:
        b = _Bytes(data, root != self.rank)
        return [b], (root, b.p, b.len)

    def _reduce(self, root: Tuple[int, ...], data: Buffer, out: Optional[Buffer],
                how: How) -> _Call:
        n, kind, what = self._how(data, how)
        here = not root or root[0] == self.rank
        buffers, (i, o) = self._in_out(data, out if here else None, 1, 1 if here else 0)
        return buffers, (*root, i, o, n, kind, what)

    @staticmethod
    def _how(data: Buffer, how: How) -> Tuple[int, Type, int]:
        """How many elements, of what type, and how they are combined."""
        if not isinstance(how, By):
            return (*_elements(data), int(how))
        with memoryview(data) as view:
            return view.nbytes // how.size, Type.USER, addressof(how)

    def _reduce_scatter(self, data: Buffer, out: Buffer, counts: Sequence[int], how: How) -> _Call:
        n, kind, what = self._how(data, how)
        buffers, (i, o) = self._in_out(data, out, n, counts[self.rank])
        given = (c_size_t * len(counts))(*counts)
        if len(counts) != self.size or sum(counts) != n:
            for b in buffers:
                b.release()
            raise ValueError(f"{len(counts)} counts for {n} elements of {self.size} members")
        return buffers, (i, o if o else None, given, kind, what)

    def _parts(self, root: Tuple[int, ...], data: Sequence[Optional[Buffer]],
               out: Sequence[Optional[Buffer]]) -> _Call:
        """Lists of buffers, of which those that are None have no bytes."""
        buffers: List[_Bytes] = []
        try:
            lists = [self._list(data, False, buffers), self._list(out, True, buffers)]
        except BaseException:
            for b in buffers:
                b.release()
            raise
        return buffers, (*root, *lists)

    @staticmethod
    def _part(data: Optional[Buffer], writable: bool, buffers: List[_Bytes]) -> _Part:
        if data is None:
            return _Part()
        buffers.append(_Bytes(data, writable))
        return _Part(buffers[-1].p, buffers[-1].len)

    def _list(self, data: Sequence[Optional[Buffer]], writable: bool,
              buffers: List[_Bytes]) -> Any:
        parts = [self._part(one, writable, buffers) for one in data]
        return (_Part * len(parts))(*parts)

    def _all(self, buffers: Optional[Sequence[Optional[Buffer]]],
             here: bool = True) -> Sequence[Optional[Buffer]]:
        """One for each member, where they matter."""
        if not here:
            return ()
        if buffers is None or len(buffers) != self.size:
            raise ValueError(f"a list of {self.size} buffers is needed")
        return buffers

    def _exchange(self, neighbors: Sequence[Neighbor]) -> _Call:
        buffers: List[_Bytes] = []
        try:
            items = [_Neighbor(to, source, self._part(data, False, buffers),
                               self._part(out, True, buffers))
                     for to, data, source, out in neighbors]
        except BaseException:
            for b in buffers:
                b.release()
            raise
        return buffers, ((_Neighbor * len(items))(*items), len(items))

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
            self._do(getattr(_tern, f"tern_team_{name}_start"), *args, None)
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
