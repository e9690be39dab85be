/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz: libFuzzer's entry point, and the check that a target fails with. */
#ifndef WEIR_FUZZ_FUZZ_H
#define WEIR_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Like assert, but checked in every build. */
#define MUST(expr)                                                                                 \
	do {                                                                                       \
		if (!(expr)) {                                                                     \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #expr);         \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

#endif
