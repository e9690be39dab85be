/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * embed: a gate in front of a toy server that serves one request a millisecond. Two clients, gold
 * and bronze, are always busy; the gate shares the server 3 to 1. Time is an argument: here it is
 * counted, in a real server it comes from clock_gettime(CLOCK_MONOTONIC).
 *
 *   cc embed.c -o embed $(pkg-config --cflags --libs weir) && ./embed
 */
#include <weir/weir.h>
#include <stdio.h>

#define DEPTH   8       /* requests that each client keeps waiting */
#define SERVICE WEIR_MS /* time that the server needs for one */

int main(void)
{
	/* A gate that counts requests and lets one at a time into the server. */
	struct weir_gate_config config = {.cost = WEIR_UNIT_REQUESTS, .window = 1};
	struct weir_req memory[2][DEPTH] = {0}, *req;
	struct weir_err err = {""};
	struct weir_gate *gate;
	weir_node client[2];

	if (weir_gate_new(&config, &gate) < 0 || weir_gate_add(gate, WEIR_ROOT, &client[0]) < 0 ||
		weir_gate_add(gate, WEIR_ROOT, &client[1]) < 0)
		return 1;
	struct weir_knob knobs[] = {
		{.node = client[0], .kind = WEIR_KNOB_WEIGHT, .value = 3},
		{.node = client[1], .kind = WEIR_KNOB_WEIGHT, .value = 1},
	};
	if (weir_gate_set(gate, 0, knobs, 2, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	/* The caller owns the requests: the gate only links them. */
	for (int i = 0; i < 2 * DEPTH; i++) {
		req = &memory[i / DEPTH][i % DEPTH];
		req->tenant = client[i / DEPTH];
		weir_gate_submit(gate, 0, &req, 1);
	}
	/* The server's loop: get a request, serve it, report it; its client sends the next at once. */
	for (weir_time now = 0; now < 4 * WEIR_SEC; now += SERVICE) {
		if (weir_gate_next(gate, now, &req, 1) == 0)
			continue;
		weir_gate_done(gate, now + SERVICE, &req, 1);
		weir_gate_submit(gate, now + SERVICE, &req, 1);
	}
	for (int i = 0; i < 2; i++) {
		struct weir_gate_stats stats;

		weir_gate_get_stats(gate, 4 * WEIR_SEC, client[i], &stats);
		printf("%s %llu\n", i ? "bronze" : "gold", (unsigned long long)stats.served);
	}
	weir_gate_free(gate);
	return 0;
}
