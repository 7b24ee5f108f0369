#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: RUN_SERIAL TIMEOUT 240 LABELS once
# The page of tern trace --html, opened offline in a browser: it checks itself when asked to.
set -uo pipefail

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || {
	echo "skipped: chromium is not installed"
	exit 77
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
tern=$TERN_BIN/tern page=$folder/page.html
failed=0
fail() {
	echo "    failed: $1"
	failed=$((failed + 1))
}
make_page() { # RANKS EXAMPLE
	rm -f "$folder"/t.*
	TERN_TRACE=$folder/t timeout 300 "$tern" run -n "$1" "$TERN_BIN/$2" >/dev/null ||
		fail "$2 ended with $?"
	"$tern" trace --html "$page" "$folder/t" || fail "no page of $2"
}
browse() { # FRAGMENT OPTIONS: the page's own account of itself
	HOME=$folder timeout 300 "$browser" --headless --no-sandbox --disable-gpu \
		--user-data-dir="$folder/profile" \
		--host-resolver-rules='MAP * ~NOTFOUND' --window-size=1280,600 "${@:2}" \
		--virtual-time-budget=3000 \
		--dump-dom "file://$page$1" 2>"$folder/err" >"$folder/dom" || {
			tail -3 "$folder/err"
			fail "the browser ended with $?"
		}
	said=$(sed -n 's/.*<pre id="selftest"[^>]*>\([^<]*\).*/\1/p' "$folder/dom")
	echo "    $said"
}

for ranks in 2 4; do
	echo "hello on $ranks ranks: it shows the ranks, zooms, and finds a message and its arrow"
	make_page $ranks hello
	browse '#selftest'
	[[ $said == "passed; $ranks ranks, "*" $((2 * ranks)) messages, $((2 * ranks)) arrows, "* \
		]] || fail "it did not pass"
done

echo "it needs nothing from elsewhere"
grep -nE '(src|href)=|@import|url\(|https?://|fetch\(|XMLHttpRequest' "$page" && fail "it does"

echo "a name that is written like a tag stays a name"
cp "$TERN_BIN/hello" "$folder/<script>x"
rm -f "$folder"/t.*
TERN_TRACE=$folder/t "$tern" run -n 2 "$folder/<script>x" >/dev/null
"$tern" trace --html "$page" "$folder/t"
browse '#selftest'
[[ $said == "passed; 2 ranks, "* ]] || fail "it did not pass"

echo "it shows calls on teams, and light threads in rows of their own"
make_page 2 tally
browse '#selftest'
[[ $said == "passed; 2 ranks, "* ]] || fail "it did not pass"
grep -q '"tern_team_allreduce"' "$page" || fail "no call has its name"
make_page 2 quicksort
browse '#selftest'
[[ $said == "passed; 2 ranks, "* ]] || fail "it did not pass"

echo "it stays quick with 100,000 events, and in dark colours"
make_page 2 pingpong
browse '#selftest' --force-dark-mode
[[ $said == "passed; 2 ranks, "* ]] || fail "it did not pass"
events=$(sed -E 's/.* ([0-9]+) spans, ([0-9]+) messages.*/\1 \2/' <<<"$said" |
	awk '{ print $1 + $2 }')
((events > 100000)) || fail "there are only $events events"
slowest=$(sed -E 's/.*slowest drawing ([0-9]+).*/\1/' <<<"$said")
((slowest < 500)) || fail "a drawing took $slowest ms"

[[ $failed == 0 ]] || echo "$failed failed"
exit $((failed > 0))
