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
import errno
import itertools
import os
import sys
from collections import deque
from contextlib import contextmanager, suppress
from ctypes import (Structure, addressof, byref, c_double, c_int, c_size_t, c_uint32,
                    c_uint64, c_void_p)
from threading import get_ident
from typing import (Any, Callable, Deque, Dict, Iterator, List, NoReturn, Optional, Tuple, TypeVar,
                    overload)

from tern_base import *

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
        _checked(_tern.tern_open(byref(t), byref(options)))
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
        _checked(_tern.tern_close(self._t))
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
        return _checked(call(*args))

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
    @staticmethod
    def _made(make: Callable[..., object], call: Any, length: int, *args: Any) -> memoryview:
        p = c_void_p()
        make(call, length, *args, byref(p))
        return _view(p.value, length, True)

    def alloc(self, length: int) -> memoryview:
        """Memory of this rank's heap, which other ranks can reach; cast() it to other types."""
        return self._made(self._make, _tern.tern_alloc, length)

    def alloc_aligned(self, length: int, align: int) -> memoryview:
        """The same, aligned to a power of two; the length is a multiple of it."""
        return self._made(self._make, _tern.tern_alloc_aligned, length, align)

    def alloc_all(self, length: int) -> memoryview:
        """The same at every rank, at the same offset; every rank calls it."""
        return self._made(self._together, _tern.tern_alloc_all, length)

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

    def put_signal(self, dst: int, src: Buffer, word: int, what: Amo, value: Word) -> None:
        """Puts the data, then does `what` on the word, an address; that wakes wait_word() there."""
        with _Bytes(src) as b:
            change = byref(_Change(word, what, _word(value)))
            self._do(_tern.tern_put_signal_start, dst, b.p, b.len, change, None)

    def put_signal_start(self, dst: int, src: Buffer, word: int, what: Amo, value: Word,
                         op: Optional[Op] = None) -> Op:
        b = _Bytes(src)
        change = byref(_Change(word, what, _word(value)))
        return self._start(op, b, _tern.tern_put_signal_start, dst, b.p, b.len, change)

    def _wait_on(self, call: Any, memory: Buffer, *args: Any) -> None:
        with _Bytes(memory) as b, self._unended():
            self._make(call, b.p, *args)

    def wait_word(self, word: Buffer, what: Compare, value: Word) -> None:
        """Serves messages until the word, 8 bytes of alloc() or alloc_all(), compares so."""
        self._wait_on(_tern.tern_wait_word, word, what, _word(value))

    def wait_word_for(self, word: Buffer, what: Compare, value: Word, ns: int) -> None:
        """For at most so many nanoseconds: then Error with ETIMEDOUT."""
        self._wait_on(_tern.tern_wait_word_for, word, what, _word(value), ns)

    # Locks: LOCK_BYTES of alloc_all(), which are zero while nobody has the lock
    def lock_take(self, lock: Buffer) -> None:
        """Waits until this rank has it, and serves messages meanwhile."""
        self._wait_on(_tern.tern_lock_take, lock)

    def lock_try(self, lock: Buffer) -> bool:
        """Whether this rank has it now; does not wait for others to release it."""
        try:
            self._wait_on(_tern.tern_lock_try, lock)
        except Error as e:
            if e.errno == errno.EAGAIN:
                return False
            raise
        return True

    def lock_release(self, lock: Buffer) -> None:
        self._wait_on(_tern.tern_lock_release, lock)

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
