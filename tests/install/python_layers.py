# SPDX-License-Identifier: BSD-3-Clause
"""The calls of tern_chan and tern_coll, at any number of ranks; tests/install/python_test.sh starts it."""
import array
import errno
import sys
from typing import Any, Callable, List, Type

import tern
import tern_chan
import tern_coll
from tern_coll import Reduce

ADD, FAIL = 0, 1


def raises(kind: Type[BaseException], call: Callable[..., Any], *args: Any) -> Any:
    try:
        call(*args)
    except kind as failure:
        return failure
    raise AssertionError(f"{call} did not raise {kind}")


def what_is_put_is_got(t: tern.Endpoint) -> None:
    after, before = (t.rank + 1) % t.size, (t.rank - 1) % t.size
    with tern_chan.Out(t, after, 7) as out, tern_chan.In(t, before, 7) as inside:
        assert out.room(8) and out.try_put_word(t.rank)
        out.put_word(0.5)
        out.put(array.array("d", [1, 2, 3]))
        out.end()
        assert inside.get_word() == before and inside.get_double() == 0.5
        into = array.array("d", bytes(24))
        while not inside.ready(24):
            t.poll()
        inside.get(into)
        assert into == array.array("d", [1, 2, 3])
        assert raises(tern.Error, inside.get_word).errno == errno.ENODATA
        inside.next()
        assert inside.peek() == tern_chan.Kind.NOTHING
        assert inside.try_get_word() is None and not inside.ready(8)
        raises(BufferError, inside.get, b"const")
        e = raises(tern.Error, tern_chan.Out, t, after, 7)
        assert e.errno == errno.EEXIST, e
        t.barrier()
    raises(ValueError, out.put_word, 1)
    t.barrier()


def procedures_run_at_the_receiver(t: tern.Endpoint) -> None:
    sums: List[int] = []
    after, before = (t.rank + 1) % t.size, (t.rank - 1) % t.size

    def fail(_: tern_chan.In) -> None:
        raise KeyError("none")

    tern_chan.on(t, ADD, lambda i: sums.append(i.get_word() + i.get_word()))
    tern_chan.on(t, FAIL, fail)
    out, inside = tern_chan.Out(t, after, 8), tern_chan.In(t, before, 8)
    for id in (ADD, FAIL, ADD):
        out.call(id)
        out.put_word(t.rank)
        out.put_word(10)
        out.end()
    assert tern_chan.wait_any([inside]) == 0
    inside.run()
    inside.next()
    raises(KeyError, inside.run)
    inside.next()
    assert inside.peek() in (tern_chan.Kind.PROCEDURE, tern_chan.Kind.NOTHING)
    inside.run()
    assert sums == [before + 10, before + 10]
    t.barrier()
    out.close()
    inside.close()
    t.barrier()


def one_channel_leads_to_many(t: tern.Endpoint) -> None:
    data, got = bytes(range(256)) * 200, bytearray(256 * 200)
    others = [r for r in range(t.size) if r]
    if t.rank == 0 and others:
        with tern_chan.Out(t, others, 9) as out:
            out.put(data)
            t.barrier()
    elif others:
        with tern_chan.In(t, 0, 9) as inside:
            inside.get(got)
            assert got == data
            t.barrier()
    t.barrier()


def collectives_move_what_they_should(t: tern.Endpoint, team: tern_coll.Team) -> None:
    n, me = team.size, team.rank
    assert (n, me) == (t.size, t.rank) and team.member(n - 1) == n - 1
    raises(IndexError, team.member, n)
    team.barrier()
    root = n - 1
    data = bytearray(b"%04d" % root if me == root else b"none")
    team.broadcast(root, data)
    assert data == b"%04d" % root
    mine, every = array.array("i", [me, -me]), array.array("i", [0] * 2 * n)
    team.allgather(mine, every)
    assert every.tolist() == [v for r in range(n) for v in (r, -r)]
    gathered = array.array("i", [0] * 2 * n)
    team.gather(0, mine, gathered if me == 0 else None)
    assert gathered == every or me != 0
    part = array.array("i", [0, 0])
    team.scatter(0, gathered if me == 0 else None, part)
    assert part == mine
    out = array.array("i", [0] * n)
    team.alltoall(array.array("i", [me * 100 + r for r in range(n)]), out)
    assert out.tolist() == [r * 100 + me for r in range(n)]
    raises(ValueError, team.allgather, mine, part[:0])
    raises(BufferError, team.broadcast, (me + 1) % n if n > 1 else 1, b"const")


