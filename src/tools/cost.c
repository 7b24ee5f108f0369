#include "tools/cost_measure.h"
#include "tools/tools.h"
#include <stdio.h>
int cost_main(int argc, char **argv)
{
	char why[300];
	struct cost_map *m = map_open(why, sizeof why);
	if (!m) {
		puts(why);
		return 1;
	}
	for (size_t i = 0; i < operation_count; i++) {
		struct cost_result r;
		if (argc > 1 && operation_named(argv[1]) != &operation_table[i])
			continue;
		int rc = measure(m, &operation_table[i], &r, why, sizeof why);
		if (rc) {
			printf("%s: %d %s\n", operation_table[i].name, rc, why);
			continue;
		}
		printf("%-24s steady %4ld + %4ld (copy %ld+%ld) alone %4ld + %4ld same %d unknown %ld\n",
		       r.op->name, (long)cost_sum(&r.steady, (struct cost_cut){ 0, -1, -1, -1 }),
		       (long)cost_sum(&r.steady, (struct cost_cut){ 1, -1, -1, -1 }), (long)r.steady.copy[0],
		       (long)r.steady.copy[1], (long)cost_sum(&r.alone, (struct cost_cut){ 0, -1, -1, -1 }),
		       (long)cost_sum(&r.alone, (struct cost_cut){ 1, -1, -1, -1 }), r.same,
		       (long)cost_unknown(&r.steady));
		if (argc > 1) {
			struct decoder *d = decoder_open();
			struct cost_site s = { 0 };
			for (unsigned k = 0; k < r.strands; k++)
				for (size_t j = 0; j < r.strand[k].n; j++) {
					char text[DECODED_TEXT];
					struct cost_insn *in = &r.trace.insn[r.strand[k].first + j];
					s = attribute(m, in->at, &s);
					decoder_text(d, in->at, text);
					printf("%s %-40s %s:%d %s %s %s%s\n",
					       cost_side_name[r.strand[k].side], text, s.file, s.line,
					       cost_feature_name[s.feature], cost_step_name[s.step],
					       cost_kind_name[in->kind], s.library ? " lib" : "");
				}
		}
		result_free(&r);
	}
	return 0;
}
