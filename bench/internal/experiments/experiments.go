// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"maps"

	"github.com/quorate/quorate/bench/internal/harness"
	"github.com/quorate/quorate/plugins/sdk"
)

// Groups returns everything that can be measured, in the order in which it is shown.
func Groups() []harness.Group {
	return []harness.Group{
		localGroup(), remoteGroup(), askGroup(), clientGroup(), wiresGroup(),
		activationGroup(), idleGroup(), rememberedGroup(), remindersGroup(),
		joinGroup(), rebalanceGroup(), rollingGroup(), killGroup(),
		statesGroup(), telemetryGroup(), pluginsGroup(), dataGroup(), managementGroup(),
		runningGroup(), quietGroup(), bootGroup(), bootstrapGroup(), simulatedGroup(),
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
func Servers() map[string]harness.Server {
	all := map[string]harness.Server{
		roleHost: serveHost, roleGateway: serveGateway, roleMember: serveMember, roleReplica: serveReplica, roleReader: serveReader,
		roleBootstrapped: serveBootstrapped, roleAsker: serveAsker, roleSilent: serveSilent,
	}
	maps.Copy(all, harness.Servers())
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