def reductions_take_their_type_from_the_buffer(_: tern.Endpoint, team: tern_coll.Team) -> None:
    n, me = team.size, team.rank
    for kind in "bhiqBHIQfd":
        data, out = array.array(kind, [me, 1]), array.array(kind, [0, 0])
        team.allreduce(data, out, Reduce.SUM)
        assert out.tolist() == [n * (n - 1) // 2, n], (kind, out)
        team.reduce(0, data, out if me == 0 else None, Reduce.MAX | Reduce.EXACT)
        assert out.tolist() == [n - 1, 1] or me != 0
    data, out = array.array("d", [0.5]), array.array("d", [-1])
    team.scan(data, out, Reduce.SUM)
    assert out[0] == 0.5 * (me + 1)
    out[0] = -1
    team.exscan(data, out, Reduce.SUM)
    assert out[0] == (0.5 * me if me else -1)
    raises(TypeError, team.allreduce, memoryview(b"xx").cast("c"), bytearray(2), Reduce.SUM)


def collectives_begin_and_end(t: tern.Endpoint, team: tern_coll.Team) -> None:
    n, me = team.size, team.rank
    total, all_in = array.array("q", [0]), array.array("q", [0] * n)
    op = team.allreduce_start(array.array("q", [me]), total, Reduce.SUM)
    assert team.allgather_start(array.array("q", [me]), all_in, op) is op
    op.wait()
    assert total[0] == n * (n - 1) // 2 and all_in.tolist() == list(range(n))
    ops = [team.barrier_start(), team.broadcast_start(0, bytearray(8)),
           team.reduce_start(0, total, array.array("q", [0]), Reduce.MIN),
           team.scan_start(total, array.array("q", [0]), Reduce.MIN),
           team.exscan_start(total, array.array("q", [0]), Reduce.MIN),
           team.gather_start(0, total, all_in), team.scatter_start(0, all_in, total),
           team.alltoall_start(all_in, array.array("q", [0] * n))]
    for op in ops:
        op.wait()
    del ops
    team.quiet()


def lengths_may_differ(_: tern.Endpoint, team: tern_coll.Team) -> None:
    n, me = team.size, team.rank
    mine = bytes([me]) * me or None  # member 0 sends nothing
    parts = [bytearray(r) if r else None for r in range(n)]
    want = [bytes([r]) * r or None for r in range(n)]
    team.allgatherv(mine, parts)
    assert parts == want
    parts = [bytearray(r) if r else None for r in range(n)]
    team.gatherv_start(n - 1, mine, parts).wait()
    assert parts == want or me != n - 1
    own = bytearray(me) if me else None
    team.scatterv(0, want if me == 0 else None, own)
    assert own == mine
    mixed = [bytearray(1 + r) for r in range(n)]
    team.alltoallv([bytes([me]) * (1 + me)] * n, mixed)
    assert mixed == [bytes([r]) * (1 + r) for r in range(n)]
    raises(ValueError, team.allgatherv, mine, [])
    for op in (team.allgatherv_start(mine, parts), team.scatterv_start(0, want, own),
               team.alltoallv_start([None] * n, [None] * n), team.exchange_start([])):
        op.wait()
    ring = tern_coll.Grid(n, [0], [True])
    assert ring.shape == (n,) and ring.coords(me) == (me,) and ring.member([-1]) == n - 1
    got, nobody = bytearray(4), tern_coll.RANK_NONE
    team.exchange([(ring.neighbor(me, 0, 1), b"%04d" % me, ring.neighbor(me, 0, -1), got),
                   (nobody, None, nobody, None)])
    assert got == b"%04d" % ((me - 1) % n)
    raises(tern.Error, tern_coll.Grid, n, [n + 1])


def reductions_take_a_function(_: tern.Endpoint, team: tern_coll.Team) -> None:
    n, me = team.size, team.rank

    def longer(left: memoryview, right: memoryview) -> None:
        left[1:3] = right[1:3]

    last = tern_coll.By(3, longer)
    out = bytearray(6)
    team.allreduce(bytes([me, me, 1]) * 2, out, last)
    assert out == bytes([0, n - 1, 1]) * 2
    counts = [r + 1 for r in range(n)]
    data, part = array.array("q", [1] * sum(counts)), array.array("q", [0] * (me + 1))
    team.reduce_scatter(data, part, counts, Reduce.SUM)
    assert part.tolist() == [n] * (me + 1)
    team.reduce_scatter_start(data, part, counts, Reduce.MAX).wait()
    assert part.tolist() == [1] * (me + 1)
    raises(ValueError, team.reduce_scatter, data, part, counts[:-1] + [n + 7], Reduce.SUM)


def teams_are_split(t: tern.Endpoint, team: tern_coll.Team) -> None:
    half = team.split(t.rank % 2, -t.rank)
    assert half is not None and half.size == (t.size + 1 - t.rank % 2) // 2
    assert half.member(half.size - 1) == t.rank % 2
    count = array.array("i", [0])
    half.allreduce(array.array("i", [1]), count, Reduce.SUM)
    assert count[0] == half.size
    got = bytearray(1)
    t.send(t.rank, half.id(7), b"h")
    t.send(t.rank, team.id(7), b"t")
    assert t.recv(got, t.rank, team.id(0), tern.ID_ANY).id == team.id(7) and got == b"t"
    assert t.recv(got, t.rank, half.id(7)).id == half.id(7) and got == b"h"
    half.free()
    raises(ValueError, half.barrier)
    assert team.split(tern_coll.COLOR_NONE) is None
    last = team.list([t.size - 1])
    assert (last is None) == (t.rank != t.size - 1)
    for other in (last, team.machine(), team.survivors()):
        if other is not None:
            other.free()


def main() -> None:
    with tern.Endpoint() as t:
        for check in (what_is_put_is_got, procedures_run_at_the_receiver,
                      one_channel_leads_to_many):
            check(t)
            t.barrier()
        with tern_coll.Team(t) as team:
            for collective in (collectives_move_what_they_should,
                               reductions_take_their_type_from_the_buffer,
                               collectives_begin_and_end, lengths_may_differ,
                               reductions_take_a_function, teams_are_split):
                collective(t, team)
    print("rank", t.rank, "has checked both layers")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
