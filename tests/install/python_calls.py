# SPDX-License-Identifier: BSD-3-Clause
"""Every call of bindings/python, at any number of ranks; tests/install/python_test.sh starts it."""
import array
import errno
import mmap
import sys
import tempfile
import threading
from typing import Any, Callable, List, Type

import tern

ECHO, ECHOED, FAIL, COUNT, KEEP, LEAK, FORWARD, CALL = range(8)


class Failed(Exception):
    """What the handler FAIL raises."""


class Rank:
    """An endpoint, and what its handlers have seen."""

    def __init__(self, t: tern.Endpoint) -> None:
        self.t, self.next, self.before = t, (t.rank + 1) % t.size, (t.rank - 1) % t.size
        self.flag = tern.Flag()
        self.seen: List[Any] = []
        for id, handler in enumerate((self.echo, self.echoed, self.fail, self.count, self.keep,
                                      self.leak, self.forward)):
            t.on(id, handler)

    def echo(self, m: tern.Message) -> None:
        assert not m.is_reply
        if len(m.data):
            m.reply_data(ECHOED, m.data, *m.words)
        else:
            m.reply(ECHOED, *m.words)

    def echoed(self, m: tern.Message) -> None:
        self.seen.append((m.src, m.words, bytes(m.data)))
        assert m.data.readonly and m.is_reply
        if len(m.words) > 1:
            self.seen.append((m.signed(0), m.double(1)))
        self.t.signal(self.flag)

    def fail(self, m: tern.Message) -> None:
        raise Failed(m.words[0])

    def count(self, m: tern.Message) -> None:
        self.flag.value += 1

    def keep(self, m: tern.Message) -> None:
        self.seen += [m, m.data, bytes(m.data), m.words, m.src]
        self.t.signal(self.flag)

    def leak(self, m: tern.Message) -> None:
        self.seen.append(array.array("B", m.data))
        self.leaked = tern._Bytes(m.data)  # as an array of NumPy would

    def forward(self, m: tern.Message) -> None:
        self.t.defer(self.t.request, self.next, COUNT)


def raises(kind: Type[BaseException], call: Callable[..., Any], *args: Any) -> Any:
    try:
        call(*args)
    except kind as failure:
        return failure
    raise AssertionError(f"{call} did not raise {kind}")


def words_and_payloads_come_back(r: Rank) -> None:
    r.t.request(r.next, ECHO, -5, 2.75)
    r.t.wait(r.flag)
    assert r.seen[1] == (-5, 2.75), r.seen
    r.seen.clear()
    for data in (b"const", bytearray(b"bytes"), memoryview(b"a view")[2:], array.array("d", [1, 2]),
                 bytes(tern.PAYLOAD_MAX)):
        r.t.request_data(r.next, ECHO, data, 7)
        r.t.wait(r.flag)
        assert r.seen.pop() == (r.next, (7,), bytes(data)), data
    r.t.request(r.next, ECHO, *range(tern.WORDS_MAX))
    r.t.wait(r.flag)
    assert r.seen[0][1] == tuple(range(tern.WORDS_MAX))
    raises(OverflowError, r.t.request, r.next, ECHO, 1 << 64)
    raises(BufferError, r.t.request_data, r.next, ECHO, memoryview(b"a view")[::2])


def an_error_has_the_code_and_the_sentence(r: Rank) -> None:
    e = raises(tern.Error, r.t.request, 5000, ECHO)
    assert e.errno == errno.ERANGE and "rank 5000" in e.strerror, e
    e = raises(tern.Error, r.t.request, r.next, ECHO, *range(9))
    assert e.errno == errno.E2BIG, e
    e = raises(tern.Error, r.t.put, r.t.size << 48, b"x")
    assert e.errno == errno.ERANGE and isinstance(e, OSError), e
    with r.t.hold():
        assert raises(tern.Error, r.t.wait, r.flag).errno == errno.EDEADLK


def what_a_handler_raises_is_raised_by_the_call_that_ran_it(r: Rank) -> None:
    t = r.t
    t.request(r.next, COUNT)
    t.wait(r.flag)
    t.barrier()
    with t.hold():
        t.request(t.rank, FAIL, 1)
    assert raises(Failed, t.wait, r.flag, 2).args == (1,)
    assert r.flag.value == 0
    data = bytearray(1)
    op = t.recv_start(data, t.rank, 77)
    raises(BufferError, data.clear)
    with t.hold():
        t.request(t.rank, FAIL, 2)
        t.request(t.rank, FAIL, 3)
    assert raises(Failed, op.wait).args == (2,)
    assert raises(Failed, op.wait).args == (3,)
    t.send(t.rank, 77, b"x")
    op.wait()
    assert data == b"x"
    data.clear()


