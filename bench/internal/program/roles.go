// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"fmt"
	"maps"

	"github.com/quorate/quorate/bench/internal/awake"
	"github.com/quorate/quorate/bench/internal/data"
	"github.com/quorate/quorate/bench/internal/decisions"
	"github.com/quorate/quorate/bench/internal/entities"
	"github.com/quorate/quorate/bench/internal/failover"
	"github.com/quorate/quorate/bench/internal/floor"
	"github.com/quorate/quorate/bench/internal/management"
	"github.com/quorate/quorate/bench/internal/members"
	"github.com/quorate/quorate/bench/internal/process"
	"github.com/quorate/quorate/bench/internal/states"
	"github.com/quorate/quorate/bench/internal/traffic"
)

// allRoles returns every role but those of plugins.
func allRoles() process.Roles {
	all := process.Roles{Measurers: make(map[string]process.Measurer), Servers: make(map[string]process.Server)}
	for _, some := range []process.Roles{floor.Roles(), traffic.Roles(), entities.Roles(), failover.Roles(), states.Roles(), management.Roles(), members.Roles(), decisions.Roles(), data.Roles(), awake.Roles()} {
		maps.Copy(all.Measurers, some.Measurers)
		maps.Copy(all.Servers, some.Servers)
	}
	return all
}

// play plays a role.
func play(ctx context.Context, s process.Spec, k *process.Link) (err error) {
	stop, err := process.Profile(s)
	if err != nil {
		return err
	}
	defer stop()
	if measure := allRoles().Measurers[s.Role]; measure != nil {
		out, err := measure(ctx, s, k)
		if err != nil {
			return err
		}
		return k.Send(out)
	}
	if serve := allRoles().Servers[s.Role]; serve != nil {
		return serve(ctx, s, k)
	}
	return fmt.Errorf("bench: role %q is not known", s.Role)
}
