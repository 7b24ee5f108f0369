# SPDX-License-Identifier: BSD-3-Clause
"""Heat in a plate: rows of a grid are dealt to the ranks, which put their edges to each other.

Every rank has two copies of its rows in the heap, each with a row above and one below that belong
to its neighbours: the halo. A step puts the first and the last row into the neighbours' halo,
waits for everybody, and computes the other copy. The result is compared with that of one rank.
"""
from typing import List

import tern

ROWS, COLUMNS, STEPS = 4, 16, 25  # rows of each rank


def start(row: int, column: int) -> float:
    return float((row * 7 + column * 3) % 11)


def step(above: memoryview, here: memoryview, below: memoryview, out: memoryview) -> None:
    """One row of the next step; columns wrap."""
    for c in range(COLUMNS):
        sides = here[c - 1] + here[(c + 1) % COLUMNS]
        out[c] = (above[c] + below[c] + sides) / 4


def rows_of(memory: memoryview) -> List[memoryview]:
    """The rows of a grid as views of their own, which share its memory."""
    cells = memory.cast("d")
    return [cells[i:i + COLUMNS] for i in range(0, len(cells), COLUMNS)]


def serial(rows: int) -> List[memoryview]:
    """All rows after all steps; rows wrap."""
    size = rows * COLUMNS * 8
    now, then = rows_of(memoryview(bytearray(size))), rows_of(memoryview(bytearray(size)))
    for r in range(rows):
        for c in range(COLUMNS):
            now[r][c] = start(r, c)
    for _ in range(STEPS):
        for r in range(rows):
            step(now[r - 1], now[r], now[(r + 1) % rows], then[r])
        now, then = then, now
    return now


def main() -> int:
    with tern.Endpoint() as t:
        size = (ROWS + 2) * COLUMNS * 8
        memory = t.alloc_all(2 * size)
        grid = [rows_of(memory[:size]), rows_of(memory[size:])]
        for r in range(ROWS):
            for c in range(COLUMNS):
                grid[0][r + 1][c] = start(t.rank * ROWS + r, c)
        up, down = (t.rank - 1) % t.size, (t.rank + 1) % t.size
        for s in range(STEPS):
            now, then = grid[s % 2], grid[(s + 1) % 2]
            op = t.put_start(t.address(now[ROWS + 1], up), now[1])
            t.put_start(t.address(now[0], down), now[ROWS], op)
            op.wait()
            t.barrier()  # one is enough: the next step's halo is in the other copy
            for r in range(1, ROWS + 1):
                step(now[r - 1], now[r], now[r + 1], then[r])
        right = serial(ROWS * t.size)[t.rank * ROWS:(t.rank + 1) * ROWS]
        wrong = sum(a != b for a, b in zip(grid[STEPS % 2][1:ROWS + 1], right))
        print(f"rank {t.rank}: {wrong} rows wrong")
        t.barrier()
    return wrong > 0


if __name__ == "__main__":
    raise SystemExit(main())
