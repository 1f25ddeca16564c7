// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdt

// Builtin returns the types that every node knows: all types of this package with texts for keys and elements, sets
// also with numbers, registers also with byte slices and numbers, and some maps of values. The list is short, because
// each instance of a generic type is code in every program: a program that uses others adds them with [TypeOf].
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
