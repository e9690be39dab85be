/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/view/screen.h"
#include "serve/loop/loop.h"
#include "cli/view/table.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

/* ECMA-48 and xterm: alternate screen, no cursor, no line wrap; and back. */
#define ENTER "\033[?1049h\033[?25l\033[?7l"
#define LEAVE "\033[?7h\033[?25h\033[?1049l"

static bool is_open;
static struct termios before;
static sigset_t blocked, old_mask;
static int signals = -1;
static bool keys_waiting; /* keys were read but not returned yet */

static void write_all(const char *text, size_t n)
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

static void enter_screen(void)
{
	struct termios raw = before;

	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
	write_all(ENTER, strlen(ENTER));
}

static void leave_screen(void)
{
	write_all(LEAVE, strlen(LEAVE));
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
	enter_screen();
	return 0;
}

void screen_close(void)
{
	if (!is_open)
		return;
	is_open = false;
	leave_screen();
	close(signals);
	sigprocmask(SIG_SETMASK, &old_mask, NULL);
}

/* ---- drawing */

static void add_bytes(char *to, size_t room, size_t *n, const char *text, size_t len)
{
	if (*n + len < room) {
		memcpy(to + *n, text, len);
		*n += len;
	}
}

static struct winsize size_now(void)
{
	struct winsize size = {.ws_row = 24, .ws_col = 80};

	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	return size;
}

unsigned screen_rows(void)
{
	return size_now().ws_row;
}

void screen_draw(const char *text)
{
	struct winsize size = size_now();
	size_t room = 2 * strlen(text) + 16384, n = 0;
	char *to = malloc(room);

	if (!to)
		return;
	add_bytes(to, room, &n, "\033[H", 3);
	for (unsigned row = 0; row < size.ws_row && *text; row++) {
		bool head = *text == TABLE_HEAD;
		size_t fits;
		if (row)
			add_bytes(to, room, &n, "\r\n", 2);
		text += head;
		fits = table_cut(text, size.ws_col);
		if (head)
			add_bytes(to, room, &n, "\033[7m", 4);
		add_bytes(to, room, &n, text, fits);
		add_bytes(to, room, &n, "\033[K\033[m",
			6); /* also fills the rest of a heading's line */
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	add_bytes(to, room, &n, "\033[J", 3);
	write_all(to, n);
	free(to);
}

/* ---- waiting */

/* Restore the terminal for the shell while the program is stopped. */
static void suspend_program(void)
{
	leave_screen();
	kill(getpid(), SIGSTOP);
	enter_screen();
}

static enum screen_event handle_signal(void)
{
	struct signalfd_siginfo info;

	if (read(signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return SCREEN_RESIZED;
	if (info.ssi_signo == SIGTSTP)
		suspend_program();
	return info.ssi_signo == SIGWINCH || info.ssi_signo == SIGTSTP ? SCREEN_RESIZED
								       : SCREEN_END;
}

/* Return the key of the bytes that a terminal sent: a character, or a whole escape sequence. */
static int key_of(const char *bytes, size_t n)
{
	static const struct {
		const char *sequence;
		int key;
	} keys[] = {{"[A", SCREEN_UP}, {"OA", SCREEN_UP}, {"[B", SCREEN_DOWN}, {"OB", SCREEN_DOWN},
		{"[5~", SCREEN_PAGE_UP}, {"[6~", SCREEN_PAGE_DOWN}, {"[H", SCREEN_HOME},
		{"OH", SCREEN_HOME}, {"[1~", SCREEN_HOME}, {"[F", SCREEN_LAST}, {"OF", SCREEN_LAST},
		{"[4~", SCREEN_LAST}};

	if (bytes[0] != '\033')
		return (unsigned char)bytes[0];
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (strlen(keys[i].sequence) == n - 1 &&
			memcmp(bytes + 1, keys[i].sequence, n - 1) == 0)
			return keys[i].key;
	return n == 1 ? SCREEN_ESCAPE : SCREEN_UNKNOWN;
}

/* Return the bytes of one key (ECMA-48): ESC alone, ESC O and a character, or ESC [ up to the first
 * byte from '@' on. 0: the sequence is incomplete. */
static size_t key_length(const char *bytes, size_t n)
{
	size_t i = 2;

	if (bytes[0] != '\033' || n == 1 || (bytes[1] != '[' && bytes[1] != 'O'))
		return 1;
	while (bytes[1] == '[' && i < n && bytes[i] < '@')
		i++;
	return i < n ? i + 1 : 0;
}

/* Return keys that arrived together, such as from a key held down, one after the other. */
static int next_key(void)
{
	static char bytes[64];
	static size_t at, n;
	size_t length = at < n ? key_length(bytes + at, n - at) : 0;
	ssize_t got;
	int key;

	if (at == n || (!length && at && n == sizeof(bytes))) { /* or a sequence was cut in two */
		memmove(bytes, bytes + at, n - at);
		n -= at;
		at = 0;
		got = read(STDIN_FILENO, bytes + n, sizeof(bytes) - n);
		if (got <= 0)
			return -1;
		n += (size_t)got;
		length = key_length(bytes, n);
	}
	if (!length)
		length = n - at; /* an endless sequence: one unknown key */
	key = key_of(bytes + at, length);
	at += length;
	keys_waiting = at < n;
	return key;
}

enum screen_event screen_wait(weir_time until, int *ret_key)
{
	struct pollfd p[2] = {
		{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
	weir_time left = until - loop_clock();
	struct timespec t = {.tv_sec = left / WEIR_SEC, .tv_nsec = left % WEIR_SEC};
	static const struct timespec none;

	if (keys_waiting) {
		*ret_key = next_key();
		return SCREEN_KEY;
	}
	if (ppoll(p, 2, left > 0 ? &t : &none, NULL) <= 0)
		return SCREEN_TIME;
	if (p[1].revents)
		return handle_signal();
	*ret_key = next_key();
	return *ret_key < 0 ? SCREEN_END : SCREEN_KEY; /* < 0: the terminal is gone */
}
