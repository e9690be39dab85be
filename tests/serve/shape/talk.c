/* SPDX-License-Identifier: BSD-3-Clause */
/* talk: usage reaches all other machines of the rack and these only, feedback any machine with the key; what is forged, or from
 * outside of the rack, is counted and not delivered. */
#include "serve/loop/log.h"
#include "serve/shape/talk.h"
#include "test.h"
#include <arpa/inet.h>
#include <errno.h>
#include <unistd.h>

static struct loop *loop;
static char key[64], other_key[64];
static char names[4][32];
static const char *rack[] = {names[0], names[1], names[2]};
static const uint8_t localhost[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};

struct machine {
	struct talk *talk;
	unsigned usages, feedbacks, n;
	size_t from;
	char name[16];
	uint64_t word;
};

static void on_usage(void *arg, size_t machine, const char *name, const uint64_t *words, unsigned n,
	weir_time now)
{
	struct machine *m = arg;

	m->usages++;
	m->from = machine;
	snprintf(m->name, sizeof(m->name), "%s", name);
	m->n = n;
	m->word = n ? words[n - 1] : 0;
}

static void on_feedback(
	void *arg, const uint8_t address[16], const uint64_t *words, unsigned n, weir_time now)
{
	struct machine *m = arg;

	CHECK(memcmp(address, localhost, 16) == 0);
	m->feedbacks++;
	m->word = words[0];
}

static int try_open(struct machine *m, const char *name, const char **machines, size_t n,
	const char *with_key, struct weir_err *err)
{
	struct policy_network net = {
		.rack = "r", .rack_key = with_key, .machines = machines, .n_machines = n};
	struct talk_config c = {.loop = loop,
		.network = &net,
		.machine = name,
		.usage = on_usage,
		.feedback = on_feedback,
		.arg = m};

	*m = (struct machine){0};
	return talk_new(&c, &m->talk, err);
}

static void open_machine(
	struct machine *m, const char *name, const char **machines, size_t n, const char *with_key)
{
	struct weir_err err;

	if (try_open(m, name, machines, n, with_key, &err) < 0)
		FAIL("%s", err.text);
}

static void stop(struct loop_task *t)
{
	loop_stop(loop);
}

/* Deliver all datagrams, and the questions and answers that follow. */
static void settle(void)
{
	struct loop_task t = {.run = stop};

	for (int i = 0; i < 6; i++) {
		loop_post(loop, &t);
		CHECK_INT(loop_run(loop), 0);
	}
}

static void use(struct machine *m, uint64_t word, unsigned n)
{
	uint64_t words[TALK_WORDS];

	for (unsigned i = 0; i < n; i++)
		words[i] = word;
	talk_usage(m->talk, words, n);
	settle();
}

static void in_the_rack(void)
{
	struct machine m[3];
	struct talk_stats s;
	const char *own[3] = {"m0", "m1", "m2"};

	for (int i = 0; i < 3; i++)
		open_machine(&m[i], own[i], rack, 3, key);
	for (size_t i = 0; i < 3; i++)
		CHECK_INT(talk_own(m[i].talk), i);
	use(&m[0], 5, 1); /* the others ask for its presence */
	CHECK_INT(m[1].usages + m[2].usages, 0);
	use(&m[0], 6, TALK_WORDS);
	CHECK(m[1].usages == 1 && m[2].usages == 1 && m[0].usages == 0);
	CHECK(m[1].from == 0 && m[1].n == TALK_WORDS && m[1].word == 6);
	CHECK_STR(m[1].name, "m0");
	talk_stats(m[1].talk, &s);
	CHECK(s.peers.verdicts[PEER_UNPROVEN] == 1 && s.outside == 0);
	use(&m[2], 7, 1);
	use(&m[2], 8, 1);
	CHECK(m[0].usages == 1 && m[0].from == 2 && m[0].word == 8);
	for (int i = 0; i < 3; i++)
		talk_free(m[i].talk);
}

static uint16_t port_of(const char *name)
{
	return (uint16_t)atoi(strrchr(name, ':') + 1);
}

