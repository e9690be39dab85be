/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/shape/interfaces.h"
#include "base/array.h"
#include "base/no-memory.h"
#include "policy/net.h"
#include "serve/shape/former.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct known {
	char name[IFNAMSIZ];
	int index;
	unsigned round; /* of the scan that saw it last */
};

struct interfaces {
	struct rules *rules;
	struct program *program; /* NULL: only look */
	const struct policy_network *network;
	const struct device_state *state;
	struct device_guard guard;
	struct known *known;
	size_t n, room;
	unsigned round;
	size_t sets;                         /* that the program has */
	uint32_t numbered[SHAPE_INTERFACES]; /* sets, by the number in a mark; 0: of no rule */
	size_t n_numbered;
};

int interfaces_new(struct rules *r, struct program *p, const struct policy_network *network,
	const struct device_state *s, const struct device_guard *g, struct interfaces **ret,
	struct weir_err *err)
{
	struct interfaces *i = calloc(1, sizeof(*i));

	if (!i)
		return no_memory(err);
	*i = (struct interfaces){.rules = r,
		.program = p,
		.network = network,
		.state = s,
		.guard = *g,
		.sets = r->n_sets,
		.numbered = {r->any[SHAPE_INTERFACE]},
		.n_numbered = 1};
	*ret = i;
	return 0;
}

void interfaces_free(struct interfaces *i)
{
	if (!i)
		return;
	free(i->known);
	free(i);
}

static bool is_shaped(const struct interfaces *i, const char *name)
{
	for (size_t d = 0; d < i->network->n_devices; d++)
		if (strcmp(i->network->devices[d].name, name) == 0)
			return true;
	return strcmp(name, "lo") == 0;
}

static struct known *known_of(struct interfaces *i, const struct tc_link *l)
{
	for (size_t k = 0; k < i->n; k++)
		if (i->known[k].index == l->index && strcmp(i->known[k].name, l->name) == 0)
			return &i->known[k];
	return NULL;
}

/* Return the number that marks have for a set, which the program gets if it has not; or a negative errno. */
static int number_of(struct interfaces *i, uint32_t set)
{
	int r = 0;

	for (size_t k = 0; k < i->n_numbered; k++)
		if (i->numbered[k] == set)
			return (int)k;
	if (i->n_numbered == SHAPE_INTERFACES)
		return -ENOSPC;
	for (; r == 0 && i->sets < i->rules->n_sets; i->sets += r == 0)
		r = program_set(i->program, (uint32_t)i->sets, &i->rules->sets[i->sets]);
	if (r)
		return r;
	program_interface_set(i->program, (unsigned)i->n_numbered, set);
	i->numbered[i->n_numbered] = set;
	return (int)i->n_numbered++;
}

/* Write down whether there is a clsact qdisc, and attach. */
static int attach(struct interfaces *i, struct tc *t, const struct tc_link *l, int number,
	struct weir_err *err)
{
	struct former st = {.segments = l->segments};
	struct device_others others;
	struct tc_queue root;
	int r = device_others(t, l, &others, err);

	if (r == 0 && others.name[0] && !i->guard.beside)
		return weir_err_set(err, -EBUSY,
			"%s: another program is on it, '%s' (--beside runs both): its packets are "
			"not matched",
			l->name, others.name);
	if (r == 0 && !others.ours) {
		r = tc_root(t, l, &root, err);
		st.clsact = r == 0 && root.clsact;
		r = r ? r : former_write(i->state, l->name, &st, err);
	}
	if (r == 0 && (r = program_interface(i->program, l->index, (uint32_t)number)))
		weir_err_set(err, r, "%s: the classifier: %s", l->name, strerror(-r));
	return r ? r : program_attach_interface(i->program, l->index, err);
}

static int add(struct interfaces *i, const struct tc_link *l)
{
	if (array_grow(&i->known, &i->room, i->n + 1) < 0)
		return -ENOMEM;
	i->known[i->n] = (struct known){.index = l->index, .round = i->round};
	memcpy(i->known[i->n++].name, l->name, sizeof(l->name));
	return 0;
}

static int look_at_link(
	struct interfaces *i, struct tc *t, const struct tc_link *l, struct weir_err *err)
{
	int set = rules_interface(i->rules, l->name), r;
	bool ours;

	if (set < 0)
		return no_memory(err);
	if ((uint32_t)set ==
		i->rules->any[SHAPE_INTERFACE]) /* a policy of before may have named it */
		return i->program && i->round == 1 ? device_give_back(t, i->state, l, &ours, err)
						   : 0;
	if (add(i, l) < 0)
		return no_memory(err);
	if (!i->program)
		return 0;
	r = number_of(i, (uint32_t)set);
	if (r < 0)
		return weir_err_set(err, r, "%s: %s", l->name, strerror(-r));
	return attach(i, t, l, r, err);
}

static void forget(struct interfaces *i, size_t k)
{
	if (i->program) {
		program_interface_gone(i->program, i->known[k].index);
		former_remove(i->state, i->known[k].name);
	}
	i->known[k] = i->known[--i->n];
}

int interfaces_scan(struct interfaces *i, struct tc *t, struct weir_err *err)
{
	struct tc_link_list s;
	struct known *k;
	int r = tc_links(t, &s, err);

	i->round++;
	for (size_t l = 0; l < s.n; l++)
		if ((k = known_of(i, &s.links[l])))
			k->round = i->round;
	for (size_t at = i->n; r == 0 && at-- > 0;) /* before one of the same name comes */
		if (i->known[at].round != i->round)
			forget(i, at);
	for (size_t l = 0; l < s.n; l++) {
		int e = is_shaped(i, s.links[l].name) || known_of(i, &s.links[l])
				? 0
				: look_at_link(i, t, &s.links[l], r ? NULL : err);

		r = r ? r : e;
	}
	free(s.links);
	return r ? r : (int)i->n;
}

int interfaces_look(struct rules *r, struct tc *t, const struct policy_network *network)
{
	struct interfaces *i = NULL;
	int n = interfaces_new(r, NULL, network, NULL, &(struct device_guard){0}, &i, NULL);

	if (n < 0)
		return n;
	n = interfaces_scan(i, t, NULL);
	interfaces_free(i);
	return n;
}
