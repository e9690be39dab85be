/* SPDX-License-Identifier: BSD-3-Clause */
/* sanitize: SANITIZE_ADDRESS and SANITIZE_THREAD are 1 in a build with that sanitizer, of gcc or clang, else 0. */
#pragma once

#ifndef __has_feature
#define __has_feature(feature) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define SANITIZE_ADDRESS 1
#else
#define SANITIZE_ADDRESS 0
#endif

#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define SANITIZE_THREAD 1
#else
#define SANITIZE_THREAD 0
#endif
