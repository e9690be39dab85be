/* SPDX-License-Identifier: BSD-3-Clause */
/* nbd-options: the constants of the handshake, for both of its sides. */
#pragma once

#define NBD_MAGIC        UINT64_C(0x4e42444d41474943) /* "NBDMAGIC" */
#define NBD_OPTION_MAGIC UINT64_C(0x49484156454f5054) /* "IHAVEOPT" */
#define NBD_OLD_MAGIC    UINT64_C(0x0000420281861253) /* sent in its place by an oldstyle server */
#define NBD_ANSWER_MAGIC UINT64_C(0x0003e889045565a9)

#define NBD_GREETING_SIZE 18  /* magic, magic, flags */
#define NBD_OPTION_SIZE   16  /* magic, option, length */
#define NBD_ANSWER_SIZE   20  /* magic, option, type, length */
#define NBD_OLD_PADDING   124 /* zeroes after the answer to NBD_OPT_EXPORT_NAME */

enum nbd_handshake_flags { NBD_FIXED_NEWSTYLE = 1, NBD_NO_ZEROES = 2 }; /* of both sides */

enum nbd_option {
	NBD_OPT_EXPORT_NAME = 1,
	NBD_OPT_ABORT = 2,
	NBD_OPT_LIST = 3,
	NBD_OPT_STARTTLS = 5,
	NBD_OPT_INFO = 6,
	NBD_OPT_GO = 7,
	NBD_OPT_STRUCTURED_REPLY = 8,
	NBD_OPT_LIST_META_CONTEXT = 9,
	NBD_OPT_SET_META_CONTEXT = 10,
};

/* Types of a server's reply to an option. Not an enum, whose members could not exceed an int. */
#define NBD_REP_ACK                 1u
#define NBD_REP_SERVER              2u
#define NBD_REP_INFO                3u
#define NBD_REP_META_CONTEXT        4u
#define NBD_REP_ERR                 0x80000000u /* set in every error */
#define NBD_REP_ERR_UNSUP           0x80000001u
#define NBD_REP_ERR_POLICY          0x80000002u
#define NBD_REP_ERR_INVALID         0x80000003u
#define NBD_REP_ERR_PLATFORM        0x80000004u
#define NBD_REP_ERR_TLS_REQD        0x80000005u
#define NBD_REP_ERR_UNKNOWN         0x80000006u
#define NBD_REP_ERR_SHUTDOWN        0x80000007u
#define NBD_REP_ERR_BLOCK_SIZE_REQD 0x80000008u
#define NBD_REP_ERR_TOO_BIG         0x80000009u

enum nbd_info {
	NBD_INFO_EXPORT = 0,
	NBD_INFO_NAME = 1,
	NBD_INFO_DESCRIPTION = 2,
	NBD_INFO_BLOCK_SIZE = 3,
};

#define NBD_BASE            "base:"
#define NBD_BASE_ALLOCATION "base:allocation"
#define NBD_WEIR            "weir:"
#define NBD_WEIR_HELD       "weir:held" /* see nbd.h */