def messages_are_valid_in_their_handler_only(r: Rank) -> None:
    r.t.request_data(r.next, KEEP, b"kept", 1)
    r.t.wait(r.flag)
    message, data, *rest = r.seen
    assert rest == [b"kept", (1,), r.before]
    raises(ValueError, lambda: message.src)
    raises(ValueError, lambda: data[0])
    r.t.barrier()
    with r.t.hold():
        r.t.request_data(r.t.rank, LEAK, b"leak")
    raises(BufferError, r.t.wait, r.flag)
    r.leaked.release()
    r.t.barrier()
    r.t.request(r.next, FORWARD)
    r.t.wait(r.flag)


def memory_is_shared_and_not_copied(r: Rank) -> None:
    t = r.t
    memory = t.alloc_all(4096)
    mine, theirs = t.address(memory), t.address(memory, r.next)
    seen = t.local(mine, 8)
    assert seen is not None
    seen[7] = 42
    assert memory[7] == 42
    numbers = memory.cast("d")
    numbers[9] = 0.5
    assert memory[72:80].cast("d")[0] == 0.5
    t.barrier()
    t.put(theirs, b"from %d" % t.rank)
    op = t.put_start(theirs + 100, array.array("Q", [t.rank]))
    t.put_start(theirs + 108, bytearray(b"second"), op)
    op.wait()
    t.barrier()
    assert bytes(memory[:8]).startswith(b"from %d" % r.before)
    assert memory[104:112].cast("Q")[0] >> 32 == int.from_bytes(b"seco", "little")
    data = bytearray(6)
    t.get(data, theirs + 108)
    whole = array.array("Q", [9])
    op = t.get_start(whole, theirs + 100)
    while not op.test():
        pass
    assert data == b"second" and whole[0] == t.rank
    raises(BufferError, t.get, b"const", theirs)
    t.barrier()
    t.put_request(theirs + 200, COUNT, b"behind")
    t.wait(r.flag)
    assert bytes(memory[200:206]) == b"behind"
    raises(tern.Error, t.address, bytearray(8))
    t.barrier()
    seen.release()
    numbers.release()
    t.free_all(memory)
    raises(ValueError, lambda: memory[0])


def atomics_and_registered_memory(r: Rank) -> None:
    t = r.t
    memory = t.alloc_all(64)
    memory[:] = bytes(64)
    t.barrier()
    root = t.address(memory, 0)
    t.amo(root, tern.Amo.ADD, 2)
    t.amo(root + 8, tern.Amo.ADD, 0.5)
    t.barrier()
    assert t.amo(root, tern.Amo.OR, 0) == 2 * t.size
    assert t.amo(root + 8, tern.Amo.ADD, 0.0) == 0.5 * t.size
    won = t.cas(root + 16, 0, t.rank + 1) == 0
    assert won == (t.amo(root + 16, tern.Amo.OR, 0) == t.rank + 1)
    private = bytearray(16)
    address = t.register(private)
    raises(BufferError, private.clear)
    memory[24:32].cast("Q")[0] = address
    t.barrier()
    theirs = bytearray(8)
    t.get(theirs, t.address(memory[24:], r.next))
    t.put(int.from_bytes(theirs, "little"), b"registered")
    t.barrier()
    assert private[:10] == b"registered"
    t.unregister(address)
    private.clear()
    files_are_mapped(r, memory)


def files_are_mapped(r: Rank, memory: memoryview) -> None:
    t = r.t
    with tempfile.TemporaryFile() as f:
        f.truncate(2 * mmap.PAGESIZE)
        mine = mmap.mmap(f.fileno(), mmap.PAGESIZE, offset=mmap.PAGESIZE)
        address = t.register(mine, f.fileno(), mmap.PAGESIZE)
    memory[24:32].cast("Q")[0] = address
    t.barrier()
    theirs = bytearray(8)
    t.get(theirs, t.address(memory[24:], r.next))
    t.put(int.from_bytes(theirs, "little"), b"of a file")
    t.barrier()
    assert mine[:9] == b"of a file"
    t.barrier()
    t.unregister(address)
    mine.close()
    t.barrier()


def machines_and_aligned_memory(r: Rank) -> None:
    t = r.t
    assert 1 <= t.machines <= t.size and t.machine(r.next) < t.machines and t.near_is(t.rank)
    page = t.alloc_aligned(8192, 4096)
    with tern._Bytes(page) as b:
        assert b.p is not None and b.p % 4096 == 0
    t.free(page)


