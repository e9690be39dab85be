/* SPDX-License-Identifier: BSD-3-Clause */
/* loop: fds, timers, tasks and turns: their order, and changes by each other. */
#include "test.h"
#include "serve/loop/loop.h"
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct loop *l;
static char said[200]; /* the events, a letter each */

static bool polls; /* before it sleeps */

static void say(char c)
{
	size_t n = strlen(said);
	CHECK(n < sizeof(said) - 1);
	said[n] = c;
	said[n + 1] = 0;
}

static void begin(void)
{
	said[0] = 0;
	CHECK_INT(loop_new(&l), 0);
	if (polls)
		loop_poll(l);
}

static void run_until_stopped(const char *want)
{
	CHECK_INT(loop_run(l), 0);
	CHECK_STR(said, want);
}

/* ---- fds */

struct watched {
	struct loop_fd f; /* first */
	char letter;
	struct watched *removes;
	bool stops;
	bool enough;
};

static void watched_ready(struct loop_fd *f, uint32_t events)
{
	struct watched *w = (struct watched *)f;
	uint64_t n;

	CHECK(events & EPOLLIN);
	CHECK_INT(read(f->fd, &n, sizeof(n)), sizeof(n));
	say(w->letter);
	if (w->removes)
		loop_remove(l, &w->removes->f);
	if (w->enough)
		loop_enough(l);
	if (w->stops)
		loop_stop(l);
}

static void watched_new(struct watched *w, char letter, unsigned count)
{
	*w = (struct watched){
		.f = {.fd = eventfd(count, 0), .ready = watched_ready}, .letter = letter};
	CHECK(w->f.fd >= 0);
	CHECK_INT(loop_add(l, &w->f, EPOLLIN), 0);
}

static void fds(void)
{
	struct watched a, b;
	uint64_t one = 1;

	begin();
	watched_new(&a, 'a', 1);
	watched_new(&b, 'b', 1);
	b.stops = true;
	run_until_stopped("ab");
	CHECK_INT(loop_add(l, &a.f, EPOLLIN), -EEXIST);
	/* Not waited for: no event. */
	loop_change(l, &a.f, 0);
	CHECK_INT(write(a.f.fd, &one, sizeof(one)), sizeof(one));
	CHECK_INT(write(b.f.fd, &one, sizeof(one)), sizeof(one));
	run_until_stopped("abb");
	loop_change(l, &a.f, EPOLLIN);
	a.stops = true;
	run_until_stopped("abba");
	close(a.f.fd);
	close(b.f.fd);
	loop_free(l);
}

/* The first of two ready fds removes the other, which must not be called, although the system has
 * already reported both. */
static void fd_removed_by_another(void)
{
	struct watched a, b, c;

	begin();
	watched_new(&a, 'a', 1);
	watched_new(&b, 'b', 1);
	watched_new(&c, 'c', 1);
	a.removes = &b;
	b.removes = &a;
	c.stops = true;
	CHECK_INT(loop_run(l), 0);
	CHECK(strcmp(said, "ac") == 0 || strcmp(said, "bc") == 0);
	close(a.f.fd);
	close(b.f.fd);
	close(c.f.fd);
	loop_free(l);
}

static void fd_removes_itself(void)
{
	struct watched a, b;

	begin();
	watched_new(&a, 'a', 2);
	watched_new(&b, 'b', 1);
	a.removes = &a;
	b.stops = true;
	run_until_stopped("ab");
	CHECK_INT(loop_add(l, &a.f, EPOLLIN), 0); /* and may be added again */
	close(a.f.fd);
	close(b.f.fd);
	loop_free(l);
}

/* ---- timers */

struct alarm_ {
	struct loop_timer t; /* first */
	char letter;
	weir_time again;     /* set again to this; 0: no */
	struct alarm_ *cuts; /* unset by this one */
	bool stops;
};

static void alarm_due(struct loop_timer *t, weir_time now)
{
	struct alarm_ *a = (struct alarm_ *)t;

	CHECK_INT(now, loop_now(l));
	say(a->letter);
	if (a->cuts)
		CHECK_INT(loop_set(l, &a->cuts->t, WEIR_NEVER), 0);
	if (a->again) {
		CHECK_INT(loop_set(l, t, a->again), 0);
		a->again = 0;
	}
	if (a->stops)
		loop_stop(l);
}

