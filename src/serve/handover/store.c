/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/handover/store.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <string.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>
#include <stdlib.h>
#include <unistd.h>

#define MOST    200              /* descriptors in one message */
#define PATIENT (5000 * 1000ull) /* µs, for the manager to read its messages */
#define QUICK   (1000 * 1000ull) /* µs, for each answer of the bus */
#define MANAGER "org.freedesktop.systemd1"

/* ---- the unit's job */

struct unit {
	sd_bus *bus;
	char *path;
};

static int find_unit(struct unit *u)
{
	sd_bus_message *reply = NULL;
	const char *path;
	/* Set for services of a user's manager only. */
	int rc = getenv("MANAGERPID") ? sd_bus_open_user(&u->bus) : sd_bus_open_system(&u->bus);

	if (rc >= 0)
		rc = sd_bus_set_method_call_timeout(u->bus, QUICK);
	if (rc >= 0)
		rc = sd_bus_call_method(u->bus, MANAGER, "/org/freedesktop/systemd1",
			MANAGER ".Manager", "GetUnitByPID", NULL, &reply, "u", (uint32_t)getpid());
	if (rc >= 0)
		rc = sd_bus_message_read(reply, "o", &path);
	if (rc >= 0 && !(u->path = strdup(path)))
		rc = -ENOMEM;
	sd_bus_message_unref(reply);
	return rc;
}

/* Return true if the unit's job is a restart. */
static bool is_restart(const struct unit *u)
{
	sd_bus_message *reply = NULL;
	char *type = NULL;
	const char *job = NULL;
	uint32_t id = 0;
	int rc = sd_bus_get_property(
		u->bus, MANAGER, u->path, MANAGER ".Unit", "Job", NULL, &reply, "(uo)");
	bool restart;

	if (rc >= 0)
		rc = sd_bus_message_read(reply, "(uo)", &id, &job);
	if (rc >= 0 && id)
		rc = sd_bus_get_property_string(
			u->bus, MANAGER, job, MANAGER ".Job", "JobType", NULL, &type);
	restart = rc >= 0 && type && strstr(type, "restart");
	free(type);
	sd_bus_message_unref(reply);
	return restart;
}

static size_t room_of(const struct unit *u)
{
	uint32_t most = 0;
	int rc = sd_bus_get_property_trivial(u->bus, MANAGER, u->path, MANAGER ".Service",
		"FileDescriptorStoreMax", NULL, 'u', &most);

	return rc < 0 ? 0 : most;
}

bool store_is_restart(size_t descriptors)
{
	struct unit u = {0};
	bool restart;
	size_t room;
	int rc;

	if (!getenv("NOTIFY_SOCKET"))
		return false;
	rc = find_unit(&u);
	if (rc < 0)
		log_event(LOG_LEVEL_DEBUG, "no-unit", "why", strerror(-rc), NULL);
	restart = rc >= 0 && is_restart(&u);
	room = restart ? room_of(&u) : 0;
	if (room && room < descriptors)
		log_event(LOG_LEVEL_WARNING, "store-too-small", "why",
			"FileDescriptorStoreMax= is less than the descriptors of the clients",
			NULL);
	free(u.path);
	sd_bus_flush_close_unref(u.bus);
	return restart && room >= descriptors;
}

/* ---- the store */

static int put_some(const int *fds, size_t n)
{
	int rc = n ? sd_pid_notify_with_fds(
			     0, 0, "FDSTORE=1\nFDNAME=" STORE_NAME "\nFDPOLL=0", fds, (unsigned)n)
		   : 1;

	return rc == 0 ? -ENOTCONN : rc < 0 ? rc : 0;
}

int store_put(int memfd, const struct record_fds *fds)
{
	int batch[MOST], rc = 0;
	size_t n = 0;

	for (size_t i = 0; rc == 0 && i < fds->n; i++) {
		batch[n++] = fds->all[i].fd;
		if (n == MOST || i + 1 == fds->n) {
			rc = put_some(batch, n);
			n = 0;
		}
	}
	if (rc == 0)
		rc = put_some(&memfd, 1);
	if (rc == 0) {
		rc = sd_notify_barrier(0, PATIENT);
		rc = rc == 0 ? -ENOTCONN : rc < 0 ? rc : 0;
	}
	if (rc < 0)
		store_clear();
	return rc;
}

void store_clear(void)
{
	sd_notify(0, "FDSTOREREMOVE=1\nFDNAME=" STORE_NAME);
	sd_notify_barrier(0, PATIENT);
}
