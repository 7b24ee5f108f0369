# SPDX-License-Identifier: BSD-3-Clause
# Reads samples, sorted by row and then by time: PEER,SETTING,OPERATION,RANKS,BYTES,NS,VERIFIED.
# Takes medians, the best setting of each peer, and writes the table and the CSV file `csv`.
function flush_group(   median, key) {
	if (!n)
		return
	median = n % 2 ? time[(n + 1) / 2] : (time[n / 2] + time[n / 2 + 1]) / 2
	key = peer SUBSEP row
	if (!(key in best) || median < best[key]) {
		best[key] = median
		chosen[key] = setting
	}
	n = 0
}
function text(ns, operation, bytes) {
	if (operation == "rate")
		return sprintf("%.2f M/s", 1000 / ns)
	if (operation ~ /^instructions/)
		return sprintf("%.1f", ns)
	if (operation == "bandwidth")
		return sprintf("%.2f GB/s", bytes / ns)
	if (ns < 10000)
		return sprintf("%.0f ns", ns)
	return ns < 1e7 ? sprintf("%.1f us", ns / 1000) : sprintf("%.1f ms", ns / 1e6)
}
function ns(time) { return time ? sprintf("%.1f", time) : "" }
function amount(bytes) {
	if (bytes >= 1048576)
		return bytes / 1048576 " MiB"
	return bytes >= 1024 ? bytes / 1024 " KiB" : bytes ? bytes " B" : "-"
}
# The keys of a table, as numbers, smallest first; how many.
function sort_keys(table, sorted,   key, i, count) {
	for (key in table) {
		for (i = count++; i > 0 && sorted[i] > key + 0; i--)
			sorted[i + 1] = sorted[i]
		sorted[i + 1] = key + 0
	}
	return count
}
# The columns of a part: the peers that have a row in it.
function heading(part,   i, line) {
	line = sprintf("%-17s %6s  %8s  %10s", "operation", "ranks", "size", "Tern")
	for (i = 1; i <= peers_n; i++)
		if ((part, name[i]) in column)
			line = line sprintf("  %*s %5s", width[i], title[name[i]], "ratio")
	print (headings++ ? "\n" : "") line "  verified"
}
function heading_csv(   i, line) {
	line = "operation,ranks,cores,bytes,tern_ns,tern_setting"
	for (i = 1; i <= peers_n; i++)
		line = line "," name[i] "_ns," name[i] "_setting," name[i] "_ratio"
	print line ",verified" >csv
}
function ratio(own, other) { return own / other < 10 ? sprintf("%.2f", own / other) : \
	sprintf("%.0f", own / other) }
function row_print(part, operation, ranks, bytes,   own, other, i, key, line, record, by) {
	row = operation SUBSEP ranks SUBSEP bytes
	own = best["tern", row]
	line = sprintf("%-17s %5d%s  %8s  %10s", operation, ranks,
		ranks > cores || operation ~ /^crowded/ ? "*" : " ", part == 3 ? bytes : amount(bytes),
		own ? text(own, operation, bytes) : "-")
	record = operation "," ranks "," cores "," bytes "," ns(own) "," \
		(own ? chosen["tern", row] : "")
	for (i = 1; i <= peers_n; i++) {
		key = name[i] SUBSEP row
		other = best[key]
		by = other ? chosen[key] : ""
		if ((part, name[i]) in column)
			line = line sprintf("  %*s %5s", width[i], other ? text(other, operation, bytes) : "-",
				own && other ? ratio(own, other) : "-")
		record = record "," ns(other) "," by "," (own && other ? sprintf("%.4f", own / other) : "")
		if (own && other) {
			compared[name[i]]++
			ahead[name[i]] += own < other
		}
	}
	print line "  " (row in wrong ? "no" : "yes")
	print record "," (row in wrong ? "no" : "yes") >csv
}
BEGIN {
	FS = ","
	title["openmpi"] = "Open MPI"
	title["mpich"] = "MPICH"
	title["ucx"] = "UCX"
	title["libfabric"] = "libfabric"
	title["limit"] = "limit"
	peers_n = split(peers, name, " ")
	for (i = 1; i <= peers_n; i++) {
		if (!(name[i] in title)) # of a folder
			title[name[i]] = name[i]
		width[i] = length(title[name[i]]) > 10 ? length(title[name[i]]) : 10
	}
	order[1] = "round-trip send-receive rate bandwidth put get crowded-round-trip"
	order[1] = order[1] " instructions-send instructions-take"
	order[2] = "start-up barrier crowded-barrier broadcast reduce allreduce allgather alltoall"
	order[3] = "fft neighborhood gups"
	for (part = 1; part in order; part++) {
		n = split(order[part], word, " ")
		for (i = 1; i <= n; i++)
			part_of[word[i]] = part
	}
	n = 0
}
{
	group = $1 FS $2 FS $3 FS $4 FS $5
	if (group != last)
		flush_group()
	last = group
	peer = $1
	setting = $2
	row = $3 SUBSEP $4 SUBSEP $5
	time[++n] = $6
	if ($7 != "yes")
		wrong[row] = 1
	has_ranks[$4] = has_bytes[$5] = seen[row] = column[part_of[$3], $1] = 1
}
END {
	flush_group()
	sort_keys(has_ranks, ranks)
	sizes = sort_keys(has_bytes, bytes)
	heading_csv()
	for (part = 1; part in order; part++) {
		operations = split(order[part], operation, " ")
		if ((part, "tern") in column)
			heading(part)
		for (r = 1; r in ranks; r++)
			for (o = 1; o <= operations; o++)
				for (b = 1; b <= sizes; b++)
					if ((operation[o], ranks[r], bytes[b]) in seen)
						row_print(part, operation[o], ranks[r], bytes[b])
	}
	print ""
	for (i = 1; i <= peers_n; i++)
		if (name[i] != "limit")
			printf "Tern is ahead of %s in %d of %d rows\n", title[name[i]],
				ahead[name[i]], compared[name[i]]
}
