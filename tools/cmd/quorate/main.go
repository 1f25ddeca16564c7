// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Command quorate checks configurations and plugins, asks running nodes, and runs
// the simulation.
//
//	quorate cert node 10.0.0.7
//	quorate config check cluster.yaml
//	quorate config reference sharding
//	quorate data check /var/lib/bank/data
//	quorate data why visits
//	quorate locations set account 0-99 10.0.0.7:7946
//	quorate members -node http://127.0.0.1:8080
//	quorate decisions -topic downing
//	quorate form
//	quorate leave 10.0.0.7:7946 -node unix:///run/bank/operators
//	quorate why acct-42 -kind account
//	quorate plugin new downing my-witness
//	quorate plugin check plugins/witness
//	quorate plugin pin cluster.yaml
//	quorate plugin list -node http://127.0.0.1:8080
//	quorate plugin swap zones -node unix:///run/bank/operators
//	quorate registry find mail
//	quorate top -node http://127.0.0.1:8080
//	quorate topics why prices
//	quorate simulate -nodes 100 -seed 7
//	quorate soak -minutes 30
//	quorate version
package main

import (
	"os"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/tools/internal/command"
	"github.com/quorate/quorate/tools/soak"
)

func main() {
	soak.Main()
	os.Exit(program().Run(os.Args[1:], os.Stdout, os.Stderr))
}

// program has all commands.
func program() command.Program {
	return command.Program{
		Name: "quorate",
		Help: "The command line of the Quorate clustering toolkit.",
		Commands: []command.Command{
			{Name: "cert", Help: "Make certificates for trials, and check given ones", Args: &command.Cert{}},
			{Name: "completion", Help: "Print a script by which a shell completes commands", Args: &command.Completion{}},
			{Name: "config", Help: "Look at configuration files", Args: command.NewConfig(check, values, translate, cluster.Default())},
			{Name: "data", Help: "Look at replicated data; take out and mend what is on disk", Args: command.NewData(os.Stdin, command.Terminal(os.Stdin))},
			{Name: "decisions", Help: "Ask a node for the decisions that it took, and why", Args: &command.Decisions{}},
			{Name: "down", Help: "Declare members failed", Args: &command.Down{}},
			{Name: "drain", Help: "Have a node host nothing, and stay a member", Args: &command.Drain{}},
			{Name: "entities", Help: "Ask a node which entities live on it", Args: &command.Entities{}},
			{Name: "events", Help: "Ask a node what has happened, and watch what happens", Args: &command.Events{}},
			{Name: "form", Help: "Let a node found a cluster although voters are gone", Args: command.NewForm(os.Stdin, command.Terminal(os.Stdin))},
			{Name: "health", Help: "Ask a node whether it is ready, as exit status", Args: &command.Health{}},
			{Name: "help", Help: "Say how a command is used", Args: &command.HelpOf{}},
			{Name: "join", Help: "Have a node that is in no cluster join one", Args: &command.Join{}},
			{Name: "leave", Help: "Have a member leave its cluster in order", Args: &command.Leave{}},
			{Name: "locations", Help: "Say on which nodes shards should live, and ask for it", Args: command.NewLocations(os.Stdin)},
			{Name: "members", Help: "Ask a node for the members of its cluster", Args: &command.Members{}},
			{Name: "move", Help: "Have a shard move to a node", Args: &command.MoveShard{}},
			{Name: "plugin", Help: "Write, try out, pin, list and swap strategies in other processes", Args: &command.Plugin{}},
			{Name: "registry", Help: "Ask a node which services are registered, and where they are", Args: &command.Registry{}},
			{Name: "reload", Help: "Have a node read its files again", Args: &command.Reload{}},
			{Name: "reshard", Help: "Change the number of shards of a kind", Args: &command.Reshard{}},
			{Name: "rescale", Help: "Change how many shards of a kind are in use", Args: &command.Rescale{}},
			{Name: "shards", Help: "Ask a node for its kinds, and where their shards live", Args: &command.Shards{}},
			{Name: "shutdown-cluster", Help: "Stop a whole cluster, ready to be started again", Args: &command.ShutdownCluster{}},
			{Name: "simulate", Help: "Run a cluster in virtual time and check its invariants", Args: &command.Simulation{}},
			{Name: "soak", Help: "Run fresh seeds over all worlds of the simulations", Args: &command.Soak{}},
			{Name: "top", Help: "Show a cluster in the terminal, live", Args: command.NewTop(os.Stdin)},
			{Name: "topics", Help: "Ask a node for topics, and where their messages go", Args: &command.Topics{}},
			{Name: "undrain", Help: "Have a drained node host again", Args: &command.Undrain{}},
			{Name: "version", Help: "Print what this program was built from", Args: &command.Version{}},
			{Name: "why", Help: "Ask a node where an entity lives, and why there", Args: &command.WhyCommand{}},
		},
	}
}
