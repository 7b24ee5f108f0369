#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: RUN_SERIAL TIMEOUT 240
# `tern report`: the runs, what is kept of them, and the page, opened in a browser where there is
# one. Never how fast anything was.
command=report
. tests/lib/frame.sh

data=$folder/data page=$folder/page.html
report() { run --data "$data" --output "$page" --quick "$@"; }
check_page() { grep -qE -- "$1" "$page" || fail "no line of the page matches: $1"; }
count_page() { # HOW MANY TEXT
	local n
	n=$(grep -oF -- "$2" "$page" | wc -l)
	[[ $n == "$1" ]] || fail "the page has $2 $n times, not $1"
}
well_formed() {
	grep -qE '(src|href)="[^#]|@import|url\(|<script' "$page" && fail "it needs something else"
	grep -qE '[^a-z](nan|inf)[^a-z]' "$page" && fail "there is a number that is none"
	if command -v xmllint >/dev/null; then
		xmllint --noout "$page" 2>>"$err" || fail "it is not well formed"
	fi
}
few=(--only bounce,lu,fft-rate -n 1,2 --sim 1,4)

sentence "a run for each number of ranks on each machine, a line for each, and a page"
report "${few[@]}"
check_status 0
check_quiet
for line in logp 'logp of cm5' 'fft, 2 ranks' 'fft, 4 ranks of cm5' 'lu, 1 rank' \
	'lu, 2 ranks' 'lu, 1 rank of scmp' 'lu, 4 ranks of scmp' 'bounce, 2 ranks' \
	'bounce, 2 ranks of ipsc860'; do
	count_out 1 "^ +[0-9]+/10 +$line +[0-9.]+ s\$"
done
check_out "^$page: 10 runs, 0 failed\$"
well_formed

sentence "every figure names the paper's figure and has its data, and those only that were asked for"
count_page 3 '<figure id='
count_page 3 'Answers: '
check_page 'Answers: SCMP \(Lewis, 2004\), figure 6.6\.'
check_page 'Answers: .*figure 4-27\.'
count_page 6 '<details class="data">'
count_page 6 '<svg '
check_page "<code>tern run -n 2 [^ ]*/apps/lu --json"
check_page "<code>tern sim -n 4 --profile scmp [^ ]*/apps/lu --json"
check_page '^ +\{.*&quot;variant&quot;: &quot;rendezvous&quot;'

sentence "what was measured stands beside what was predicted, and what the paper has"
check_page 'dashed: predicted'
check_page 'polyline class="c0 dashed"'
check_page 'polyline class="ideal"'
check_page 'dotted: ideal'
check_page 'receive, paper: 70 us'

sentence "a report is resumed: what is kept is not run again, what is missing is"
rm "$data/lu-2.json"
report "${few[@]}"
check_status 0
count_out 9 ' s  kept$'
count_out 1 'lu, 2 ranks .* s$'

sentence "another command is run, although there is a file; and with --fresh all of them"
sed -i 's/--size 256/--size 255/' "$data/lu-1.json"
printf '{"command": "tern' >"$data/lu-2.json" # as if it had been cut off
report --only lu -n 1,2 --sim none
check_status 0
count_out 2 'lu, [12] ranks? .* s$'
report --only lu -n 1,2 --sim none
count_out 2 ' s  kept$'
report --only lu -n 1,2 --sim none --fresh
count_out 0 kept

sentence "what was built again since, or measured on another machine, is run again"
mkdir "$folder/built"
cp "$TERN_BIN/apps/lu" "$folder/built"
built=(--apps "$folder/built" --only lu -n 2 --sim 4)
report "${built[@]}"
report "${built[@]}"
count_out 2 ' s  kept$'
echo "another build" >>"$folder/built/lu" # behind what is loaded: it still runs
report "${built[@]}"
check_status 0
count_out 0 kept
sed -i 's/"machine": "[^"]*"/"machine": "an abacus"/' "$data/lu-2.json"
report "${built[@]}"
count_out 1 'lu, 2 ranks .* s$'
count_out 1 'lu, 4 ranks of scmp .* s  kept$' # a simulated machine is the same anywhere

