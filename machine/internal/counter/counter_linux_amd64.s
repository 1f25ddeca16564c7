// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// func Read() (ticks uint64, processor uint32)
//
// RDTSCP waits until all instructions before it have been carried out, and returns the
// number that the kernel gave the processor.
TEXT ·Read(SB), NOSPLIT, $0-12
	RDTSCP
	SHLQ $32, DX
	ORQ  DX, AX
	MOVQ AX, ticks+0(FP)
	MOVL CX, processor+8(FP)
	RET

// func cpuid(leaf uint32) (eax, edx uint32)
TEXT ·cpuid(SB), NOSPLIT, $0-16
	MOVL leaf+0(FP), AX
	XORL CX, CX
	CPUID
	MOVL AX, eax+8(FP)
	MOVL DX, edx+12(FP)
	RET
