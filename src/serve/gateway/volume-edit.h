/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * volume-edit: volumes that the policy's file does not state: those of folders, and those of the API with the requests that make,
 * change and remove them. For serve/gateway/policy.c and change.c; aside, as drafts are made.
 */
#ifndef WEIR_SERVE_GATEWAY_VOLUME_EDIT_H
#define WEIR_SERVE_GATEWAY_VOLUME_EDIT_H

#include "serve/gateway/change.h"

/* Carry out a request on a copy of the gateway's list; a file is created at once. Set c->same if there is nothing to
 * change. 0 or a negative errno with a message, see gateway_change_volume. */
int gateway_volume_edit(struct gateway *g, struct gateway_change *c, struct extras *list);
/* Remove entries of files that a folder does not have any more. Another file in place of one that was created is a volume of its
 * folder, with the class that the volume had. */
void gateway_volume_prune(const struct gateway *g, struct extras *list);
/* Add the volumes of both sources to a policy. refused: a line for each that does not fit. remarks: a line
 * for each class of theirs that the policy lacks, and each folder that is away. 0 or -ENOMEM. */
int gateway_volume_layer(const struct gateway *g, struct weir_policy *p,
	const struct extras *extras, struct gateway_note *refused, struct gateway_note *remarks);
/* Make the file of the volume that grows longer, after all that can refuse the change. 0 or a negative errno with a message. */
int gateway_volume_grow(struct gateway_change *c);
/* The change failed: delete the file that was made for it, if any. */
void gateway_volume_unmake(struct gateway_change *c);
/* Delete the file of a volume that is gone, unless another one has its path; that, and a failure, is logged and noted (note may
 * be NULL). */
void gateway_volume_unlink(const char *name, const char *path, const struct policy_file *file,
	struct gateway_note *note);
/* The same for all of a list that are to go, after a restart. */
void gateway_volume_unlink_all(const struct extras *list);

#endif