static void feedback(void)
{
	const uint8_t other[16] = {0xfd};
	struct machine a;
	uint64_t word = 99;
	const char *alone[] = {names[0]};

	open_machine(&a, "a", alone, 1, key);
	CHECK_INT(talk_port(a.talk), port_of(names[0]));
	use(&a, 1, 1); /* a rack of one: nobody hears it */
	CHECK_INT(a.usages, 0);
	CHECK_INT(talk_feedback(a.talk, other, &word, 1), -EAFNOSUPPORT);
	talk_free(a.talk);
}

/* Two racks at one port: machines of the network 127. */
static void between_racks(void)
{
	char far[32];
	const char *here[] = {names[0]}, *there[] = {far};
	const uint8_t address[16] = {[10] = 0xff, 0xff, 127, 0, 0, 2};
	struct machine a, b;
	uint64_t word = 7;

	snprintf(far, sizeof(far), "udp:127.0.0.2:%d", port_of(names[0]));
	open_machine(&a, "a", here, 1, key);
	open_machine(&b, "b", there, 1, key);
	for (int i = 0; i < 2; i++) {
		CHECK_INT(talk_feedback(a.talk, address, &word, 1), 0);
		settle();
	}
	CHECK(b.feedbacks == 1 && b.word == 7 && b.usages == 0);
	talk_free(a.talk);
	talk_free(b.talk);
}

static void strangers(void)
{
	struct machine a, outside, forger;
	const char *here[] = {names[0]}, *with_a[] = {names[3], names[0]},
		   *as_1[] = {names[1], names[0]};
	struct talk_stats s;

	open_machine(&a, "a", here, 1, key);
	open_machine(&outside, "b", with_a, 2, key); /* has the key, and is not in a's rack */
	use(&outside, 1, 1);
	use(&outside, 2, 1);
	talk_stats(a.talk, &s);
	CHECK(a.usages == 0 && s.outside == 1);
	open_machine(&forger, "m1", as_1, 2, other_key);
	use(&forger, 1, 1);
	use(&forger, 2, 1);
	talk_stats(a.talk, &s);
	CHECK(a.usages == 0 && s.peers.verdicts[PEER_FORGED] == 2);
	talk_free(a.talk);
	talk_free(outside.talk);
	talk_free(forger.talk);
}

static void refused(void)
{
	const char *nowhere[] = {"udp:192.0.2.1:7100"}, *here[] = {names[0]};
	struct machine a, b;
	struct weir_err err;

	CHECK_INT(try_open(&a, "a", nowhere, 1, key, &err), -EADDRNOTAVAIL);
	CHECK(strstr(err.text, "udp:192.0.2.1:7100"));
	CHECK_INT(try_open(&a, "a", here, 1, "/none", &err), -ENOENT);
	open_machine(&a, "a", here, 1, key);
	CHECK_INT(try_open(&b, "b", here, 1, key, &err), -EADDRINUSE);
	talk_free(a.talk);
}

/* ---- */

static void make_key(char path[64], char c)
{
	char text[32];
	int fd;

	snprintf(path, 64, "/tmp/weir-test-talk-XXXXXX");
	fd = mkstemp(path);
	memset(text, c, sizeof(text));
	CHECK(fd >= 0 && write(fd, text, sizeof(text)) == sizeof(text));
	close(fd);
}

/* Find ports that are free now. */
static void make_names(void)
{
	int fds[4];

	for (int i = 0; i < 4; i++) {
		struct sockaddr_in at = {
			.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
		socklen_t len = sizeof(at);

		fds[i] = socket(AF_INET, SOCK_DGRAM, 0);
		CHECK(bind(fds[i], (struct sockaddr *)&at, sizeof(at)) == 0);
		CHECK(getsockname(fds[i], (struct sockaddr *)&at, &len) == 0);
		snprintf(names[i], sizeof(names[i]), "udp:127.0.0.1:%d", ntohs(at.sin_port));
	}
	for (int i = 0; i < 4; i++)
		close(fds[i]);
}

int main(void)
{
	log_open(LOG_LEVEL_ERROR, LOG_FORM_TEXT);
	make_key(key, 'k');
	make_key(other_key, 'o');
	make_names();
	CHECK_INT(loop_new(&loop), 0);
	RUN(in_the_rack);
	RUN(feedback);
	RUN(between_racks);
	RUN(strangers);
	RUN(refused);
	loop_free(loop);
	unlink(key);
	unlink(other_key);
	return 0;
}
