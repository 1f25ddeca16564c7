// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package tree

// unmeasured are the decoders of this repository that no test measures.
func unmeasured() map[string]string {
	const (
		tests   = "it is for tests, tools and examples"
		local   = "it reads files of this machine, which its operator or the node has written"
		asked   = "it reads the answers of a server that the operator names, whose bytes are bounded"
		stored  = "it reads what this cluster has written into the store that the operator names"
		program = "it hands bytes to the codec or the type of a program, which makes of them what it will"
		inside  = "it hands bytes to functions that are measured where they are"
		small   = "it reads a text or a packet of fixed size"
		parts   = "it returns parts of the bytes, and counts"
		library = "the gRPC library calls it; it is measured with the calls that are answered through it"
		schemas = "it reads a schema of 64 KiB, whose values are counted first, or the settings of this node's file"
		started = "it reads what a plugin is told by the node that has started it"
	)
	return map[string]string{
		"bench/...": tests, "examples/...": tests, "internal/acceptance/...": tests, "tools/...": tests, "simulation/...": tests, "membership/membershipsim/...": tests,
		"sharding/internal/simulation": tests, "sharding/state/internal/simulation": tests, "sharding/delivery/internal/simulation": tests,

		"cluster level": local, "cluster wantedLocations": local, "config": local, "config/toml": local, "ddata/durable": local, "downing/lease/file": local,
		"discovery/file": local, "membership/internal/datadir": local, "transport/bearer": local, "transport/mutual parseAuthorities": local,
		"transport/mutual parsePair": local, "transport/mutual parseRevocations": local, "discovery/dns parseResolvConf": local, "sharding/delivery/internal/queuefile": local,
		"sharding/state/bolt": stored, "sharding/state/etcd": stored, "sharding/state/postgres": stored,

		"discovery/dns read": asked, "discovery/consul": asked, "discovery/etcd": asked, "discovery/httpapi": asked, "discovery/kubernetes": asked,
		"discovery/kubernetes/kubeapi": asked, "downing/lease/kubernetes": asked,

		"sharding decode": program, "sharding decodeEarly": program, "sharding restore": program, "sharding revive": program, "sharding/delivery Restore": program,
		"sharding/state": program, "sharding/typed": program, "sharding/singleton/internal/background": program,

		"machine decode": inside, "membership Decode": inside, "sharding exchange": inside, "sharding/internal/telemetry": "headers are an envelope's, of 10 KiB at most; the propagator of the program reads them",
		"discovery/multicast": small, "downing": small, "plugins UnmarshalText": small, "sharding/delivery UnmarshalText": small,
		"sharding/epoch": small, "plugins/internal/process": "it reads the lines that a plugin prints, of 16 KiB at most and one after the other",

		"machine/wire": parts, "ddata/internal/wire Cut": parts, "sharding place": parts, "sharding/internal/runtime Blank": parts,
		"transport/grpc": parts, "plugins/host Unmarshal": parts,
		"plugins/host Check": schemas, "plugins/host ReadSchema": schemas, "plugins/host measure": schemas,

		"plugins/sdk": started, "plugins/internal/policies/downingpolicy ViewFromProto": started,
		"plugins/internal/client": library, "plugins/internal/policies/discoverypolicy Decode": library, "plugins/internal/wire": inside,
	}
}
