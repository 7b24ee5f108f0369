# SPDX-License-Identifier: BSD-3-Clause
"""What the module tern stands on: the library and its functions, buffers and words."""
from __future__ import annotations

import ctypes
import ctypes.util
import operator
import os
import struct
import sys
from ctypes import (POINTER, Structure, c_double, c_int, c_int32, c_size_t, c_ssize_t, c_uint32,
                    c_uint64, c_void_p)
from enum import IntEnum
from pathlib import Path
from typing import Any, Callable, Dict, Optional, Tuple, Union

__all__ = ["Amo", "Buffer", "Compare", "Delivery", "Envelope", "Error", "Flag", "HANDLER_MAX",
           "ID_ANY", "LOCK_BYTES", "Match", "Options", "PAYLOAD_MAX", "RANK_ANY", "REQUEST_MAX",
           "WORDS_MAX", "Word", "_Bytes", "_Change", "_END", "_ENDED", "_HANDLER", "_checked",
           "_declare", "_tern", "_view", "_word", "_words"]

if sys.version_info >= (3, 12):
    from collections.abc import Buffer as Buffer
else:
    Buffer = Any  # bytes, bytearray, memoryview, array, mmap, arrays of NumPy and of ctypes

Word = Union[int, float]  # an integer of 64 bits, signed or not; a float travels as a double's bits

Flag = c_uint64  # what Endpoint.wait() waits for; a handler adds to its value

WORDS_MAX = 8
PAYLOAD_MAX = 8192
REQUEST_MAX = 32768
HANDLER_MAX = 768
LOCK_BYTES = 24  # of memory of alloc_all(), zero, for lock_take()
RANK_ANY = 0xFFFFFFFF
ID_ANY = 0xFFFFFFFFFFFFFFFF
_ENDED = 1 << 62  # added to the flag of a wait that a failed handler ends


class Delivery(IntEnum):
    """Who runs handlers while the program computes; Python cannot run in a signal (interrupt)."""
    DEFAULT, POLL, THREAD, INTERRUPT = range(4)


class Amo(IntEnum):
    """Atomic operations on memory of any rank; MIN and MAX are unsigned."""
    ADD, AND, OR, XOR, MIN, MAX, SWAP, LOAD, STORE, MUL = range(10)


class Compare(IntEnum):
    """How wait_word() compares the word with its value, as unsigned numbers."""
    EQ, NE, LT, LE, GT, GE = range(6)


class Options(Structure):
    _fields_ = [("spin", c_uint32), ("grace", c_uint32), ("delivery", c_int), ("signal", c_int),
                ("shared", c_int), ("allgather", c_void_p), ("allgather_arg", c_void_p),
                ("rank", c_uint32), ("size", c_uint32)]


class Match(Structure):
    _fields_ = [("rank", c_uint32), ("flags", c_uint32), ("id", c_uint64), ("any", c_uint64)]


class _Change(Structure):
    _fields_ = [("word", c_uint64), ("what", c_int), ("value", c_uint64)]


class Envelope(Structure):
    """What a receive has got."""
    _fields_ = [("src", c_uint32), ("error", c_int32), ("id", c_uint64), ("len", c_size_t)]


class Error(OSError):
    """A call has failed: errno, and in strerror the library's sentence."""
    __module__ = "tern"


# -- The library ----------------------------------------------------------------------------------

_HANDLER = ctypes.CFUNCTYPE(None, c_void_p, c_void_p)  # of messages; deferred functions, too
_END = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_void_p)

_TYPES: Dict[str, Any] = {"p": c_void_p, "u": c_uint32, "i": c_int, "q": c_uint64, "z": c_size_t,
                          "d": c_double, "s": ctypes.c_char_p, "-": None}

