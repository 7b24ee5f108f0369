# SPDX-License-Identifier: BSD-3-Clause
"""Tern for Python: active messages between the ranks of a job, over ctypes.

An Endpoint is a rank's place in the job. A message names the handler that runs where it arrives;
a handler gets a Message, which it may answer once. Data come from and go to any object with the
buffer protocol, and memoryviews lie on messages and on the heap: the module copies nothing.

Every failure of a call is an Error. What a handler raises is raised again by the call that ran it,
or by the endpoint's next call if that one had a result or a thread of the library ran the handler.

The manual of the library, from tern(7) on, says what each call promises.
"""
from __future__ import annotations

import atexit
import ctypes
import ctypes.util
import errno
import itertools
import operator
import os
import struct
import sys
from collections import deque
from contextlib import contextmanager, suppress
from ctypes import (POINTER, Structure, addressof, byref, c_double, c_int, c_int32, c_size_t,
                    c_ssize_t, c_uint32, c_uint64, c_void_p)
from enum import IntEnum
from pathlib import Path
from threading import get_ident
from typing import (Any, Callable, Deque, Dict, Iterator, List, NoReturn, Optional, Tuple, TypeVar,
                    Union, overload)

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
        prefix = Path(__file__).resolve().parent / "../../.."  # of share/tern/python/tern.py
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


def _failure(rc: int) -> Error:
    return Error(-rc, _tern.tern_strerror(rc).decode(errors="replace"))


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


# -- Messages -------------------------------------------------------------------------------------

class Message:
    """A message where it lies, valid in its handler."""
    __slots__ = ("endpoint", "_m", "_words", "_data")

    def __init__(self, endpoint: Endpoint, m: int) -> None:
        self.endpoint = endpoint
        self._m: Optional[int] = m
        self._words: Optional[Tuple[int, ...]] = None
        self._data: Optional[memoryview] = None

    def _here(self) -> int:
        if self._m is None:
            raise ValueError("a message is valid in its handler only")
        return self._m

    @property
    def src(self) -> int:
        return int(_tern.tern_msg_src(self._here()))

    @property
    def is_reply(self) -> bool:
        """Whether it is of the reply class, and cannot be answered."""
        return bool(_tern.tern_msg_is_reply(self.endpoint._t, self._here()))

    @property
    def words(self) -> Tuple[int, ...]:
        """Its words, as unsigned numbers."""
        if self._words is None:
            m = self._here()
            self._words = tuple(_tern.tern_msg_word(m, i) for i in range(_tern.tern_msg_count(m)))
        return self._words

    def signed(self, i: int) -> int:
        word = self.words[i]
        return word - (1 << 64) if word >> 63 else word

    def double(self, i: int) -> float:
        """A word that was given as a float."""
        self.words[i]  # so that an index out of range is an IndexError
        return float(_tern.tern_msg_double(self._here(), i % len(self.words)))

    @property
    def data(self) -> memoryview:
        """The payload, without a copy; released when the handler returns, slices of it are not."""
        if self._data is None:
            length = c_size_t()
            p = _tern.tern_msg_data(self._here(), byref(length))
            self._data = _view(p, length.value, False)
        return self._data

    def reply(self, id: int, *words: Word) -> None:
        """Answers the request from inside its handler, once."""
        w = _words(words)
        self.endpoint._do(_tern.tern_reply_array, self._here(), id, len(w), w)

    def reply_data(self, id: int, data: Buffer, *words: Word) -> None:
        w = _words(words)
        with _Bytes(data) as b:
            self.endpoint._do(_tern.tern_reply_data_array, self._here(), id, b.p, b.len, len(w), w)

    def _end(self) -> None:
        self._m = None
        if self._data is not None:
            self._data.release()  # BufferError if something still uses it


class Op(Structure):
    """A handle for operations under way, any number of them; it keeps their buffers alive."""
    _fields_ = [("pending", c_uint32), ("error", c_int), ("flag", c_void_p),
                ("done", c_void_p), ("arg", c_void_p), ("queued_", c_void_p)]

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._bytes: List[_Bytes] = []
        self.envelope = Envelope()  # of a receive

    def test(self) -> bool:
        """Whether nothing is pending; serves messages once."""
        try:
            return self._endpoint._do(_tern.tern_op_test, byref(self)) > 0
        finally:
            self._settle()

    def wait(self) -> None:
        """Serves messages until nothing is pending."""
        e = self._endpoint
        both = (c_void_p * 2)(addressof(self), addressof(e._trouble))
        try:
            e._do(_tern.tern_op_wait_any, both, 1 if e._inside() else 2, byref(c_size_t()))
        finally:
            self._settle()

    def _settle(self) -> None:
        if self.pending == 0:
            while self._bytes:
                self._bytes.pop().release()
            self._endpoint._ops.pop(id(self), None)