def signals_wake_and_locks_exclude(r: Rank) -> None:
    t = r.t
    memory = t.alloc_all(64 + tern.LOCK_BYTES)
    memory[:] = bytes(len(memory))
    word, lock = memory[:8], memory[64:]
    t.barrier()
    theirs, root = t.address(memory, r.next), t.address(memory, 0)
    t.put_signal(theirs + 8, b"data", theirs, tern.Amo.STORE, 1)
    t.wait_word(word, tern.Compare.EQ, 1)
    assert memory[8:12] == b"data"
    t.barrier()
    t.put_signal_start(theirs + 8, b"more", theirs, tern.Amo.ADD, 2).wait()
    t.wait_word_for(word, tern.Compare.GE, 3, 60 * 10**9)
    assert memory[8:12] == b"more"
    late = raises(tern.Error, t.wait_word_for, word, tern.Compare.GT, 3, 1000)
    assert late.errno == errno.ETIMEDOUT
    for _ in range(10):  # not atomic: only the lock makes the sum right
        t.lock_take(lock)
        total = bytearray(8)
        t.get(total, root + 16)
        t.put(root + 16, (int.from_bytes(total, "little") + 1).to_bytes(8, "little"))
        t.lock_release(lock)
    t.barrier()
    assert t.amo(root + 16, tern.Amo.LOAD, 0) == 10 * t.size
    if t.lock_try(lock):
        t.lock_release(lock)
    assert raises(tern.Error, t.lock_release, lock).errno == errno.EPERM
    t.barrier()
    word.release()
    lock.release()
    t.free_all(memory)


def threads_have_workers(r: Rank) -> None:
    t = r.t
    memory = t.alloc_all(64)
    memory[:] = bytes(64)
    ids, root = memory[:8].cast("Q"), t.address(memory, 0)
    called = [tern.Flag(), tern.Flag()]
    failed: List[BaseException] = []

    def call(m: tern.Message) -> None:
        i = m.words[0]
        if not m.is_reply and m.words[1]:
            m.reply(CALL, i, 0)
        else:
            assert m.endpoint is workers[i] or workers[i].id == t.rank
            m.endpoint.signal(called[i])

    def work(i: int) -> None:
        try:
            with workers[i] as w:
                for _ in range(20):
                    w.request(r.next, CALL, i, 1)
                    w.amo(root + 16, tern.Amo.ADD, 1)
                    w.request(their[i], CALL, i, 0)
                w.wait(called[i], 40)
        except BaseException as e:
            failed.append(e)

    t.on(CALL, call)
    workers = [tern.Worker(t) for _ in range(2)]
    for i, w in enumerate(workers):
        memory[8 * i:8 * i + 8].cast("Q")[0] = w.id
    t.barrier()
    theirs = bytearray(16)
    t.get(theirs, t.address(memory, r.next))
    their = array.array("Q", bytes(theirs))
    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    t.detach()
    for thread in threads:
        thread.join()
    t.attach()
    assert not failed, failed
    t.barrier()
    assert t.amo(root + 16, tern.Amo.LOAD, 0) == 40 * t.size
    t.barrier()
    ids.release()
    t.free_all(memory)


def sends_are_received(r: Rank) -> None:
    t = r.t
    op = t.send_start(r.next, 5, b"x" * 100000)
    data = bytearray(100000)
    got = t.recv(data, r.before, 5)
    op.wait()
    assert (got.src, got.id, got.len) == (r.before, 5, 100000) and data == b"x" * 100000
    op = t.send_start(r.next, 0x1234, array.array("d", [0.5]))
    got = t.recv(data, id=0x1200, any=0xff)
    op.wait()
    assert got.id == 0x1234 and got.len == 8 and memoryview(data)[:8].cast("d")[0] == 0.5


def main() -> None:
    with tern.Endpoint() as t:
        rank = Rank(t)
        for check in (words_and_payloads_come_back, an_error_has_the_code_and_the_sentence,
                      what_a_handler_raises_is_raised_by_the_call_that_ran_it,
                      messages_are_valid_in_their_handler_only, memory_is_shared_and_not_copied,
                      atomics_and_registered_memory, machines_and_aligned_memory,
                      signals_wake_and_locks_exclude, threads_have_workers, sends_are_received):
            check(rank)
            assert rank.flag.value == 0, check
            t.barrier()
            rank.seen.clear()
            t.barrier()
    assert raises(tern.Error, t.poll).errno == errno.EBADF
    t.close()
    print("rank", t.rank, "has checked every call")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
