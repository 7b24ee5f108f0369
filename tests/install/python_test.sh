#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 180 LABELS once
# The Python module makes every call that it has, its examples are right, and no failure is lost.
set -uo pipefail

if ! command -v python3 >/dev/null; then
	echo "skipped: python3 is not installed"
	exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
out=$folder/out
failed=0
fail() {
	echo "    $1"
	sed 's/^/    it said: /' "$out" | tail -20
	failed=$((failed + 1))
}
export PYTHONPATH=$PWD/bindings/python PYTHONDONTWRITEBYTECODE=1
export TERN_LIBRARY=$TERN_BIN/../lib/libtern.so
run() { # RANKS PROGRAM: the status goes to $status
	timeout 100 "$TERN_BIN/tern" run -n "$1" python3 "$2" >"$out" 2>&1
	status=$?
}

echo "every file compiles"
for file in bindings/python/*.py tests/install/python_*.py; do
	python3 -c 'import py_compile, sys; py_compile.compile(sys.argv[1], sys.argv[2], doraise=True)' \
		"$file" "$folder/compiled" >"$out" 2>&1 || fail "$file does not"
done
if python3 -c 'import mypy' 2>/dev/null; then
	echo "the types are right"
	python3 -m mypy --strict --cache-dir "$folder/mypy" bindings/python/*.py >"$out" 2>&1 || fail "mypy finds them wrong"
else
	echo "mypy is not installed: the types are not checked"
fi

echo "structures and numbers are those of the headers"
python3 >"$folder/layout.c" - <<'PYTHON'
import ctypes, tern, tern_chan, tern_coll
for header in "chan coll lock send".split():
    print(f"#include <tern/{header}.h>")
def same(c, python):
    print(f'_Static_assert({c} == {python}, "{c}");')
for name in ("Options", "Match", "Envelope", "Op"):
    kind, c = getattr(tern, name), "tern_" + name.lower()
    same(f"sizeof({c})", ctypes.sizeof(kind))
    for field, *_ in kind._fields_:
        same(f"offsetof({c}, {field})", getattr(kind, field).offset)
        same(f"sizeof((({c} *)0)->{field})", getattr(kind, field).size)
for value in tern.Compare:
    same(f"TERN_WORD_{value.name}", int(value))
same("sizeof(tern_lock)", tern.LOCK_BYTES)
for kind in (tern.Delivery, tern.Amo, tern_coll.Reduce, tern_coll.Type):
    for value in kind:
        same(f"TERN_{kind.__name__.upper()}_{value.name}", int(value))
for value in tern_chan.Kind:
    same(f"TERN_CHAN_{value.name}", int(value))
for c in ("tern_out", "tern_in"):
    same(f"sizeof({c})", ctypes.sizeof(tern_chan._End))
    same(f"offsetof({c}, at)", tern_chan._End.at.offset)
    same(f"offsetof({c}, chan)", tern_chan._End.chan.offset)
for c, kind in (("tern_part", tern_coll._Part), ("tern_neighbor", tern_coll._Neighbor),
                ("tern_grid", tern_coll.Grid), ("tern_reduce_op", tern_coll.By)):
    same(f"sizeof({c})", ctypes.sizeof(kind))
    for field, *_ in kind._fields_:
        same(f"offsetof({c}, {field.rstrip('_')})", getattr(kind, field).offset)
same("TERN_COLOR_NONE", tern_coll.COLOR_NONE)
same("TERN_RANK_NONE", str(tern_coll.RANK_NONE) + "u")
for name in ("WORDS_MAX", "PAYLOAD_MAX", "REQUEST_MAX", "HANDLER_MAX", "RANK_ANY", "ID_ANY"):
    same("TERN_" + name, str(getattr(tern, name)) + "u")
PYTHON
"$CC" -std=c11 -Iinclude -fsyntax-only "$folder/layout.c" >"$out" 2>&1 || fail "they are not"

for delivery in poll thread; do
	export TERN_DELIVERY=$delivery
	for ranks in 1 2 5; do
		echo "on $ranks ranks, delivery by $delivery: the examples are right, and every call does what it should"
		run $ranks bindings/python/hello.py
		for ((r = 0; r < ranks; r++)); do
			echo "rank $r: rank $(((r + 1) % ranks)) says 42 and 0.5"
		done >"$folder/expected"
		[[ $status == 0 && $(sort "$out") == "$(sort "$folder/expected")" ]] || fail "hello: status $status"
		run $ranks bindings/python/hashtable.py
		[[ $status == 0 && $(grep -c ' keys here, 0 wrong$' "$out") == "$ranks" ]] || fail "hashtable: status $status"
		run $ranks bindings/python/halo.py
		[[ $status == 0 && $(grep -c ': 0 rows wrong$' "$out") == "$ranks" ]] || fail "halo: status $status"
		run $ranks tests/install/python_calls.py
		[[ $status == 0 && $(grep -c 'has checked every call$' "$out") == "$ranks" ]] || fail "calls: status $status"
		run $ranks tests/install/python_layers.py
		[[ $status == 0 && $(grep -c 'has checked both layers$' "$out") == "$ranks" ]] || fail "layers: status $status"
	done
done

# A handler of rank 1 fails, while that rank is in CALL and rank 0 waits for its answer.
cat >"$folder/failing.py" <<'PYTHON'
import sys
import tern
with tern.Endpoint() as t:
    flag = tern.Flag()
    t.on(0, lambda m: m.reply(1, 1 // m.words[0]))
    t.on(1, lambda m: t.signal(flag))
    if t.rank == 0:
        t.request(1, 0, 0)
        t.wait(flag)
    elif sys.argv[1] == "poll":
        while True:
            t.poll()
    elif sys.argv[1] == "recv":
        t.recv(bytearray(8))
    else:
        t.wait(flag) if sys.argv[1] == "wait" else t.barrier()
PYTHON
for delivery in poll thread; do
	export TERN_DELIVERY=$delivery
	for call in poll wait recv barrier; do
		echo "a handler that fails in $call, delivery by $delivery, ends the job with its exception"
		timeout 100 "$TERN_BIN/tern" run -n 2 python3 "$folder/failing.py" $call >"$out" 2>&1
		status=$?
		[[ $status == 1 ]] || fail "the status was $status"
		grep -q '^ZeroDivisionError: ' "$out" || fail "it did not say which"
		grep -q 'in <lambda>$' "$out" || fail "it did not say where"
	done
done

cat >"$folder/ending.py" <<'PYTHON'
import sys
import tern
with tern.Endpoint() as t:
    t.on(0, lambda m: t.exit(m.words[0]))
    t.barrier()
    if t.rank == 1:
        try:
            t.exit(256)
        except tern.Error as e:
            print(e.strerror)
        if sys.argv[1] == "abort":
            t.abort("the disk is full")
        t.request(1, 0, int(sys.argv[1]))
        t.wait(tern.Flag())
    t.barrier()
PYTHON
for delivery in poll thread; do
	export TERN_DELIVERY=$delivery
	echo "exit() and abort() end the job, delivery by $delivery"
	for word in 0 5 abort; do
		timeout 100 "$TERN_BIN/tern" run -n 3 python3 "$folder/ending.py" $word >"$out" 2>&1
		status=$?
		[[ $status == "${word/abort/1}" ]] || fail "the status was $status"
		grep -q '0 to 255$' "$out" || fail "a status out of range was not refused"
		[[ $word != abort ]] || grep -q 'rank 1 ends the job: the disk is full$' "$out" ||
			fail "it did not say why"
		grep Traceback "$out" && fail "something was raised"
	done
done

cat >"$folder/ended.py" <<'PYTHON'
import tern
with tern.Endpoint() as t:
    t.end_on(lambda signal: print("rank", t.rank, "is ended by", signal))
    t.barrier()
    if t.rank == 1:
        t.exit(5)
    t.wait(tern.Flag())
PYTHON
for delivery in poll thread; do
	echo "a rank that the launcher ends has a last word, delivery by $delivery"
	TERN_DELIVERY=$delivery timeout 100 "$TERN_BIN/tern" run -n 3 python3 "$folder/ended.py" >"$out" 2>&1
	status=$?
	[[ $status == 5 && $(grep -cE '^rank [02] is ended by 15$' "$out") == 2 ]] || fail "status $status"
done

echo "delivery by interrupt is refused, because Python cannot run in a signal"
TERN_DELIVERY=interrupt TERN_SIGNAL=40 python3 bindings/python/hello.py >"$out" 2>&1 && fail "it was not"
grep -q '^tern.Error: .*choose delivery by poll or by thread' "$out" || fail "it said something else"
export -n TERN_DELIVERY

echo "without the library, the module says what to do"
if [[ -z $(ldconfig -p 2>/dev/null | grep libtern) ]]; then
	env -u TERN_LIBRARY python3 -c 'import tern' >"$out" 2>&1 && fail "it did not fail"
	grep -q '^ImportError: libtern.so was not found: .*TERN_LIBRARY' "$out" || fail "it said something else"
fi

echo "the README's program is hello.py"
[[ $(awk '/^```/ { on = /python$/; next } on' bindings/python/README.md) == "$(<bindings/python/hello.py)" ]] ||
	fail "it is another"

[[ $failed == 0 ]] || echo "$failed failed"
exit $((failed > 0))
