/* SPDX-License-Identifier: BSD-3-Clause */
#include "prog/screen.h"
#include "prog/table.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

/* ECMA-48 and xterm: the other screen, no cursor, no line wrap; and back. */
#define ENTER "\033[?1049h\033[?25l\033[?7l"
#define LEAVE "\033[?7h\033[?25h\033[?1049l"

static bool is_open;
static struct termios before;
static sigset_t blocked, old_mask;
static int signals = -1;

static void put(const char *text, size_t n)
{
	while (n) {
		ssize_t done = write(STDOUT_FILENO, text, n);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return; /* the terminal is gone: SIGHUP follows */
		text += done;
		n -= (size_t)done;
	}
}

static void enter(void)
{
	struct termios raw = before;

	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
	put(ENTER, strlen(ENTER));
}

static void leave(void)
{
	put(LEAVE, strlen(LEAVE));
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
}

int screen_open(void)
{
	static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH, SIGPIPE};

	if (!isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &before) < 0)
		return -ENOTTY;
	sigemptyset(&blocked);
	for (size_t i = 0; i < sizeof(caught) / sizeof(*caught); i++)
		sigaddset(&blocked, caught[i]);
	sigprocmask(SIG_BLOCK, &blocked, &old_mask);
	signals = signalfd(-1, &blocked, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals < 0) {
		sigprocmask(SIG_SETMASK, &old_mask, NULL);
		return -errno;
	}
	is_open = true;
	atexit(screen_close);
	enter();
	return 0;
}

void screen_close(void)
{
	if (!is_open)
		return;
	is_open = false;
	leave();
	close(signals);
	sigprocmask(SIG_SETMASK, &old_mask, NULL);
}

/* ---- drawing */

static void add(char *to, size_t room, size_t *n, const char *text, size_t len)
{
	if (*n + len < room) {
		memcpy(to + *n, text, len);
		*n += len;
	}
}

void screen_draw(const char *text)
{
	struct winsize size = {.ws_row = 24, .ws_col = 80};
	size_t room = 2 * strlen(text) + 16384, n = 0;
	char *to = malloc(room);

	if (!to)
		return;
	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	add(to, room, &n, "\033[H", 3);
	for (unsigned row = 0; row < size.ws_row && *text; row++) {
		bool head = *text == TABLE_HEAD;
		size_t fits;
		if (row)
			add(to, room, &n, "\r\n", 2);
		text += head;
		fits = table_cut(text, size.ws_col);
		if (head)
			add(to, room, &n, "\033[7m", 4);
		add(to, room, &n, text, fits);
		add(to, room, &n, "\033[K\033[m", 6); /* the rest of a heading's line too */
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	add(to, room, &n, "\033[J", 3);
	put(to, n);
	free(to);
}

/* ---- waiting */

static weir_time now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * WEIR_SEC + t.tv_nsec;
}

/* Gives the terminal back to the shell while we are stopped. */
static void stop(void)
{
	leave();
	kill(getpid(), SIGSTOP);
	enter();
}

static enum screen_event signalled(void)
{
	struct signalfd_siginfo info;

	if (read(signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return SCREEN_RESIZED;
	if (info.ssi_signo == SIGTSTP)
		stop();
	return info.ssi_signo == SIGWINCH || info.ssi_signo == SIGTSTP ? SCREEN_RESIZED
								       : SCREEN_END;
}

enum screen_event screen_wait(weir_time until, char *ret_key)
{
	struct pollfd p[2] = {
		{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
	weir_time left = until - now();
	struct timespec t = {.tv_sec = left / WEIR_SEC, .tv_nsec = left % WEIR_SEC};
	static const struct timespec none;

	if (ppoll(p, 2, left > 0 ? &t : &none, NULL) <= 0)
		return SCREEN_TIME;
	if (p[1].revents)
		return signalled();
	if (read(STDIN_FILENO, ret_key, 1) != 1)
		return SCREEN_END; /* the terminal is gone */
	return SCREEN_KEY;
}
