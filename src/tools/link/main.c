/* SPDX-License-Identifier: BSD-3-Clause */
/* The program tern-link: see boot/link/link.h. */
#include "boot/link/link.h"

int main(void)
{
	return link_main();
}
