/* SPDX-License-Identifier: BSD-3-Clause */
/* What is run, and what is drawn. A figure is a row; only a new way to draw needs more. */
#include "lab/report/figure.h"

#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof *(table))

/*
 * Name and program; options here, here with --quick, simulated, and simulated with --quick;
 * machines, counts, tool, logp.
 */
const struct run run_table[] = {
	[RUN_LOGP] = { "logp", "logp", "", "--words 2,4 --bytes 1024,4096,8192 --repeat 15",
		       "--words 2,4 --bytes 1024,4096 --ranks 2 --count 128 --repeat 3",
		       "--words 2,4 --bytes 1024,4096 --ranks 2 --count 128 --repeat 3", NULL,
		       RUN_EVERY, .tool = true },
	{ "latency", "perf",
	  "--test send-overhead,handling-overhead,round-trip,auto-trip,chan-trip,spawn-trip,"
	  "put-start,get-start,add",
	  "--repeat 5 --test send-overhead,handling-overhead,round-trip,auto-trip,chan-trip", NULL,
	  NULL, NULL, RUN_EVERY, .tool = true },
	{ "bandwidth", "perf",
	  "--size 64,512,1024,4096,8192,65536,1048576,16777216 --test payload,put,get",
	  "--repeat 5 --size 64,1024,8192,1048576 --test payload,put,get", NULL, NULL, NULL,
	  RUN_EVERY, .tool = true },
	{ "cost", "cost", "",
	  "--operation block-16-by-4,ordered-16-by-4,block-1024-by-4,ordered-1024-by-4", NULL, NULL,
	  NULL, RUN_EVERY, .tool = true },
	{ "matmul", "matmul", "--rows 128 --columns 2P,4P,8P,16P,32P,64P",
	  "--rows 128 --columns 2P,8P,32P --flops 4000000",
	  "--rows 128 --columns 1P,2P,4P,8P,16P,32P --flops 4000000",
	  "--rows 128 --columns 1P,4P,16P --flops 1000000", "ncube2", RUN_LARGEST, .logp = true },
	{ "transpose", "transpose",
	  "--variant word,row,block,block-naive --rows 256,512,1024,2048 --columns 256",
	  "--variant word,row,block --rows 256,512,1024 --columns 256",
	  "--variant word,row,block --rows 4P,8P,16P --columns 2P",
	  "--variant word,row,block --rows 4P,16P --columns 2P", "ncube2", RUN_LARGEST,
	  .logp = true },
	{ "transpose-ranks", "transpose", "--variant word,row,block --rows 64P --columns 64P",
	  "--variant word,row,block --rows 64P --columns 64P",
	  "--variant word,row,block --rows 4P --columns 4P",
	  "--variant row,block --rows 8P --columns 4P", "ncube2", RUN_EVERY, .logp = true },
	{ "fft", "fft",
	  "--points 1024,4096,16384,65536,262144 --variant "
	  "staggered,naive,synchronised,double,gathered",
	  "--points 1024,4096,16384 --variant staggered,naive,synchronised,double",
	  "--points 4096,16384,65536 --variant staggered,naive,synchronised,double",
	  "--points 1024,4096 --variant staggered,naive,double", "cm5", RUN_LARGEST, .logp = true },
	{ "neighborhood", "neighborhood", "--bits 7,11,15", "--bits 7,11", "--bits 7,11",
	  "--bits 7 --side 64", "scmp", /* send deadlocks on the original: docs/scmp.md */
	  .counts = RUN_EVERY },
	{ "cg", "cg", "", "--rows 2000", "--rows 2000", "--rows 500", "scmp,scmp-original",
	  .counts = RUN_EVERY },
	{ "closure", "closure", "", "--vertices 200", "--vertices 200", "--vertices 100",
	  "scmp,scmp-original", .counts = RUN_EVERY },
	{ "lu", "lu", "", "--size 256", "", "--size 128", "scmp,scmp-original",
	  .counts = RUN_EVERY },
	{ "banded", "banded", "", "", "", "--n 512", "ipsc860", .counts = RUN_LARGEST },
	{ "bounce", "bounce", "", "--bounces 500", "--bounces 100", "--bounces 50", "ipsc860",
	  .counts = RUN_PAIR },
	{ "sparse", "sparse", "", "--rows 5000", "--rows 2000", "--rows 500", "ipsc860",
	  .counts = RUN_EVERY },
	{ "gups", "gups", "", "--updates 20000", "--updates 300", "--updates 200", "cluster",
	  .counts = RUN_EVERY },
	{ "gather", "gather", "", "--words 20000", "--words 300", "--words 200", "cluster",
	  .counts = RUN_EVERY },
	{ "sort", "sort", "", "--keys 20000", "--keys 300", "--keys 200", "cluster",
	  .counts = RUN_EVERY },
	{ "bfs", "bfs", "", "--scale 12", "--scale 9", "--scale 8", "cluster",
	  .counts = RUN_EVERY },
	{ "uts", "uts", "", "--root 500", "--root 500", "--root 100", "cluster",
	  .counts = RUN_EVERY },
};

