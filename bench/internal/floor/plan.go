// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package floor measures what the machine can do at most, with the same messages, the
// same checks and the same way of measuring as the product, but with nothing in between
// except a channel, a TCP connection or a gRPC stream.
package floor

import (
	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/plan"
	"github.com/quorate/quorate/bench/internal/process"
)

// Channel measures the floor within one process.
func Channel() plan.Experiment {
	return plan.Single(process.Spec{Role: RoleChannel, Size: 64, Senders: plan.Senders}, figure.Figure{Name: "floor-channel"}).AsFloor()
}

// The roles that measure floors.
const (
	RoleChannel = "channel"
	RoleTCP     = "tcp"
	RoleGRPC    = "grpc"
	RoleTCPAsk  = "tcp-ask"
	RoleGRPCAsk = "grpc-ask"
)

// The roles of the peers of floors.
const (
	roleTCPSink  = "tcp-sink"
	roleTCPEcho  = "tcp-echo"
	roleGRPCSink = "grpc-sink"
	roleGRPCEcho = "grpc-echo"
)

// Roles returns the roles of the floors.
func Roles() process.Roles {
	return process.Roles{
		Measurers: map[string]process.Measurer{
			RoleChannel: measureChannel, RoleTCP: measureTCP, RoleGRPC: measureGRPC, RoleTCPAsk: measureTCPAsk, RoleGRPCAsk: measureGRPCAsk,
		},
		Servers: map[string]process.Server{
			roleTCPSink: serveTCPSink, roleTCPEcho: serveTCPEcho, roleGRPCSink: serveGRPCSink, roleGRPCEcho: serveGRPCEcho,
		},
	}
}
