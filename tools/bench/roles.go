// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
)

// The roles of a process. Those of the first block measure and answer with one
// outcome; those of the second are their peers; those of the third are plugins, which
// the host of plugins starts.
const (
	roleChannel    = "channel"
	roleTCP        = "tcp"
	roleGRPC       = "grpc"
	roleTCPAsk     = "tcp-ask"
	roleGRPCAsk    = "grpc-ask"
	roleLocal      = "local"
	roleRemote     = "remote"
	roleAsk        = "ask"
	roleActivation = "activation"
	roleIdle       = "idle"
	roleJoin       = "join"
	roleKill       = "kill"
	roleMembers    = "members"
	roleBoot       = "boot"
	roleSimulated  = "simulated"
	roleLaunch     = "launch"
	roleDecide     = "decide"
	roleAllocate   = "allocate"

	roleTCPSink  = "tcp-sink"
	roleTCPEcho  = "tcp-echo"
	roleGRPCSink = "grpc-sink"
	roleGRPCEcho = "grpc-echo"
	roleHost     = "host"
	roleMember   = "member"
	roleAwake    = "awake"

	roleDowningPlugin    = "downing-plugin"
	roleAllocationPlugin = "allocation-plugin"
)

// measurer measures once.
type measurer func(context.Context, spec, *link) (outcome, error)

// server is a peer: it serves until its parent is gone.
type server func(context.Context, spec, *link) error

// measurers returns the roles that measure.
func measurers() map[string]measurer {
	return map[string]measurer{
		roleChannel: measureChannel, roleTCP: measureTCP, roleGRPC: measureGRPC, roleTCPAsk: measureTCPAsk, roleGRPCAsk: measureGRPCAsk,
		roleLocal: measureLocal, roleRemote: measureRemote, roleAsk: measureAsk,
		roleActivation: measureActivation, roleIdle: measureIdle, roleJoin: measureJoin, roleKill: measureKill,
		roleMembers: measureMembers, roleBoot: measureBoot, roleSimulated: measureSimulated,
		roleLaunch: measureLaunch, roleDecide: measureDecide, roleAllocate: measureAllocate,
	}
}

// servers returns the roles of peers.
func servers() map[string]server {
	return map[string]server{
		roleTCPSink: serveTCPSink, roleTCPEcho: serveTCPEcho, roleGRPCSink: serveGRPCSink, roleGRPCEcho: serveGRPCEcho,
		roleHost: serveHost, roleMember: serveMember, roleAwake: serveAwake,
	}
}

// play plays a role.
func play(ctx context.Context, s spec, k *link) (err error) {
	stop, err := profile(s)
	if err != nil {
		return err
	}
	defer stop()
	if measure := measurers()[s.Role]; measure != nil {
		out, err := measure(ctx, s, k)
		if err != nil {
			return err
		}
		return k.send(out)
	}
	if serve := servers()[s.Role]; serve != nil {
		return serve(ctx, s, k)
	}
	return fmt.Errorf("bench: role %q is not known", s.Role)
}

// profile begins a profile of the processor's time, if one is wanted, and
// returns what ends it.
func profile(s spec) (stop func(), err error) {
	if s.Profile == "" {
		return func() {}, nil
	}
	file, err := os.Create(filepath.Join(s.Profile, fmt.Sprintf("%s-%dB-%d.pprof", s.Role, s.Size, os.Getpid())))
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		_ = file.Close() // The profile is for people, who see that it is cut.
	}, nil
}
