// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdt

// Builtin returns the types that a node knows without being told: all of them with texts
// for keys and elements, sets with numbers, registers of the usual contents, and maps of
// each sort. The list is short, because every instance is code in every program: a program
// that uses others adds them with [TypeOf].
func Builtin() []Type {
	return []Type{
		TypeOf[GCounter](), TypeOf[PNCounter](), TypeOf[Flag](), TypeOf[VersionVector](),
		TypeOf[GSet[string]](), TypeOf[GSet[int64]](),
		TypeOf[ORSet[string]](), TypeOf[ORSet[int64]](),
		TypeOf[ORMultiMap[string, string]](), TypeOf[PNCounterMap[string]](),
		TypeOf[LWWRegister[string]](), TypeOf[LWWRegister[[]byte]](), TypeOf[LWWRegister[int64]](),
		TypeOf[MVRegister[string]](), TypeOf[MVRegister[[]byte]](),
		TypeOf[LWWMap[string, string]](), TypeOf[LWWMap[string, []byte]](),
		TypeOf[ORMap[string, GCounter]](), TypeOf[ORMap[string, PNCounter]](), TypeOf[ORMap[string, Flag]](),
		TypeOf[ORMap[string, ORSet[string]]](), TypeOf[ORMap[string, LWWRegister[string]]](),
		TypeOf[ORMap[string, LWWMap[string, string]]](),
	}
}
