/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics-text: families and samples for Prometheus, as text. Pure but for the FILE. */
#pragma once

#include <stdio.h>

void metrics_family(FILE *to, const char *name, const char *type, const char *help);
/* Write one label; `before` is '{' or ','. */
void metrics_label(FILE *to, char before, const char *key, const char *value);
/* Write all labels, and their end; "" for no second one. */
void metrics_labels(
	FILE *to, const char *key, const char *value, const char *key2, const char *value2);
void metrics_number(FILE *to, double value);
/* Write a family of one sample. */
void metrics_single(FILE *to, const char *name, const char *type, const char *help, double value);
