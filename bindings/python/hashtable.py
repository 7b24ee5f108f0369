# SPDX-License-Identifier: BSD-3-Clause
"""A hash table over the ranks of a job: a key's rank keeps it, others reach it by requests.

The key is the payload of a request, the value of a put follows it; replies carry what was found.
Every rank puts keys of its own and adds to keys that all ranks share, then reads all of them.
"""
from typing import Dict, Optional
from zlib import crc32

import tern

PUT, ADD, GET, DONE, FOUND = range(5)
KEYS, SHARED = 200, 10


class Table:
    """One rank's part of the table, and calls on the whole of it. One answer is due at a time."""

    def __init__(self, endpoint: tern.Endpoint) -> None:
        self.endpoint = endpoint
        self.part: Dict[bytes, bytes] = {}
        self.counts: Dict[bytes, int] = {}
        self.done = tern.Flag()
        self.found: Optional[bytes] = None
        for id, handler in ((PUT, self.on_put), (ADD, self.on_add), (GET, self.on_get),
                            (DONE, self.on_done), (FOUND, self.on_found)):
            endpoint.on(id, handler)

    def owner(self, key: bytes) -> int:
        return crc32(key) % self.endpoint.size

    def on_put(self, m: tern.Message) -> None:
        length = m.words[0]
        self.part[bytes(m.data[:length])] = bytes(m.data[length:])
        m.reply(DONE)

    def on_add(self, m: tern.Message) -> None:
        key = bytes(m.data)
        self.counts[key] = self.counts.get(key, 0) + m.signed(0)
        m.reply(DONE)

    def on_get(self, m: tern.Message) -> None:
        key = bytes(m.data)
        if key in self.part:
            m.reply_data(FOUND, self.part[key], 1)
        elif key in self.counts:
            m.reply_data(FOUND, str(self.counts[key]).encode(), 1)
        else:
            m.reply_data(FOUND, b"", 0)

    def on_done(self, m: tern.Message) -> None:
        self.endpoint.signal(self.done)

    def on_found(self, m: tern.Message) -> None:
        self.found = bytes(m.data) if m.words[0] else None
        self.endpoint.signal(self.done)

    def put(self, key: bytes, value: bytes) -> None:
        self.endpoint.request_data(self.owner(key), PUT, key + value, len(key))
        self.endpoint.wait(self.done)

    def add(self, key: bytes, n: int) -> None:
        self.endpoint.request_data(self.owner(key), ADD, key, n)
        self.endpoint.wait(self.done)

    def get(self, key: bytes) -> Optional[bytes]:
        self.endpoint.request_data(self.owner(key), GET, key)
        self.endpoint.wait(self.done)
        return self.found


def main() -> int:
    with tern.Endpoint() as t:
        table = Table(t)
        for i in range(KEYS):
            table.put(b"key %d of %d" % (i, t.rank), b"value " * (i % 50) + b"%d" % t.rank)
            table.add(b"shared %d" % (i % SHARED), -i)
        t.barrier()
        wrong = 0
        for rank in range(t.size):
            for i in range(KEYS):
                value = b"value " * (i % 50) + b"%d" % rank
                wrong += table.get(b"key %d of %d" % (i, rank)) != value
        for k in range(SHARED):
            wrong += int(table.get(b"shared %d" % k) or 0) != -sum(range(k, KEYS, SHARED)) * t.size
        wrong += table.get(b"no such key") is not None
        print(f"rank {t.rank}: {len(table.part)} keys here, {wrong} wrong")
        t.barrier()
    return wrong > 0


if __name__ == "__main__":
    raise SystemExit(main())