static struct alarm_ alarm_of(char letter)
{
	return (struct alarm_){.t.due = alarm_due, .letter = letter};
}

static void timers(void)
{
	struct alarm_ a = alarm_of('a'), b = alarm_of('b'), c = alarm_of('c'), d = alarm_of('d');
	weir_time start;

	begin();
	start = loop_clock();
	d.stops = true;
	CHECK_INT(loop_set(l, &d.t, start + 3 * WEIR_MS), 0);
	CHECK_INT(loop_set(l, &b.t, start + 1 * WEIR_MS), 0);
	CHECK_INT(loop_set(l, &c.t, start + 1 * WEIR_MS), 0); /* equal: in order of setting */
	CHECK_INT(loop_set(l, &a.t, start + 9 * WEIR_MS), 0);
	CHECK_INT(loop_set(l, &a.t, start - 5), 0); /* moved before all others */
	run_until_stopped("abcd");
	CHECK(loop_clock() >= start + 3 * WEIR_MS);
	CHECK(!a.t.set && !d.t.set);
	loop_free(l);
}

static void timer_cuts_another(void)
{
	struct alarm_ a = alarm_of('a'), b = alarm_of('b'), c = alarm_of('c');

	begin();
	CHECK_INT(loop_set(l, &a.t, 1), 0);
	CHECK_INT(loop_set(l, &b.t, 2), 0); /* due in the same round */
	CHECK_INT(loop_set(l, &c.t, 3), 0);
	a.cuts = &b;
	c.stops = true;
	run_until_stopped("ac");
	CHECK_INT(loop_set(l, &b.t, WEIR_NEVER), 0); /* idempotent */
	loop_free(l);
}

/* A timer that sets itself to the past runs again, but after the others. */
static void timer_in_the_past(void)
{
	struct alarm_ a = alarm_of('a'), b = alarm_of('b');

	begin();
	CHECK_INT(loop_set(l, &a.t, 1), 0);
	CHECK_INT(loop_set(l, &b.t, 2), 0);
	a.again = 1;
	a.stops = true; /* ends the loop, not the timers of the round */
	run_until_stopped("ab");
	run_until_stopped("aba");
	loop_free(l);
}

/* Far more than the initial room; moved, unset, and in order. */
static void many_timers(void)
{
	enum { N = 1000 };
	static struct alarm_ a[N];
	char want[128] = "";

	begin();
	for (int i = 0; i < N; i++) {
		a[i] = alarm_of((char)('a' + i % 26));
		CHECK_INT(loop_set(l, &a[i].t, WEIR_SEC * 1000000000 + i), 0);
	}
	for (int i = 0; i < N; i++) {
		if (i % 10 == 0) {
			CHECK_INT(loop_set(l, &a[i].t, N - i), 0); /* reversed */
			want[99 - i / 10] = a[i].letter;
		} else if (i % 2) {
			CHECK_INT(loop_set(l, &a[i].t, WEIR_NEVER), 0);
		}
	}
	a[0].stops = true;
	run_until_stopped(want);
	CHECK(!a[10].t.set && !a[11].t.set && a[12].t.set);
	loop_free(l);
}

/* ---- tasks */

struct counted {
	struct loop_task t; /* first */
	unsigned thread, number;
};
enum { THREADS = 3, TASKS = 5000 };
static unsigned next_of[THREADS], total;
static pthread_t loop_thread;

static void counted_run(struct loop_task *t)
{
	struct counted *c = (struct counted *)t;

	CHECK(pthread_equal(pthread_self(), loop_thread));
	CHECK_INT(c->number, next_of[c->thread]); /* in order per thread */
	next_of[c->thread]++;
	free(c);
	if (++total == THREADS * TASKS)
		loop_stop(l);
}

static void *post_many(void *arg)
{
	for (unsigned i = 0; i < TASKS; i++) {
		struct counted *c = malloc(sizeof(*c));
		CHECK(c);
		*c = (struct counted){
			.t.run = counted_run, .thread = *(const unsigned *)arg, .number = i};
		loop_post(l, &c->t);
	}
	return NULL;
}