# What a function returns, and its parameters.
_FUNCTIONS = """tern_open i pp  tern_close i p  tern_exit i pi  tern_abort i ps
tern_strerror s i  tern_rank u p  tern_size u p
tern_delivery_get i p  tern_delivery_set i pi  tern_on_with i pupps  tern_request_array i puuup
tern_reply_array i ppuup  tern_request_data_array i puupzup  tern_reply_data_array i ppupzup
tern_msg_src u p  tern_msg_count u p  tern_msg_word q pu  tern_msg_double d pu  tern_msg_data p pp
tern_defer i ppp  tern_poll i p  tern_wait i ppq  tern_signal - ppq  tern_hold - p  tern_release - p
tern_barrier i p  tern_op_test i pp  tern_op_wait_any i ppzp  tern_addr_of i ppp  tern_addr_at q pup
tern_addr_local i pqzp  tern_alloc i pzp  tern_free i pp  tern_alloc_all i pzp  tern_free_all i pp
tern_register i ppzp  tern_register_fd i ppziqp  tern_unregister i pq
tern_put i pqpz  tern_get i ppqz  tern_put_start i pqpzp
tern_get_start i ppqzp  tern_put_request_array i pqupzup  tern_amo64_ i pqiqpp
tern_amo_double_ i pqidpp  tern_cas64_ i pqqqpp  tern_send_start i puqpzup  tern_recv_start i pppzpp
tern_machines u p  tern_machine u pu  tern_near_is i pu  tern_msg_is_reply i pp  tern_attach - p
tern_detach i p  tern_end_on i ppp  tern_worker_open i pp  tern_worker_id u p
tern_alloc_aligned i pzzp  tern_put_signal_start i pqpzpp  tern_wait_word i ppiq
tern_wait_word_for i ppiqq  tern_lock_take i pp  tern_lock_try i pp  tern_lock_release i pp"""


def _library() -> ctypes.CDLL:
    """TERN_LIBRARY, else below the prefix that the module is installed in, else the loader's."""
    name: Optional[str] = os.environ.get("TERN_LIBRARY")
    if not name:
        prefix = Path(__file__).resolve().parent / "../../.."  # of share/tern/python/tern_base.py
        beside = [*prefix.glob("lib*/libtern.so.0"), *prefix.glob("lib/*/libtern.so.0")]
        name = str(beside[0]) if beside else ctypes.util.find_library("tern")
    if not name:
        raise ImportError("libtern.so was not found: install Tern, or name it in TERN_LIBRARY")
    return ctypes.CDLL(name)


def _declare(functions: str) -> None:
    words = functions.split()
    for function, result, parameters in zip(words[0::3], words[1::3], words[2::3]):
        f = getattr(_tern, function)
        f.restype, f.argtypes = _TYPES[result], [_TYPES[p] for p in parameters]


_tern = _library()
_declare(_FUNCTIONS)


def _checked(rc: int) -> int:
    """What a call has returned, unless that is an error."""
    if rc < 0:
        raise Error(-rc, _tern.tern_strerror(rc).decode(errors="replace"))
    return rc


# -- Buffers and words ----------------------------------------------------------------------------

class _PyBuffer(Structure):  # Py_buffer, as Python's stable interface has it
    _fields_ = [("buf", c_void_p), ("obj", c_void_p), ("len", c_ssize_t), ("itemsize", c_ssize_t),
                ("readonly", c_int), ("ndim", c_int), ("format", c_void_p), ("shape", c_void_p),
                ("strides", c_void_p), ("suboffsets", c_void_p), ("internal", c_void_p)]


_get_buffer = ctypes.PYFUNCTYPE(c_int, ctypes.py_object, POINTER(_PyBuffer), c_int)(
    ("PyObject_GetBuffer", ctypes.pythonapi))
_release_buffer = ctypes.PYFUNCTYPE(None, POINTER(_PyBuffer))(
    ("PyBuffer_Release", ctypes.pythonapi))
_view_memory: Callable[[int, int, int], memoryview] = ctypes.PYFUNCTYPE(
    ctypes.py_object, c_void_p, c_ssize_t, c_int)(("PyMemoryView_FromMemory", ctypes.pythonapi))


class _Bytes:
    """The bytes of an object with the buffer protocol, where they lie, until release()."""

    def __init__(self, source: Buffer, writable: bool = False) -> None:
        self._buffer = _PyBuffer()
        _get_buffer(source, self._buffer, 1 if writable else 0)  # which wants them contiguous
        self.p: Optional[int] = self._buffer.buf
        self.len: int = self._buffer.len

    def release(self) -> None:
        _release_buffer(self._buffer)

    def __enter__(self) -> _Bytes:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _view(p: Optional[int], length: int, writable: bool) -> memoryview:
    """A memoryview onto memory of C."""
    return _view_memory(p, length, 0x200 if writable else 0x100) if p else memoryview(b"")


def _word(value: Word) -> int:
    if isinstance(value, float):
        return int(struct.unpack("<Q", struct.pack("<d", value))[0])
    number = operator.index(value)
    if not -(1 << 63) <= number < 1 << 64:
        raise OverflowError(f"{number} does not fit into a word of 64 bits")
    return number & ID_ANY


def _words(values: Tuple[Word, ...]) -> ctypes.Array[c_uint64]:
    return (c_uint64 * len(values))(*[_word(v) for v in values])
