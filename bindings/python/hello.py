# SPDX-License-Identifier: BSD-3-Clause
"""Every rank asks the next one a question, and prints the answer."""
import tern

ASK, TELL = 0, 1

with tern.Endpoint() as t:
    answered = tern.Flag()

    @t.on(ASK)
    def on_ask(m: tern.Message) -> None:
        m.reply(TELL, m.words[0] + 1, 0.5)

    @t.on(TELL)
    def on_tell(m: tern.Message) -> None:
        print(f"rank {t.rank}: rank {m.src} says {m.words[0]} and {m.double(1)}")
        t.signal(answered)

    t.request((t.rank + 1) % t.size, ASK, 41)
    t.wait(answered)
    t.barrier()