const size_t run_count = COUNT(run_table);

#define AM "Active Messages (von Eicken, 1993), "
#define SCMP "SCMP (Lewis, 2004), "
#define LOW "Low-latency messages (Rosing and Saltz, 1993), "
#define SPEEDUP \
	.x = "ranks", .y = { "seconds" }, .unit = "speed-up", .as = FIGURE_SPEEDUP, .log = true
#define FLOPS .x = "flop a message", .x_name = "floating-point operations a message"
#define PREDICTED .y = { "seconds", "predicted" }, .y_name = { "measured", "predicted" }
#define STYLES                                                                                   \
	" active: a rank that needs data starts a thread at their owner; else the owner sends. " \
	"The dashed line is ideal."

const struct figure figure_table[] = {
	{ "latency", "Times of messages, beside what the hardware takes without Tern",
	  AM "tables 4-1 and 4-7, figure 4-28; " LOW "section 4",
	  "A limit is measured in the same run, between the same processes.",
	  .group = "Messages beside the machine's limits", .kind = FIGURE_BARS, .only_key = "unit",
	  .only = "ns", .by = "test", .by_too = "size", .y = { "value", "limit" },
	  .y_name = { "Tern", "limit" }, .unit = "ns", .log = true },
	{ "bandwidth", "Bandwidth by size, beside the limit",
	  AM "section 4.2.4.1 (R-infinity and N-half)",
	  "Payloads of messages, and puts and gets. Dashed: memory copied by the same "
	  "processes without Tern.",
	  .only_key = "unit", .only = "GB/s", .by = "test", .x = "size", .x_name = "bytes",
	  .y = { "value", "limit" }, .y_name = { "Tern", "limit" }, .unit = "GB/s", .log = true },
	{ "logp", "LogP parameters of a message of 4 words", AM "tables 4-2, 4-9 and 4-12",
	  "o_s and o_r: overhead of sender and receiver. L: latency. g: gap.", .kind = FIGURE_BARS,
	  .only_key = "parameter size size_unit",
	  .only = "o_s|4|words L|4|words o_r|4|words g|4|words", .by = "parameter",
	  .y = { "value" }, .y_name = { "this run" }, .unit = "ns", .log = true,
	  .told_name = "CM-5, table 4-12",
	  .told = { { "o_s", 1600 }, { "L", 6000 }, { "o_r", 1600 }, { "g", 4000 } } },
	{ "predictions", "What LogP predicts, beside what was measured",
	  AM "sections 4.2.6 and 4.3.6, whose predictions are of this kind",
	  "None of these was used to find the parameters.", .run = "logp", .kind = FIGURE_BARS,
	  .by = "pattern", .by_too = "size", .y = { "value", "predicted" },
	  .y_name = { "measured", "predicted" }, .unit = "ns", .log = true },
	{ "cost", "Instructions for each word of a message, by what they are for",
	  "Software overhead (Karamcheti and Chien, 1994), table 2 and figure 6",
	  "The study's finite and indefinite sequences, in packets of 4 words, with 16 and "
	  "1,024 words of 32 bits: both sides together.",
	  .kind = FIGURE_STACK, .only_key = "operation",
	  .only = "block-16-by-4 ordered-16-by-4 block-1024-by-4 ordered-1024-by-4",
	  .by = "operation",
	  .y = { "*.base", "*.buffer", "*.order", "*.fault", "*.flow", "*.protection",
		 "*.statistics", "cmam" },
	  .y_name = { "base", "buffers", "order", "fault tolerance", "flow control", "protection",
		      "statistics", "CMAM on the CM-5" },
	  .unit = "instructions a word", .per = "words" },
	{ "matmul", "Matrix multiply: computation for each message", AM "figure 4-13",
	  "Dashed: predicted by LogP. With prefetch the next column comes while this one "
	  "is used.",
	  .group = "Active Messages", FLOPS, PREDICTED, .unit = "Mflop/s", .as = FIGURE_RATE },
	{ "matmul-use", "Matrix multiply: use of the processor, and of the network",
	  AM "figure 4-14",
	  "The same runs. Processor: time of computation alone, timed before the round. "
	  "Dashed, network: what one byte takes of LogP's gap, for all that come.",
	  .run = "matmul", FLOPS, .y = { "processor %", "network %" },
	  .y_name = { "processor", "network" }, .unit = "% of the peak" },
	{ "transpose", "Matrix transpose by word, row and block: size of messages",
	  AM "figure 4-15 (a) and table 4-6",
	  "Dashed: predicted by LogP, which knows nothing of contention.", .x = "rows",
	  .x_name = "rows of the matrix", PREDICTED, .unit = "MB/s", .as = FIGURE_RATE,
	  .log = true },
	{ "transpose-ranks", "Matrix transpose with messages of one size: number of ranks",
	  AM "figure 4-16 (a) and table 4-6",
	  "The matrix grows with the ranks. Dashed: predicted by LogP.", .x = "ranks", PREDICTED,
	  .unit = "MB/s", .as = FIGURE_RATE, .log = true },
	{ "fft-time", "FFT: time of computation and of the remap", AM "figure 4-25",
	  "Naive: all ranks send to rank 0 first, then to rank 1. Dashed: computation.",
	  .run = "fft", .only_key = "variant", .only = "staggered naive", .x = "points",
	  .y = { "remap us", "compute us" }, .y_name = { "remap", "computation" }, .unit = "us",
	  .log = true },
	{ "fft-compute", "FFT: computation rate of a rank", AM "figure 4-26", "Without the remap.",
	  .run = "fft", .only_key = "variant", .only = "staggered", .x = "points",
	  .y = { "compute us" }, .y_name = { "measured" }, .unit = "Mflop/s", .scale = 1e-6,
	  .per = "ranks", .as = FIGURE_RATE },
	{ "fft-rate", "FFT: rate of the remap, of a rank, by schedule", AM "figure 4-27",
	  "Synchronised: a barrier after the points for each rank. Double: requests and "
	  "replies in turns, two networks. Dashed: predicted by LogP.",
	  .run = "fft", .x = "points", .y = { "remap MB/s", "predicted remap MB/s" },
	  .y_name = { "measured", "predicted" }, .unit = "MB/s" },
	{ "neighborhood", "Neighborhood stressmark", SCMP "figure 6.2",
	  "Bits of a pixel stand behind the style. The thesis has send ahead by 25.49 % (7 "
	  "bits) and 44.4 % (11 bits) on 64 nodes, 51.02 % (15 bits) on 16." STYLES,
	  .group = "SCMP", .by_too = "bits", SPEEDUP },
	{ "cg", "Matrix stressmark: conjugate gradient", SCMP "figure 6.3",
	  "The thesis has send ahead by 3.21 %." STYLES, SPEEDUP },
	{ "closure", "Transitive closure stressmark", SCMP "figure 6.4",
	  "The thesis has send ahead by 0.9 %." STYLES, SPEEDUP },
	{ "lu", "LU factorisation stressmark", SCMP "figure 6.6",
	  "The thesis has ready mode ahead by 15.06 % and rendezvous by 16.67 %." STYLES, SPEEDUP },
	{ "banded", "Pipelined banded solve: communication and computation for each value",
	  LOW "section 4: 474, 89, 4 and 385 us of communication, 5 of computation",
	  "Time of the last rank.", .group = "Low-latency messages", .kind = FIGURE_BARS,
	  .y = { "communicate ns a value", "compute ns a value" },
	  .y_name = { "communication", "computation" }, .unit = "us", .scale = 1e-3, .log = true,
	  .told_name = "paper, communication",
	  .told = { { "send", 474 }, { "message", 89 }, { "channel", 4 }, { "interrupt", 385 } } },
	{ "bounce", "A message between two ranks, one way",
	  LOW "section 4: 70 us, 130 with a message that arrives early, bare 25",
	  "probe: the message arrives before it is received.", .kind = FIGURE_BARS,
	  .y = { "ns one way" }, .y_name = { "this run" }, .unit = "us", .scale = 1e-3, .log = true,
	  .told_name = "paper",
	  .told = { { "receive", 70 }, { "probe", 130 }, { "message", 25 } } },
	{ "sparse", "Sparse triangular solve with dependencies known at run time",
	  LOW "section 5, which has no figures of its own",
	  "fetch: a value is fetched when its owner has it. schedule: levels were found "
	  "before. The dashed line is ideal.",
	  SPEEDUP },
#define TODAY(name, heading, what, source, amount)                                               \
	{                                                                                        \
		name, what, "none of the five papers: " source,                                  \
			"Messages sent singly, and gathered by destination.",                    \
			.group = heading, .x = "ranks", .y = { "seconds" },                      \
			.y_name = { "measured" }, .unit = amount, .as = FIGURE_RATE, .log = true \
	}
	TODAY("gups", "Fine-grained communication today", "Random updates of a table",
	      "HPC Challenge's RandomAccess", "million updates/s"),
	TODAY("gather", NULL, "Index gather", "bale's index gather", "million words/s"),
	TODAY("sort", NULL, "Bucket sort", "the integer sort of NAS", "million keys/s"),
	TODAY("bfs", NULL, "Breadth-first search of a Kronecker graph", "Graph500",
	      "million edges/s"),
	TODAY("uts", NULL, "Unbalanced tree search with work stealing", "UTS", "million nodes/s"),
#undef TODAY
#define PEERS(what)                                              \
	.y = { "tern_" what, "openmpi_" what,   "mpich_" what,   \
	       "ucx_" what,  "libfabric_" what, "limit_" what }, \
	.y_name = { "Tern", "Open MPI", "MPICH", "UCX", "libfabric", "limit" }
#define MPI_MS                                                                                   \
	.y = { "tern_ns", "openmpi_ns", "mpich_ns" }, .y_name = { "Tern", "Open MPI", "MPICH" }, \
	.unit = "ms", .scale = 1e-6, .log = true
	{ "peers", "Tern beside other libraries: the shortest messages",
	  "none of the five papers: their send and receive is the vendor's",
	  "8 bytes, or none for a barrier, with the most ranks that were measured. Rate: "
	  "time for one message. Crowded: two ranks on one core.",
	  .group = "Peers", .kind = FIGURE_BARS, .only_key = "operation bytes",
	  .only = "round-trip|8 send-receive|8 rate|8 put|8 get|8 crowded-round-trip|8 barrier|0 "
		  "crowded-barrier|0 broadcast|8 reduce|8 allreduce|8 allgather|8 alltoall|8",
	  .by = "operation", PEERS("ns"), .unit = "ns", .log = true, .last = true },
	{ "peers-instructions", "Instructions for a message of 8 bytes",
	  "Software overhead (Karamcheti and Chien, 1994), in whose terms the others are",
	  "Counted by callgrind, in a stream of 32, without waiting.", .kind = FIGURE_BARS,
	  .only_key = "operation", .only = "instructions-send instructions-take", .by = "operation",
	  PEERS("ns"), .unit = "instructions", .log = true },
	{ "peers-start", "Start and end of an empty program", "none of the five papers",
	  "From the start of the launcher to its end: tern run, mpirun. The number of "
	  "ranks stands behind the name.",
	  .kind = FIGURE_BARS, .only_key = "operation", .only = "start-up", .by = "operation",
	  .by_too = "ranks", MPI_MS },
	{ "peers-programs", "The programs, beside versions of them for MPI",
	  "none of the five papers",
	  "The best variant of Tern's, with the most ranks that were measured.",
	  .kind = FIGURE_BARS, .only_key = "operation", .only = "fft neighborhood gups",
	  .by = "operation", MPI_MS, .last = true },
	{ "peers-size", "Tern's time over Open MPI's, by size", "none of the five papers",
	  "Below 1 Tern is ahead. With the most ranks that were measured.", .only_key = "operation",
	  .only = "bandwidth put get broadcast reduce allreduce allgather alltoall",
	  .by = "operation", .x = "bytes", .y = { "openmpi_ratio" }, .unit = "ratio", .log = true },
};

const size_t figure_count = COUNT(figure_table);

const struct run *figure_run(const struct figure *f)
{
	const char *name = f->run ? f->run : f->id;
	for (size_t i = 0; i < run_count; i++)
		if (strcmp(run_table[i].name, name) == 0)
			return &run_table[i];
	return NULL;
}
