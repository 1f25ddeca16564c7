// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// func Read() (ticks uint64, processor uint32)
//
// The virtual count is that of one counter for all processors. Without a barrier it may be
// read some instructions early, which is nothing beside what a reading is good for; reading
// the clock has barriers of its own.
TEXT ·Read(SB), NOSPLIT, $0-12
	MRS  CNTVCT_EL0, R0
	MOVD R0, ticks+0(FP)
	MOVW ZR, processor+8(FP)
	RET
