/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * list: lists whose items leave from anywhere. An item is a struct with the members `next` and `link`, the address of the
 * pointer that leads to it:
 *
 *   struct item {
 *           struct item *next, **link;
 *   };
 */
#pragma once

/* Put an item at the beginning of a list. */
#define list_push(head, item)                                                                      \
	do {                                                                                       \
		(item)->next = (head);                                                             \
		(item)->link = &(head);                                                            \
		if ((item)->next)                                                                  \
			(item)->next->link = &(item)->next;                                        \
		(head) = (item);                                                                   \
	} while (0)

/* Take an item out of its list; its own members stay as they are. */
#define list_remove(item)                                                                          \
	do {                                                                                       \
		*(item)->link = (item)->next;                                                      \
		if ((item)->next)                                                                  \
			(item)->next->link = (item)->link;                                         \
	} while (0)
