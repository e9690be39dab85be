/* SPDX-License-Identifier: BSD-3-Clause */
/* Any text as a scenario: refused with a message, or readable. Running it is the tests' business. */
#include "sim/sim.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct weir_err err = {""};
	struct scenario *scenario = NULL;

	if (scenario_parse((const char *)data, len, "fuzz.yaml", NULL, 0, &scenario, &err) < 0) {
		MUST(!scenario && err.text[0]);
		return 0;
	}
	MUST(scenario_name(scenario) && scenario_about(scenario));
	MUST(scenario_duration(scenario) > 0);
	scenario_free(scenario);
	return 0;
}