sentence "a run that fails is named, the others go on, and the status is 1"
mkdir "$folder/apps"
cp "$TERN_BIN/apps/lu" "$folder/apps"
printf '#!/bin/sh\necho "<b>broken</b>: no luck" >&2; exit 3\n' >"$folder/apps/closure"
printf '#!/bin/sh\necho "[1, 2"\n' >"$folder/apps/cg"
chmod +x "$folder"/apps/*
report --apps "$folder/apps" --only cg,closure,lu -n 2 --sim none
check_status 1
count_out 1 'closure, 2 ranks .*failed: <b>broken</b>: no luck'
count_out 1 'cg, 2 ranks .*failed: .*no array of records'
count_out 1 'lu, 2 ranks .* s$'
check_out "3 runs, 2 failed\$"
check_page '2 of the runs failed'
check_page 'Failed: closure, 2 ranks: &lt;b&gt;broken&lt;/b&gt;: no luck'
well_formed
[[ ! -e $data/closure-2.json && ! -e $data/cg-2.json.part ]] || fail "what failed was kept"

sentence "a run with a wrong value says which it is, how to run it again, and leads to its figure"
mv "$folder/apps/lu" "$folder/apps/lu.real"
printf '#!/bin/sh\nexec "%s" --spoil "$@"\n' "$folder/apps/lu.real" >"$folder/apps/lu"
chmod +x "$folder/apps/lu"
wrong='lu, variant [a-z]*: 1 wrong; the first, at rank 0: part\[0\] is [0-9.e-]* and should be [0-9.e-]*'
report --apps "$folder/apps" --only lu -n 2 --sim none
check_status 1
count_out 1 "lu, 2 ranks .*failed: $wrong\$"
count_out 1 "^        tern run -n 2 $folder/apps/lu --json"
check_page "<li><a href=\"#lu\">lu, 2 ranks</a>: $wrong<br/><code>tern run -n 2 "
check_page "Failed: lu, 2 ranks: $wrong<br/><code>tern run -n 2 "
well_formed
mv "$folder/apps/lu.real" "$folder/apps/lu"

sentence "one that does not end is given up"
printf '#!/bin/sh\nsleep 100\n' >"$folder/apps/cg"
report --apps "$folder/apps" --only cg -n 2 --sim none --patience 1
check_status 1
check_out 'failed: it did not end within 1 s'

sentence "peers come from the table of make compare; without it the page says so"
report --only peers,peers-size
check_status 0
count_page 2 'Not measured: '
cat >"$folder/compare.csv" <<-'END'
	operation,ranks,cores,bytes,tern_ns,openmpi_ns,openmpi_setting,openmpi_ratio,ucx_ns,verified
	barrier,2,2,0,228.0,276.0,sm,0.83,,yes
	broadcast,2,2,8,294.0,415.0,sm,0.71,,yes
	broadcast,2,2,4096,1975.0,1958.0,<sm>,1.01,,yes
	broadcast,4,2,8,394.0,515.0,sm,0.76,,yes
	round-trip,2,2,8,450.0,900.0,sm,0.50,620.0,yes
	instructions-send,2,2,8,43.3,542.5,default,0.08,373.8,yes
	start-up,2,2,0,10000000.0,300000000.0,default,0.03,,yes
	gups,2,2,8192,2000000.0,3000000.0,default,0.67,,yes
END
report --only peers,peers-size,peers-instructions,peers-start,peers-programs \
	--peers "$folder/compare.csv"
check_status 0
count_page 0 'Not measured'
check_page 'barrier, Open MPI: 276 ns'
check_page 'broadcast, Tern: 394 ns'
count_page 0 'broadcast, Tern: 294 ns'
check_page 'round-trip, UCX: 620 ns'
check_page 'instructions-send, Open MPI: 54[23](\.5)? instructions'
count_page 0 'instructions-send, Tern: 43.3 ns'
check_page 'start-up 2, Tern: 10 ms'
check_page 'gups, Open MPI: 3 ms'
check_page '&lt;sm&gt;'
well_formed

sentence "what this build cannot count is said, and fails nothing"
report --only cost
check_status 0
if [[ $("$tern" cost --list 2>&1) == *"was built without"* ]]; then
	check_out "^$page: 0 runs, 0 failed\$"
	check_page 'Not measured: this build has no tern cost, without '
else
	check_out "^$page: 1 runs, 0 failed\$"
fi

sentence "wrong options get one sentence and status 2, before anything is run"
refused "'--quik'.*--quick" --quik
refused '-n 0: a whole number' -n 0
refused '--sim 4x: a whole number' --sim 4x
refused 'at most 16 numbers' -n "$(seq -s, 17)"
refused '--only lux: there is no such figure; did you mean lu\?' --only lux
refused "'lu' is not an option" lu
refused 'patience' --patience 0
refused "no program $folder/apps/fft: .make apps. builds" --apps "$folder/apps" --only fft-time
printf 'chart,line,x,y\na,b,1,2\na,b,2\n' >"$folder/points.csv"
refused '--points: .*row 2 is no chart' --points "$folder/points.csv"
refused '--peers: .*No such file' --only peers --peers "$folder/nothing.csv"
refused "--output $folder/no/page: " --only peers --output "$folder/no/page"
refused "--data $folder/no/data: " --only peers --output "$page" --data "$folder/no/data"

sentence "--list has every figure with the paper's figure, --help helps"
run --list
check_status 0
for id in latency bandwidth logp cost matmul matmul-use fft-time neighborhood lu banded gups \
	peers; do
	count_out 1 "^$id +[A-Z]"
done
[[ $(wc -l <"$out") == $((2 * $(grep -c '^[a-z]' "$out"))) ]] || fail "a figure has no paper"
run --help
check_out '^usage: tern report'

sentence "a browser opens the page, light and dark, and finds all pictures"
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
if [[ $browser ]]; then
	report "${few[@]}" >/dev/null
	for mode in --disable-features=None --force-dark-mode; do
		HOME=$folder timeout 200 "$browser" --headless --no-sandbox --disable-gpu $mode \
			--user-data-dir="$folder/profile" --host-resolver-rules='MAP * ~NOTFOUND' \
			--dump-dom "file://$page" >"$folder/dom" 2>"$err" || fail "it ended with $?"
		[[ $(grep -o '<svg ' "$folder/dom" | wc -l) == 6 ]] || fail "pictures are missing"
	done
else
	echo "    skipped: chromium is not installed"
fi
finish
