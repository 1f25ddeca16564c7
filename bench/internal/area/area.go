// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package area has the tables of figures, a file for each area of the toolkit, and beside each
// table what measures its figures:
//
//	traffic.go     tells and asks: on one node, between two, over both wires, by a client
//	entities.go    entities by the number: come to life, idle, remembered, reminded
//	failover.go    a node joins, nodes are restarted, a node is killed
//	states.go      changes of entities are saved in PostgreSQL
//	data.go        replicated data: updates, bytes, disks, a node that takes over a million keys
//	plugins.go     strategies that run in another process
//	management.go  requests and health checks beside a quiet cluster
//	members.go     many real nodes: running, starting at once, and in virtual time
//
// [Groups] is the list of all tables. A new group is a function in it, with an experiment for
// each function that measures; a process that such a function starts has its role in [Servers].
//
// The nodes of all areas are started in node.go, and those in other processes by
// [rig.Peers]. Whoever starts a node ends it; all of them end with the process.
package area

import (
	"maps"

	"github.com/quorate/quorate/bench/internal/rig"
	"github.com/quorate/quorate/plugins/sdk"
)

// Groups returns everything that can be measured, in the order in which it is shown.
func Groups() []rig.Group {
	return []rig.Group{
		localGroup(), remoteGroup(), askGroup(), clientGroup(), wiresGroup(),
		activationGroup(), idleGroup(), rememberedGroup(), remindersGroup(),
		joinGroup(), rebalanceGroup(), rollingGroup(), killGroup(),
		statesGroup(), telemetryGroup(), pluginsGroup(), dataGroup(), managementGroup(),
		runningGroup(), bootGroup(), bootstrapGroup(), simulatedGroup(),
	}
}

// The roles of peers.
const (
	roleHost         = "host"         // Hosts entities that a member asks.
	roleGateway      = "gateway"      // Hosts entities that a client asks which is no member.
	roleMember       = "member"       // One more node of a cluster that changes.
	roleReplica      = "replica"      // Has replicated data.
	roleReader       = "reader"       // Has subscribers to topics.
	roleBootstrapped = "bootstrapped" // A node of a cluster that forms by itself.
	roleAsker        = "asker"        // Sends requests to the management of a node.
	roleSilent       = "silent"       // Connects to the management of a node, and says nothing.
)

// Servers returns the peers of all experiments, by their roles.
func Servers() map[string]rig.Server {
	all := map[string]rig.Server{
		roleHost: serveHost, roleGateway: serveGateway, roleMember: serveMember, roleReplica: serveReplica, roleReader: serveReader,
		roleBootstrapped: serveBootstrapped, roleAsker: serveAsker, roleSilent: serveSilent,
	}
	maps.Copy(all, rig.Servers())
	return all
}

// Plugins returns, by their roles, the plugins that the program can be. Each ends the process.
func Plugins() map[string]func() {
	all := map[string]func(){}
	for role, strategy := range strategies() {
		all[role] = func() { sdk.Serve(strategy, sdk.WithName(role), sdk.WithVersion("1.0.0")) }
	}
	return all
}