static void posts(void)
{
	pthread_t threads[THREADS];
	unsigned numbers[THREADS];

	begin();
	loop_thread = pthread_self();
	for (unsigned i = 0; i < THREADS; i++) {
		numbers[i] = i;
		next_of[i] = 0;
	}
	total = 0;
	for (unsigned i = 0; i < THREADS; i++) {
		CHECK_INT(pthread_create(&threads[i], NULL, post_many, &numbers[i]), 0);
	}
	CHECK_INT(loop_run(l), 0);
	CHECK_INT(total, THREADS * TASKS);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	loop_free(l);
}

struct letter_task {
	struct loop_task t; /* first */
	char letter;
	struct letter_task *posts;
	bool stops;
};

static void letter_run(struct loop_task *t)
{
	struct letter_task *k = (struct letter_task *)t;

	say(k->letter);
	if (k->posts)
		loop_post(l, &k->posts->t);
	if (k->stops)
		loop_stop(l);
}

/* From its own thread, with nothing else to wake it. */
static void posts_to_itself(void)
{
	struct letter_task b = {.t.run = letter_run, .letter = 'b', .stops = true},
			   a = {.t.run = letter_run, .letter = 'a', .posts = &b};

	begin();
	loop_post(l, &a.t);
	run_until_stopped("ab");
	/* Posted, then stopped, before it runs: done all the same. */
	a.posts = NULL;
	loop_post(l, &a.t);
	loop_stop(l);
	run_until_stopped("aba");
	loop_free(l);
}

static void *run_loop(void *arg)
{
	CHECK_INT(loop_run(l), 0);
	return arg;
}

static void calls(void)
{
	struct letter_task a = {.t.run = letter_run, .letter = 'a'};
	pthread_t thread;

	begin();
	CHECK_INT(pthread_create(&thread, NULL, run_loop, NULL), 0);
	for (int i = 1; i <= 100; i++) {
		loop_call(l, &a.t);
		CHECK_INT(strlen(said), i);
	}
	loop_stop(l);
	pthread_join(thread, NULL);
	loop_free(l);
}

/* ---- turns */

struct lap {
	struct loop_turn t; /* first */
	char letter;
	int more; /* returns true that often, then stops the loop if `stops` */
	bool stops;
	struct lap *removes;
};

static bool lap_turn(struct loop_turn *t, weir_time now)
{
	struct lap *p = (struct lap *)t;

	CHECK_INT(now, loop_now(l));
	say(p->letter);
	if (p->removes) {
		loop_turn_remove(l, &p->removes->t);
		p->removes = NULL;
	}
	if (p->more-- > 0)
		return true;
	if (p->stops)
		loop_stop(l);
	return false;
}

/* Nothing else would end a wait here: "more" must. */
static void turns(void)
{
	struct lap a = {.t.turn = lap_turn, .letter = 'a', .more = 2, .stops = true},
		   b = {.t.turn = lap_turn, .letter = 'b'};

	begin();
	loop_turn_add(l, &a.t);
	loop_turn_add(l, &b.t);
	run_until_stopped("ababab");
	loop_free(l);
}

static void turns_removed(void)
{
	struct lap a = {.t.turn = lap_turn, .letter = 'a', .more = 1},
		   b = {.t.turn = lap_turn, .letter = 'b'},
		   c = {.t.turn = lap_turn, .letter = 'c', .more = 1, .stops = true};

	begin();
	loop_turn_add(l, &a.t);
	loop_turn_add(l, &b.t);
	loop_turn_add(l, &c.t);
	a.removes = &b; /* the next one */
	run_until_stopped("acac");
	c.removes = &c; /* itself, the last */
	c.more = 0;
	run_until_stopped("acacac");
	a.stops = true;
	loop_turn_add(l, &b.t);
	run_until_stopped("acacacab");
	loop_free(l);
}

/* Three fds are ready. Each is enough for its round: the turn comes after each of them. One that is
 * removed in a later round than the system reported it in is not called. */
