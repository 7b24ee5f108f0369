# SPDX-License-Identifier: BSD-3-Clause
"""Channels for Python: what <tern/chan.h> has, over the module tern.

An Out is the sending end of a channel to one rank or several, an In the receiving end. Blocks come
from and go to any object with the buffer protocol, without a copy in between. What is put until
end() is one message; it may name a procedure that the receiver runs.
"""
from __future__ import annotations

import ctypes
import errno
from ctypes import POINTER, Structure, byref, c_ssize_t, c_uint32, c_uint64, c_void_p, cast
from enum import IntEnum
from typing import Any, Callable, List, Optional, Sequence, Union

import tern
from tern import Buffer, Word, _Bytes, _tern, _word


class _End(Structure):
    """tern_out or tern_in."""
    _fields_ = [("line", c_void_p), ("at", c_ssize_t), ("chan", c_void_p)]


tern._declare("""tern_chan_to i puqp  tern_chan_to_list i ppuqp  tern_chan_from i puqp
tern_chan_close i p  tern_chan_out_back - p  tern_chan_in_back - p  tern_chan_put i ppz
tern_chan_room i pz  tern_chan_end i p
tern_chan_call i pu  tern_chan_get i ppz
tern_chan_ready i pz  tern_chan_next i p  tern_chan_run i p  tern_chan_on i pupp
tern_chan_peek i p  tern_chan_any i pupu""")
for _take in (_tern.tern_chan_out, _tern.tern_chan_in):
    _take.restype, _take.argtypes = _End, [c_void_p]

_PROC = ctypes.CFUNCTYPE(None, c_void_p, c_void_p, c_void_p)


class Kind(IntEnum):
    """What waits at the receiving end."""
    NOTHING, DATA, PROCEDURE, END, CLOSED = range(5)


class _Side:
    """An end that is open."""

    def __init__(self, endpoint: tern.Endpoint, chan: Optional[int], end: _End) -> None:
        self._endpoint, self._chan, self._end = endpoint, chan, end

    def _do(self, call: Any, *args: Any) -> None:
        """A call that may wait."""
        self._open()
        with self._endpoint._unended():
            self._endpoint._call(call, byref(self._end), *args)
        self._endpoint._raise()

    def _try(self, call: Any, *args: Any) -> bool:
        """A call that does not: whether there was room, or data."""
        self._open()
        try:
            self._endpoint._call(call, byref(self._end), *args)
        except tern.Error as e:
            if e.errno == errno.EAGAIN:
                return False
            raise
        return True

    def _open(self) -> None:
        if self._chan is None:
            raise ValueError("this end of the channel is closed")

    def _close(self, back: Any) -> None:
        if self._chan is not None:
            back(byref(self._end))
            chan, self._chan = self._chan, None
            self._endpoint._call(_tern.tern_chan_close, chan)


class Out(_Side):
    """The sending end of channel `name` to a rank, or to each of a list of ranks."""

    def __init__(self, endpoint: tern.Endpoint, ranks: Union[int, Sequence[int]],
                 name: int) -> None:
        c = c_void_p()
        if isinstance(ranks, int):
            endpoint._make(_tern.tern_chan_to, ranks, name, byref(c))
        else:
            endpoint._make(_tern.tern_chan_to_list, (c_uint32 * len(ranks))(*ranks), len(ranks),
                           name, byref(c))
        super().__init__(endpoint, c.value, _tern.tern_chan_out(c))

    def __enter__(self) -> Out:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """What was put still arrives."""
        self._close(_tern.tern_chan_out_back)

    def put_word(self, value: Word) -> None:
        self._do(_tern.tern_chan_put, byref(c_uint64(_word(value))), 8)

    def try_put_word(self, value: Word) -> bool:
        """Without waiting: whether there was room."""
        if not self.room(8):
            return False
        self.put_word(value)
        return True

    def put(self, data: Buffer) -> None:
        """A block: the receiver gets it as one of the same length."""
        with _Bytes(data) as b:
            self._do(_tern.tern_chan_put, b.p, b.len)

    def room(self, length: int) -> bool:
        """Whether a block of this length can be put without waiting."""
        return self._try(_tern.tern_chan_room, length)

    def call(self, id: int) -> None:
        """Names a procedure of the receiver; its parameters are what is put next."""
        self._do(_tern.tern_chan_call, id)

    def end(self) -> None:
        """Ends the message."""
        self._do(_tern.tern_chan_end)


class In(_Side):
    """The receiving end; waits until the other rank has opened the sending one."""

    def __init__(self, endpoint: tern.Endpoint, rank: int, name: int) -> None:
        c = c_void_p()
        with endpoint._unended():
            endpoint._make(_tern.tern_chan_from, rank, name, byref(c))
        super().__init__(endpoint, c.value, _tern.tern_chan_in(c))

    def __enter__(self) -> In:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """What was not got is dropped."""
        self._close(_tern.tern_chan_in_back)

    def get_word(self) -> int:
        value = c_uint64()
        self._do(_tern.tern_chan_get, byref(value), 8)
        return value.value

    def get_double(self) -> float:
        """A word that was put as a float."""
        value = ctypes.c_double()
        self._do(_tern.tern_chan_get, byref(value), 8)
        return value.value

    def try_get_word(self) -> Optional[int]:
        """None if there is no data now."""
        return self.get_word() if self.ready(8) else None

    def get(self, data: Buffer) -> None:
        """A block, into the whole of `data`."""
        with _Bytes(data, True) as b:
            self._do(_tern.tern_chan_get, b.p, b.len)

    def ready(self, length: int) -> bool:
        """Whether a block of this length can be got without waiting."""
        return self._try(_tern.tern_chan_ready, length)

    def next(self) -> None:
        """Passes what is left of the message, its end included."""
        self._do(_tern.tern_chan_next)

    def run(self) -> None:
        """Runs the procedure that waits, or waits for one: see on()."""
        self._do(_tern.tern_chan_run)

    def peek(self) -> Kind:
        """What waits; never waits itself."""
        self._open()
        return Kind(_tern.tern_chan_peek(byref(self._end)))


class _Borrowed(In):
    """The end that a procedure gets its parameters from, until it returns."""

    def __init__(self, endpoint: tern.Endpoint, end: _End) -> None:
        _Side.__init__(self, endpoint, end.chan, end)

    def close(self) -> None:
        raise ValueError("a procedure does not close its channel")


def on(endpoint: tern.Endpoint, id: int, procedure: Callable[[In], object]) -> None:
    """Registers a procedure for In.run(), under the same number at both ranks."""

    def run(end: int) -> None:
        side = _Borrowed(endpoint, cast(end, POINTER(_End)).contents)
        try:
            procedure(side)
        except BaseException as failed:
            endpoint._failed.append(failed)  # run() raises it
        side._chan = None

    callback = _PROC(lambda _, end, __: run(end))
    endpoint._callbacks.append(callback)
    endpoint._make(_tern.tern_chan_on, id, callback, None)


def wait_any(ends: List[In], turn: int = 0) -> int:
    """Waits until something is at one of several ends, looking on from `turn`: its index."""
    pointers = (c_void_p * len(ends))(*[ctypes.addressof(e._end) for e in ends])
    at = c_uint32(turn)
    endpoint = ends[0]._endpoint
    with endpoint._unended():
        return endpoint._call(_tern.tern_chan_any, pointers, len(ends), byref(at), 0)
