#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: LABELS once
# docs/papers.md is true to the tree: what it names exists, what it calls built names a test, and
# the papers' primitives are found in it. PAGE=FILE reads another page.
set -uo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
fail() {
	echo "    failed: $1"
	failed=$((failed + 1))
}
page=${PAGE:-docs/papers.md}

# The rows, STATUS|IN THE PAPER|IN TERN|TEST, of the tables that have a status.
awk -F' *[|] ?' '/^[|] in the paper / { on = 1; next }
	!/^[|]/ { on = 0 }
	on && !/^[|]---/ { sub(/ +$/, "", $5); print $3 "|" $2 "|" $4 "|" $5 "|" NF }' \
	"$page" >"$folder/rows"
found() { grep -oP "$1" "$page" | sort -u; } # PATTERN: what of the page is like this

echo "every row has four columns and a status, and says how or why"
(($(wc -l <"$folder/rows") >= 200)) || fail "the tables were not read"
while IFS='|' read -r status what tern test columns; do
	((columns == 6)) || fail "$what: $((columns - 2)) columns"
	[[ $status =~ ^(built|mapped|left\ out)$ ]] || fail "$what: status '$status'"
	[[ $tern || $what == *"related work"* ]] ||
		fail "$what: it does not say how, or why not"
	[[ $test || $status != built ]] || fail "$what: built, and no test is named"
	[[ -z $test || $test =~ ^(\`[a-z0-9_/]+_test:\ [^\`]+\`(,\ )?)+$ ]] ||
		fail "$what: no test is written so: $test"
done <"$folder/rows"

echo "every test exists, and has the words"
while IFS=: read -r test words; do
	sources=("$test".[cs]*) words=${words# }
	[[ -e ${sources[0]} ]] || {
		fail "there is no $test"
		continue
	}
	[[ ! $words =~ ^[a-z0-9_A-Z]+$ || ! ${sources[0]} == *.c ]] ||
		! grep -q '^TEST(' "${sources[0]}" || words="TEST($words)"
	grep -qF -- "$words" "${sources[0]}" || fail "${sources[0]} has not: $words"
done < <(cut -d'|' -f4 "$folder/rows" | grep -oP '`\K[a-z0-9_/]+_test: [^`]+' | sort -u)

echo "every function and type is in a header, or is a man page"
cat include/tern/*.h | grep -oE '\btern_[a-z0-9_]+' | sort -u >"$folder/names"
for name in $(found '\btern_[a-z0-9_]+\b(?!\()'); do
	grep -qx "$name" "$folder/names" || fail "no header has $name"
done
for name in $(found '\btern[-_a-z0-9]*\([1-7]\)'); do
	[[ -e man/${name%(*}.${name: -2:1} ]] || fail "there is no page $name"
done

echo "every constant and setting exists"
cat include/tern/*.h src/base/setting.c | grep -oE '\bTERN_[A-Z0-9_]+' | sort -u >"$folder/words"
for name in $(found '\bTERN_[A-Z0-9_]+\b'); do
	grep -qx "$name" "$folder/words" || fail "there is no $name"
done
for word in $(found '\bTERN_FLOW=\K[a-z]+'); do
	grep -qw -- "$word" man/tern-net.7 || fail "tern-net(7) knows no TERN_FLOW=$word"
done

echo "every file and decision exists"
pattern='\b(src|tests|scripts|models|examples|apps|docs|man)/[A-Za-z0-9_/.-]+\.[a-z0-9]+\b'
for path in $(found "$pattern"); do
	[[ -e $path ]] || fail "there is no $path"
done
for header in $(found '`\Ktern/[a-z]+\.h'); do
	[[ -e include/$header ]] || fail "there is no $header"
done
for number in $(found '\bdecision \K[0-9]+'); do
	grep -q "^\*\*$number\. " docs/decisions.md || fail "there is no decision $number"
done

echo "every command, option, test and operation exists"
"$TERN_BIN/tern" --help >"$folder/help" 2>&1
"$TERN_BIN/tern" perf --list 2>/dev/null | cut -d' ' -f1 >"$folder/perf"
"$TERN_BIN/tern" cost --list 2>"$folder/lacks" | cut -d' ' -f1 >"$folder/cost"
commands=0
while read -r line; do
	read -ra word <<<"$line"
	commands=$((commands + 1))
	grep -q "^  ${word[1]} " "$folder/help" || {
		fail "there is no command tern ${word[1]}"
		continue
	}
	help=$("$TERN_BIN/tern" "${word[1]}" --help 2>&1)
	[[ $help != *"was built without"* ]] || continue
	for ((i = 2; i < ${#word[@]}; i++)); do
		[[ ${word[i]} == --* ]] || continue
		grep -q -- "^  ${word[i]} " <<<"$help" || fail "$line: no option ${word[i]}"
		[[ ${word[i]} == --test || ${word[i]} == --operation ]] || continue
		[[ ${word[1]} != cost ]] || ! grep -q "was built without" "$folder/lacks" || continue
		for name in ${word[i + 1]//,/ }; do
			grep -qx -- "$name" "$folder/${word[1]}" ||
				fail "$line: there is no $name"
		done
	done
done < <(found '`\Ktern [^`]+')
((commands >= 20)) || fail "only $commands commands were found"

echo "the papers' primitives are found by a search"
primitives='AMsend AMreply AMrecv AMsendBuf AMreplyBuf AMhandler AMdisable AMenable AMflags
inHandler inCritical msgPending RetPC RetPSW CMAM_4 CMAM_reply_4 CMAM_handler CMAM_poll
CMAM_request_poll CMAM_reply_poll CMAM_wait CMAM_open_segment CMAM_shorten_segment
CMAM_xfer_4i CMAM_xfer CMAM_reply_xfer_4i CMAM_reply_xfer CMAM_got_left CMAM_got_right
CMAM_handle_req fetch_add_initiate fetch_add_complete createThread parExecute getBlock
sendDataIntValue sendDataFloatValue sendDataBlock sendDataBlockNB SCMPSendInt SCMPSendFloat
SCMPSend SCMPSendNB SCMPPollSend SCMPWaitSend SCMPClearSend SCMPReceive SCMPReceiveNB
SCMPPollReceive SCMPWaitReceive SCMPClearReceive sendh send send2 sende send2e sendm sendme
ldss ldsr str rms rmr bufalloc senddone receive MID INIT_SUCCESS INIT_RETRY INIT_FAIL
fastmemcpy Send Receive IsInformation previous_chain node_list internal is_more AM_asynch
AM_data_put AM_data_get AM_comm_proc pipe_create pipe_put_float pipe_get_float pipe_kill
Remote_read_asynch Remote_write_asynch comm_proc csend isend CMAM_handle_left
CMAM_handle_left_xfer CMAM_xfer_N'
for name in $primitives; do
	grep -qE "\`$name[\`(]" "$page" || fail "it has no $name"
done

((failed == 0)) || echo "$failed failed"
exit $((failed > 0))