static void enough(void)
{
	struct lap t = {.t.turn = lap_turn, .letter = '.'};
	struct watched a, b, c;

	begin();
	loop_turn_add(l, &t.t);
	watched_new(&a, 'a', 1);
	watched_new(&b, 'b', 1);
	watched_new(&c, 'c', 1);
	a.enough = b.enough = c.stops = true;
	run_until_stopped("a.b.c.");
	CHECK_INT(write(a.f.fd, &(uint64_t){1}, 8), 8);
	CHECK_INT(write(b.f.fd, &(uint64_t){1}, 8), 8);
	CHECK_INT(write(c.f.fd, &(uint64_t){1}, 8), 8);
	b.removes = &c;
	b.stops = true;
	run_until_stopped("a.b.c.a.b.");
	a.stops = true;
	CHECK_INT(write(a.f.fd, &(uint64_t){1}, 8), 8);
	run_until_stopped("a.b.c.a.b..a."); /* the round of the removed one has a turn only */
	close(a.f.fd);
	close(b.f.fd);
	close(c.f.fd);
	loop_free(l);
}

/* ---- without epoll_pwait2 */

static int forbid_pwait2(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_epoll_pwait2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = 4, .filter = filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void without_pwait2(void)
{
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (child == 0) {
		if (forbid_pwait2() < 0)
			_exit(77);
		timers();
		timers();
		timer_in_the_past();
		posts_to_itself();
		calls();
		turns();
		_exit(0);
	}
	CHECK_INT(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status));
	if (WEXITSTATUS(status) != 77)
		CHECK_INT(WEXITSTATUS(status), 0);
}

/* ---- quick replies */

#define QUESTIONS 2000

static unsigned answers;

static void *echo(void *arg)
{
	int fd = *(int *)arg;
	char c;

	while (read(fd, &c, 1) == 1)
		CHECK_INT(write(fd, &c, 1), 1);
	return NULL;
}

static void answered(struct loop_fd *f, uint32_t events)
{
	char c;

	CHECK_INT(read(f->fd, &c, 1), 1);
	if (++answers == QUESTIONS)
		loop_stop(l);
	else
		CHECK_INT(write(f->fd, &c, 1), 1);
}

/* One request at a time to another thread: whether the loop polls or sleeps, none is lost. */
static void ping_pong(void)
{
	struct loop_fd f = {.ready = answered};
	pthread_t other;
	int fd[2];

	begin();
	answers = 0;
	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	CHECK_INT(pthread_create(&other, NULL, echo, &fd[1]), 0);
	f.fd = fd[0];
	CHECK_INT(loop_add(l, &f, EPOLLIN), 0);
	CHECK_INT(write(fd[0], "?", 1), 1);
	run_until_stopped("");
	CHECK_INT(answers, QUESTIONS);
	loop_remove(l, &f);
	close(fd[0]);
	pthread_join(other, NULL);
	close(fd[1]);
	loop_free(l);
}

struct refreshing {
	struct loop_turn t; /* first */
	uint64_t first;     /* round */
	unsigned n;
};

/* The clock is refreshed in the middle of a round, whose number does not change. */
static bool refresh(struct loop_turn *t, weir_time now)
{
	struct refreshing *r = (struct refreshing *)t;

	if (!r->n)
		r->first = loop_round(l);
	CHECK_INT(loop_round(l), r->first + r->n);
	CHECK_INT(loop_now(l), now);
	while (loop_clock() == now)
		;
	CHECK(loop_now(l) == now);
	CHECK(loop_refresh(l) > now);
	CHECK(loop_now(l) > now);
	CHECK_INT(loop_round(l), r->first + r->n);
	if (++r->n == 5)
		loop_stop(l);
	return true;
}

static void refreshes(void)
{
	struct refreshing r = {.t.turn = refresh};

	begin();
	loop_turn_add(l, &r.t);
	run_until_stopped("");
	CHECK_INT(r.n, 5);
	loop_turn_remove(l, &r.t);
	loop_free(l);
}

static void run_all(void)
{
	RUN(fds);
	RUN(fd_removed_by_another);
	RUN(fd_removes_itself);
	RUN(timers);
	RUN(timer_cuts_another);
	RUN(timer_in_the_past);
	RUN(many_timers);
	RUN(posts);
	RUN(posts_to_itself);
	RUN(calls);
	RUN(turns);
	RUN(turns_removed);
	RUN(enough);
	RUN(without_pwait2);
	RUN(ping_pong);
	RUN(refreshes);
}

int main(void)
{
	run_all();
	printf("# that polls\n");
	polls = true;
	run_all();
	return 0;
}