# -- Endpoints ------------------------------------------------------------------------------------

Handler = Callable[[Message], object]
H = TypeVar("H", bound=Handler)
_open: Dict[int, "Endpoint"] = {}
_left: List["Endpoint"] = []  # open, by a failure: the library still has pointers to its handlers


class Endpoint:
    """A rank's place in the job that the environment names; without one, a job of one rank."""

    def __init__(self, delivery: Delivery = Delivery.DEFAULT, spin: int = 0, grace: int = 0,
                 shared: bool = False) -> None:
        t, options = c_void_p(), Options(spin, grace, delivery, 0, shared)
        rc = _tern.tern_open(byref(t), byref(options))
        if rc < 0:
            raise _failure(rc)
        self._begin_with(t.value)
        if _tern.tern_delivery_get(self._t) == Delivery.INTERRUPT:
            self.close()
            raise Error(errno.EINVAL, "handlers in Python cannot run in a signal: choose delivery "
                        "by poll or by thread instead of interrupt")

    def _begin_with(self, t: Optional[int]) -> None:
        self._t = t
        self._callbacks: List[object] = []  # functions and names that the library has pointers to
        self._failed: Deque[BaseException] = deque()  # in handlers, and not raised yet
        self._handling: Optional[int] = None  # the thread that runs a handler or the like
        self._waits: List[Flag] = []
        self._collective = False
        self._trouble = Op(self)  # never over, unless a handler has failed
        self._trouble.pending = 1
        self._ops: Dict[int, Op] = {}  # under way
        self._deferred: Dict[int, Tuple[Callable[..., object], Tuple[Any, ...]]] = {}
        self._keys = itertools.count(1)
        self._run_deferred = _HANDLER(self._call_deferred)
        self._registered: Dict[int, _Bytes] = {}
        self._workers: Dict[int, Worker] = {}
        self.rank: int = _tern.tern_rank(self._t)
        self.size: int = _tern.tern_size(self._t)
        self.machines: int = _tern.tern_machines(self._t)
        _open[id(self)] = self

    def __enter__(self) -> Endpoint:
        return self

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        """Closes, unless a failure leaves the block: then others see a rank fail, not leave."""
        if kind is None or (isinstance(value, SystemExit) and not value.code):
            self.close()
        elif self._t is not None:
            _tern.tern_delivery_set(self._t, Delivery.POLL)  # no handler runs any more
            _left.append(_open.pop(id(self)))

    def close(self) -> None:
        """Leaves the job; a barrier before it makes sure that no message is dropped."""
        if self._t is None:
            return
        rc = _tern.tern_close(self._t)
        if rc < 0:
            raise _failure(rc)
        self._t = None
        _open.pop(id(self), None)
        self._raise()

    def machine(self, rank: int) -> int:
        """The machine that it is on, below `machines`."""
        return int(_tern.tern_machine(self._t, rank))

    def near_is(self, rank: int) -> bool:
        """Whether it shares memory with this one."""
        return bool(_tern.tern_near_is(self._t, rank))

    def attach(self) -> None:
        """Gives the endpoint to the calling thread, and takes it back after detach()."""
        _tern.tern_attach(self._t)

    def detach(self) -> None:
        """Lends it: while this thread computes, or joins others, waits of workers serve it."""
        self._make(_tern.tern_detach)

    def end_on(self, function: Optional[Callable[[int], object]]) -> None:
        """Calls it with the signal when the launcher ends this rank; None: nothing is called."""
        def ended(_: int, signal: int, __: Optional[int]) -> None:
            if function is not None:
                self._run(function, signal)
            sys.stdout.flush()  # the process ends as the signal would have ended it
        callback = _END(ended) if function is not None else None
        self._callbacks.append(callback)
        self._do(_tern.tern_end_on, callback, None)

    def exit(self, status: int = 0) -> NoReturn:
        """Ends the whole job with this status, 0 to 255; from handlers, too."""
        self._leave(_tern.tern_exit, status)

    def abort(self, sentence: str) -> NoReturn:
        """Ends the whole job with status 1, and says why."""
        self._leave(_tern.tern_abort, sentence.encode())

    def _leave(self, call: Any, arg: Any) -> NoReturn:
        sys.stdout.flush()
        sys.stderr.flush()
        self._make(call, arg)
        raise AssertionError("the process has not ended")

    # What calls return, and what handlers raise
    def _do(self, call: Any, *args: Any) -> int:
        rc = self._make(call, *args)
        self._raise()
        return rc

    def _make(self, call: Any, *args: Any) -> int:
        """For a call with a result, which would be lost: the next call raises what handlers do."""
        return self._call(call, self._t, *args)

    def _call(self, call: Any, *args: Any) -> int:
        """The same for a call whose first parameter is something else."""
        self._raise()
        if self._t is None:
            raise Error(errno.EBADF, "the endpoint is closed")
        rc: int = call(*args)
        if rc < 0:
            raise _failure(rc)
        return rc

    def _inside(self) -> bool:
        """Whether this is a handler or a deferred function: what others raise is not for it."""
        return self._handling == get_ident()

    def _raise(self) -> None:
        if not self._failed or self._inside():
            return
        failed = self._failed.popleft()
        self._trouble.pending = 0 if self._failed else 1
        raise failed

    def _fail(self, failed: BaseException) -> None:
        """Ends the wait under way, whose result is that a handler has failed."""
        if self._collective:  # other ranks may wait for what the handler has not done, for ever
            sys.excepthook(type(failed), failed, failed.__traceback__)
            sys.stdout.flush()
            os._exit(1)
        self._failed.append(failed)
        if len(self._failed) == 1:
            self._trouble.pending = 0
            if self._waits:
                _tern.tern_signal(self._t, byref(self._waits[-1]), _ENDED)

    # Handlers
    @overload
    def on(self, id: int) -> Callable[[H], H]: ...
    @overload
    def on(self, id: int, handler: H) -> H: ...

    def on(self, id: int, handler: Optional[Handler] = None) -> Any:
        """Registers a handler; without one, a decorator. Every rank uses the same numbers."""
        if handler is None:
            return lambda h: self.on(id, h)
        given = handler

        def handle(message: Message) -> None:
            try:
                given(message)
            finally:
                message._end()

        name = getattr(handler, "__name__", "")
        text = name.encode() if name.isidentifier() and name.isascii() else None
        def called(t: int, m: int) -> None:
            endpoint = self._workers.get(t, self)
            endpoint._run(handle, Message(endpoint, m))

        callback = _HANDLER(called)
        self._callbacks += [callback, text]
        self._do(_tern.tern_on_with, id, callback, None, text)
        return handler

    def defer(self, function: Callable[..., object], *args: Any) -> None:
        """Calls it where sending is allowed: after the handlers of the poll under way."""
        key = next(self._keys)
        self._deferred[key] = (function, args)
        try:
            self._make(_tern.tern_defer, self._run_deferred, key)
        except BaseException:
            del self._deferred[key]
            raise

    def _run(self, function: Callable[..., object], *args: Any) -> None:
        outer, self._handling = self._handling, get_ident()
        try:
            function(*args)
        except BaseException as failed:
            self._fail(failed)
        self._handling = outer

    def _call_deferred(self, _: int, key: int) -> None:
        function, args = self._deferred.pop(key)
        self._run(function, *args)

    # Sending
    def request(self, dst: int, id: int, *words: Word) -> None:
        w = _words(words)
        self._do(_tern.tern_request_array, dst, id, len(w), w)

    def request_data(self, dst: int, id: int, data: Buffer, *words: Word) -> None:
        """With a payload, up to REQUEST_MAX bytes; `data` is free again on return."""
        w = _words(words)
        with _Bytes(data) as b:
            self._do(_tern.tern_request_data_array, dst, id, b.p, b.len, len(w), w)

    # Progress
    def poll(self) -> int:
        return self._do(_tern.tern_poll)

    def wait(self, flag: Flag, n: int = 1) -> None:
        """Serves messages until the flag is at least n, then takes n off it."""
        if self._inside():
            self._make(_tern.tern_wait, byref(flag), n)
            return
        self._waits.append(flag)
        taken = 0
        try:
            self._make(_tern.tern_wait, byref(flag), n)
            taken = n
        finally:
            self._waits.pop()
            if flag.value >= _ENDED >> 1:  # _fail() ended the wait: the flag is as it was
                with self.hold():
                    flag.value += taken - _ENDED
        self._raise()

    def signal(self, flag: Flag, n: int = 1) -> None:
        _tern.tern_signal(self._t, byref(flag), n)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """No handler runs inside, however messages are delivered."""
        _tern.tern_hold(self._t)
        try:
            yield
        finally:
            _tern.tern_release(self._t)

    @contextmanager
    def _unended(self) -> Iterator[None]:
        """Around a wait that the failure of a handler cannot end: see _fail()."""
        self._raise()
        outer, self._collective = self._collective, True
        try:
            yield
        finally:
            self._collective = outer

    def _together(self, call: Any, *args: Any) -> None:
        """A call that every rank makes."""
        with self._unended():
            self._make(call, *args)

    def barrier(self) -> None:
        self._together(_tern.tern_barrier)

    # Memory
    def alloc(self, length: int) -> memoryview:
        """Memory of this rank's heap, which other ranks can reach; cast() it to other types."""
        p = c_void_p()
        self._make(_tern.tern_alloc, length, byref(p))
        return _view(p.value, length, True)

    def alloc_aligned(self, length: int, align: int) -> memoryview:
        """The same, aligned to a power of two; the length is a multiple of it."""
        p = c_void_p()
        self._make(_tern.tern_alloc_aligned, length, align, byref(p))
        return _view(p.value, length, True)

    def alloc_all(self, length: int) -> memoryview:
        """The same at every rank, at the same offset; every rank calls it."""
        p = c_void_p()
        self._together(_tern.tern_alloc_all, length, byref(p))
        return _view(p.value, length, True)

    def free(self, memory: memoryview) -> None:
        self._do(_tern.tern_free, self._given_back(memory))

    def free_all(self, memory: memoryview) -> None:
        self._together(_tern.tern_free_all, self._given_back(memory))

    @staticmethod
    def _given_back(memory: memoryview) -> Optional[int]:
        with _Bytes(memory) as b:
            p = b.p
        memory.release()  # BufferError if something still uses it
        return p

    def address(self, memory: Buffer, rank: Optional[int] = None) -> int:
        """Where it lies, for other ranks; or the same place at `rank`. Offsets can be added."""
        with _Bytes(memory) as b:
            if rank is not None:
                return int(_tern.tern_addr_at(self._t, rank, b.p))
            a = c_uint64()
            self._make(_tern.tern_addr_of, b.p, byref(a))
        return int(a.value)

    def local(self, address: int, length: int) -> Optional[memoryview]:
        """Memory of another rank of this machine, to be read and written; None if it is not."""
        p = c_void_p()
        try:
            self._make(_tern.tern_addr_local, address, length, byref(p))
        except Error as e:
            if e.errno == errno.EXDEV:
                return None
            raise
        return _view(p.value, length, True)

    def register(self, memory: Buffer, fd: int = -1, offset: int = 0) -> int:
        """Lets other ranks reach it until unregister(): its address. With the descriptor that it
        is mapped from, as an mmap.mmap is, ranks of the machine map it, too."""
        a, b = c_uint64(), _Bytes(memory, True)
        try:
            if fd < 0:
                self._make(_tern.tern_register, b.p, b.len, byref(a))
            else:
                self._make(_tern.tern_register_fd, b.p, b.len, fd, offset, byref(a))
        except Error:
            b.release()
            raise
        self._registered[a.value] = b
        return a.value

    def unregister(self, address: int) -> None:
        self._make(_tern.tern_unregister, address)
        self._registered.pop(address).release()

    def put(self, dst: int, src: Buffer) -> None:
        with _Bytes(src) as b:
            self._do(_tern.tern_put, dst, b.p, b.len)

    def get(self, dst: Buffer, src: int) -> None:
        with _Bytes(dst, True) as b:
            self._do(_tern.tern_get, b.p, src, b.len)

    def put_request(self, dst: int, id: int, src: Buffer, *words: Word) -> None:
        """Puts the data, then sends a request to the same rank."""
        w = _words(words)
        with _Bytes(src) as b:
            self._do(_tern.tern_put_request_array, dst, id, b.p, b.len, len(w), w)

    def _start(self, op: Optional[Op], b: _Bytes, call: Any, *args: Any) -> Op:
        return self._begin(op, [b], call, self._t, *args)

    def _begin(self, op: Optional[Op], buffers: List[_Bytes], call: Any, *args: Any) -> Op:
        op = op if op is not None else Op(self)
        op._bytes += buffers
        self._ops[id(op)] = op
        try:
            self._call(call, *args, byref(op))
        except BaseException:
            op._settle()
            raise
        return op

    def put_start(self, dst: int, src: Buffer, op: Optional[Op] = None) -> Op:
        """Begins it; the buffer belongs to the operation until op.wait()."""
        b = _Bytes(src)
        return self._start(op, b, _tern.tern_put_start, dst, b.p, b.len)

    def get_start(self, dst: Buffer, src: int, op: Optional[Op] = None) -> Op:
        b = _Bytes(dst, True)
        return self._start(op, b, _tern.tern_get_start, b.p, src, b.len)

    @staticmethod
    def _signal(word: int, what: Amo, value: Word) -> Tuple[Any, ...]:
        return byref(_Change(word, what, _word(value))),

    def put_signal(self, dst: int, src: Buffer, word: int, what: Amo, value: Word) -> None:
        """Puts the data, then does `what` on the word, an address; that wakes wait_word() there."""
        with _Bytes(src) as b:
            self._do(_tern.tern_put_signal_start, dst, b.p, b.len,
                     *self._signal(word, what, value), None)

    def put_signal_start(self, dst: int, src: Buffer, word: int, what: Amo, value: Word,
                         op: Optional[Op] = None) -> Op:
        b = _Bytes(src)
        return self._start(op, b, _tern.tern_put_signal_start, dst, b.p, b.len,
                           *self._signal(word, what, value))

    def wait_word(self, word: Buffer, what: Compare, value: Word) -> None:
        """Serves messages until the word, 8 bytes of alloc() or alloc_all(), compares so."""
        with _Bytes(word) as b, self._unended():
            self._make(_tern.tern_wait_word, b.p, what, _word(value))

    def wait_word_for(self, word: Buffer, what: Compare, value: Word, ns: int) -> None:
        """For at most so many nanoseconds: then Error with ETIMEDOUT."""
        with _Bytes(word) as b, self._unended():
            self._make(_tern.tern_wait_word_for, b.p, what, _word(value), ns)

    # Locks: LOCK_BYTES of alloc_all(), which are zero while nobody has the lock
    def lock_take(self, lock: Buffer) -> None:
        """Waits until this rank has it, and serves messages meanwhile."""
        with _Bytes(lock) as b, self._unended():
            self._make(_tern.tern_lock_take, b.p)

    def lock_try(self, lock: Buffer) -> bool:
        """Whether this rank has it now; does not wait for others to release it."""
        try:
            with _Bytes(lock) as b, self._unended():
                self._make(_tern.tern_lock_try, b.p)
        except Error as e:
            if e.errno == errno.EAGAIN:
                return False
            raise
        return True

    def lock_release(self, lock: Buffer) -> None:
        with _Bytes(lock) as b, self._unended():
            self._make(_tern.tern_lock_release, b.p)

    def amo(self, address: int, what: Amo, operand: Word) -> Word:
        """One atomic operation, on a double if the operand is a float: the value before."""
        if isinstance(operand, float):
            was = c_double()
            self._make(_tern.tern_amo_double_, address, what, operand, byref(was), None)
            return was.value
        old = c_uint64()
        self._make(_tern.tern_amo64_, address, what, _word(operand), byref(old), None)
        return old.value

    def cas(self, address: int, expected: int, desired: int) -> int:
        """Stores `desired` if `expected` is there: the value before."""
        old = c_uint64()
        self._make(_tern.tern_cas64_, address, _word(expected), _word(desired), byref(old), None)
        return old.value

    # Send and receive
    def send_start(self, dst: int, id: int, data: Buffer, flags: int = 0,
                   op: Optional[Op] = None) -> Op:
        b = _Bytes(data)
        return self._start(op, b, _tern.tern_send_start, dst, id, b.p, b.len, flags)

    def recv_start(self, data: Buffer, src: int = RANK_ANY, id: int = 0, any: int = 0) -> Op:
        """`any` has the bits in which the id may differ. op.envelope tells what has come."""
        b, op, match = _Bytes(data, True), Op(self), Match(src, 0, id, any)
        return self._start(op, b, _tern.tern_recv_start, byref(match), b.p, b.len,
                           byref(op.envelope))

    def send(self, dst: int, id: int, data: Buffer) -> None:
        self.send_start(dst, id, data).wait()

    def recv(self, data: Buffer, src: int = RANK_ANY, id: int = 0, any: int = 0) -> Envelope:
        op = self.recv_start(data, src, id, any)
        op.wait()
        return op.envelope


class Worker(Endpoint):
    """An endpoint for one thread of the rank, which has its handlers: messages, memory, atomics.

    Its handlers run in its own polls and waits. The first one is opened by the thread that has the
    rank's endpoint. Close it before that one.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        t = c_void_p()
        endpoint._make(_tern.tern_worker_open, byref(t))
        self._begin_with(t.value)
        self._of = endpoint
        self.id: int = _tern.tern_worker_id(self._t)  # by which requests name it as a rank
        if t.value is not None and t.value != endpoint._t:
            endpoint._workers[t.value] = self

    def close(self) -> None:
        self._of._workers.pop(self._t or 0, None)
        super().close()


@atexit.register
def _close_all() -> None:
    """No handler may run when the interpreter is gone."""
    for endpoint in reversed(list(_open.values())):  # workers before their ranks
        with suppress(BaseException):
            endpoint.close()
