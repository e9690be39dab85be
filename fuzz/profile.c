/* SPDX-License-Identifier: BSD-3-Clause */
/* Read any profile: it is refused with a message, or gives every request a finite work of at least 1 ns. */
#include "fuzz.h"
#include "model/estimate.h"
#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const uint32_t sizes[] = {0, 1, 511, 512, 513, 4096, 1u << 20, 5u << 20, UINT32_MAX};
	struct estimate_past past = {0};
	struct estimate e;
	struct weir_err err = {""};

	if (estimate_read((const char *)data, len, "fuzz", &e, &err) < 0) {
		MUST(err.text[0]);
		return 0;
	}
	MUST(e.depth >= 1);
	for (unsigned op = 0; op < 4; op++)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
			double far = estimate_work(&e, NULL, op, 0, sizes[i]);
			double near = estimate_work(&e, &past, op, i << 20, sizes[i]);

			MUST(isfinite(far) && far >= 1 && isfinite(near) && near >= 1);
		}
	return 0;
}
