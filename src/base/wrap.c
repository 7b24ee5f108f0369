/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads TERN_WRAP, and says where a number starts. */
#include "base/wrap.h"

#include <errno.h>
#include <stdatomic.h>

#include "base/error.h"
#include "base/setting.h"

#ifdef TERN_WRAP_START
/*
 * A quarter of the narrowest number, which has 16 bits: within half of one, later and earlier can
 * be told apart.
 */
enum { WRAP_MOST = 1 << 14 };
#endif

int wrap_judge(void)
{
	uint64_t distance;
	int rc = setting_number(SETTING_WRAP, &distance);
	if (rc || !distance)
		return rc;
#ifdef TERN_WRAP_START
	if (distance <= WRAP_MOST)
		return 0;
	return error_set(-EINVAL, "TERN_WRAP is %s; it can be 1 to %d, or 0",
			 setting_text(SETTING_WRAP), WRAP_MOST);
#else
	return error_set(
		-EINVAL,
		"TERN_WRAP is %s, but this build starts no number near its wrap: configure it "
		"with the "
		"preset debug, or unset TERN_WRAP",
		setting_text(SETTING_WRAP));
#endif
}

#ifdef TERN_WRAP_START
uint64_t wrap_distance(void)
{
	uint64_t distance;
	return wrap_judge() == 0 && setting_number(SETTING_WRAP, &distance) == 0 ? distance : 0;
}

uint64_t wrap_first(unsigned bits, uint64_t usual)
{
	uint64_t distance = wrap_distance();
	return distance ? (UINT64_C(1) << bits) - distance : usual;
}

uint64_t wrap_clock(uint64_t now)
{
	enum { TICKS = 256 };          /* of the clock, while one of other numbers is used */
	static _Atomic uint64_t began; /* seq_cst: this is for debug builds */
	uint64_t nobody = 0;
	atomic_compare_exchange_strong(&began, &nobody, now);
	uint64_t distance = wrap_distance();
	return distance ? (UINT64_C(1) << 32) - distance * TICKS - began : 0;
}
#endif
