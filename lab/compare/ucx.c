/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The back end for UCX: active messages for words, tagged sends and receives for streams, puts and
 * gets. Its handlers may not wait, so rank 1 answers from the loop that makes progress.
 */
#include <string.h>
#include <ucp/api/ucp.h>

#include "pair.h"
#include "peer.h"

enum { WORD_ID = 1, TAG_TRIP = 1, TAG_STREAM };

static ucp_context_h context;
static ucp_worker_h worker;
static ucp_ep_h other;
static ucp_mem_h handle; /* of `memory`, for puts and gets */
static ucp_rkey_h key;   /* of the other rank's, which begins at `theirs` */
static double *memory;
static uint64_t theirs;
static uint64_t taken, last, sum; /* words that came, the last one, and their sum */

static void must(ucs_status_t status, const char *call)
{
	if (status != UCS_OK)
		pair_fail(call, ucs_status_string(status));
}

void pair_progress(void)
{
	if (!ucp_worker_progress(worker))
		pair_idle();
}

static ucs_status_t on_word(void *arg, const void *header, size_t header_len, void *data,
			    size_t len, const ucp_am_recv_param_t *param)
{
	(void)arg, (void)data, (void)len, (void)param;
	memcpy(&last, header, header_len);
	sum += last;
	taken++;
	return UCS_OK;
}

/* Until a started operation is done; NULL: it is. */
static void finish(ucs_status_ptr_t op, const char *call)
{
	if (UCS_PTR_IS_ERR(op))
		must(UCS_PTR_STATUS(op), call);
	if (!op)
		return;
	while (ucp_request_check_status(op) == UCS_INPROGRESS)
		pair_progress();
	must(ucp_request_check_status(op), call);
	ucp_request_free(op);
}

static void worker_open(void)
{
	ucp_params_t params = { .field_mask = UCP_PARAM_FIELD_FEATURES,
				.features = UCP_FEATURE_AM | UCP_FEATURE_TAG | UCP_FEATURE_RMA };
	ucp_worker_params_t single = { .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
				       .thread_mode = UCS_THREAD_MODE_SINGLE };
	ucp_am_handler_param_t word = { .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
						      UCP_AM_HANDLER_PARAM_FIELD_CB,
					.id = WORD_ID,
					.cb = on_word };
	must(ucp_init(&params, NULL, &context), "ucp_init");
	must(ucp_worker_create(context, &single, &worker), "ucp_worker_create");
	must(ucp_worker_set_am_recv_handler(worker, &word), "ucp_worker_set_am_recv_handler");
}

void pair_open(void)
{
	unsigned char card[2048] = { 0 };
	ucp_address_t *address;
	size_t len;
	worker_open();
	must(ucp_worker_get_address(worker, &address, &len), "ucp_worker_get_address");
	if (len > sizeof card)
		pair_fail("ucp_worker_get_address", "the address is longer than 2 KiB");
	memcpy(card, address, len);
	pair_exchange(card, card, sizeof card);
	ucp_ep_params_t to = { .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
			       .address = (const ucp_address_t *)card };
	must(ucp_ep_create(worker, &to, &other), "ucp_ep_create");
	ucp_worker_release_address(worker, address);
}

void pair_close(void)
{
	const ucp_request_param_t plain = { 0 };
	if (memory) {
		ucp_rkey_destroy(key);
		must(ucp_mem_unmap(context, handle), "ucp_mem_unmap");
	}
	finish(ucp_ep_close_nbx(other, &plain), "ucp_ep_close_nbx");
	ucp_worker_destroy(worker);
	ucp_cleanup(context);
}

/* -- Messages ------------------------------------------------------------------------ */

static void word_send(uint64_t word)
{
	const ucp_request_param_t plain = { 0 };
	finish(ucp_am_send_nbx(other, WORD_ID, &word, sizeof word, NULL, 0, &plain),
	       "ucp_am_send_nbx");
}

static void words_await(uint64_t count)
{
	while (taken < count)
		pair_progress();
	taken -= count;
}

uint64_t peer_trips(uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		if (peer_rank() == 0)
			word_send(i);
		words_await(1);
		if (peer_rank() == 1)
			word_send(last + 1);
	}
	uint64_t all = sum;
	sum = 0;
	return all;
}

void peer_words_send(uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		word_send(i);
}

uint64_t peer_words_take(uint64_t count)
{
	words_await(count);
	uint64_t all = sum;
	sum = 0;
	return all;
}

static ucs_status_ptr_t start(int sender, void *data, size_t len, ucp_tag_t tag)
{
	const ucp_request_param_t plain = { 0 };
	return peer_rank() == sender
		       ? ucp_tag_send_nbx(other, data, len, tag, &plain)
		       : ucp_tag_recv_nbx(worker, data, len, tag, (ucp_tag_t)-1, &plain);
}

uint64_t peer_send_trips(uint64_t count)
{
	uint64_t all = 0, word;
	for (uint64_t i = 0; i < count; i++) {
		word = i;
		finish(start(0, &word, sizeof word, TAG_TRIP), "a tagged word");
		word++;
		finish(start(1, &word, sizeof word, TAG_TRIP), "a tagged word");
		all += word;
	}
	return all;
}

void peer_stream(double *data, size_t n, size_t apart, size_t places, uint64_t count)
{
	ucs_status_ptr_t op[PEER_WINDOW] = { 0 };
	for (uint64_t i = 0; i < count; i++) {
		finish(op[i % PEER_WINDOW], "a tagged block");
		op[i % PEER_WINDOW] =
			start(0, data + i % places * apart, n * sizeof *data, TAG_STREAM);
	}
	for (unsigned i = 0; i < PEER_WINDOW; i++)
		finish(op[i], "a tagged block");
}

/* -- Memory of the other rank ---------------------------------------------------------- */

double *peer_memory(size_t bytes)
{
	ucp_mem_map_params_t params = { .field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH |
						      UCP_MEM_MAP_PARAM_FIELD_FLAGS,
					.length = bytes,
					.flags = UCP_MEM_MAP_ALLOCATE };
	ucp_mem_attr_t attr = { .field_mask = UCP_MEM_ATTR_FIELD_ADDRESS };
	unsigned char card[2048] = { 0 };
	void *packed;
	size_t len;
	must(ucp_mem_map(context, &params, &handle), "ucp_mem_map");
	must(ucp_mem_query(handle, &attr), "ucp_mem_query");
	memory = attr.address;
	must(ucp_rkey_pack(context, handle, &packed, &len), "ucp_rkey_pack");
	if (len > sizeof card)
		pair_fail("ucp_rkey_pack", "the key is longer than 2 KiB");
	memcpy(card, packed, len);
	pair_exchange(card, card, sizeof card);
	pair_exchange(&attr.address, &theirs, sizeof theirs);
	must(ucp_ep_rkey_unpack(other, card, &key), "ucp_ep_rkey_unpack");
	ucp_rkey_buffer_release(packed);
	return memory;
}

static uint64_t address(const double *at)
{
	return theirs + (uint64_t)(at - memory) * sizeof *at;
}

void peer_put(double *at, size_t n)
{
	const ucp_request_param_t plain = { 0 };
	finish(ucp_put_nbx(other, at, n * sizeof *at, address(at), key, &plain), "ucp_put_nbx");
	finish(ucp_ep_flush_nbx(other, &plain), "ucp_ep_flush_nbx");
}

void peer_get(double *at, size_t n)
{
	const ucp_request_param_t plain = { 0 };
	finish(ucp_get_nbx(other, at, n * sizeof *at, address(at), key, &plain), "ucp_get_nbx");
}
