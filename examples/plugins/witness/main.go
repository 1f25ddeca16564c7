// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Command witness is a downing plugin that asks a witness (see witnessd) for the casting
// vote when a cluster splits into halves. Keep-majority decides every other split.
// Without an answer no node is downed; in time the side gives up.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/sdk"
)

// settings are the settings under plugins.<name>.settings: where votes are asked for, and
// on behalf of which cluster.
type settings struct{ URL, Cluster string }

// request asks for the vote; answer gives or refuses it.
type request struct {
	Cluster string   `json:"cluster"`
	Side    []string `json:"side"`   // The voters of the asking side.
	Voters  []string `json:"voters"` // All voters that are not down, the asking ones included.
}

type answer struct {
	Granted bool   `json:"granted"`
	Reason  string `json:"reason"`
}

type witness struct{ settings }

func newWitness(s settings) (downing.Provider, error) {
	if u, err := url.Parse(s.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, plugins.SettingError{Key: "url", Reason: fmt.Sprintf("%q is no URL of a witness", s.URL)}
	}
	if s.Cluster == "" {
		return nil, plugins.SettingError{Key: "cluster", Reason: "is empty; give the name of the cluster"}
	}
	return &witness{s}, nil
}

// Class promises nothing: the vote goes to the side that asks first, majority or not.
func (w *witness) Class() downing.Class { return downing.Class{} }

// Decide asks the witness if the side holds half of some set of voters, and at least half
// of the other sets: two sides that do hold half each, so no third side asks.
func (w *witness) Decide(ctx context.Context, v downing.View) (downing.Decision, error) {
	side, tie := v.Side(), false
	r := request{Cluster: w.Cluster}
	for _, voters := range v.Base {
		here := 0
		for _, id := range voters {
			if !v.Votes(id) {
				continue // No side has the vote.
			}
			r.Voters = append(r.Voters, id.String())
			if side.Has(id) {
				r.Side = append(r.Side, id.String())
				here++
			}
		}
		if 2*here < len(voters) {
			return downing.KeepMajority{}.DecideNow(v)
		}
		tie = tie || here > 0 && 2*here == len(voters)
	}
	stays := slices.ContainsFunc(side.Members(), downing.CanBeDowned) // Who exits votes, but is not kept.
	if !tie || !stays || len(side.Lost()) == 0 {
		return downing.KeepMajority{}.DecideNow(v)
	}
	a, err := w.ask(ctx, r)
	if err != nil {
		return downing.Decision{}, fmt.Errorf("no vote from the witness: %w", err)
	}
	d := downing.Decision{Verdict: downing.KeepSide, Reason: fmt.Sprintf("witness: granted=%t: %.900s", a.Granted, a.Reason)}
	gone := side.Lost()
	if !a.Granted {
		d.Verdict, gone = downing.DownSide, slices.DeleteFunc(side.Members(), func(m *gossip.Member) bool { return !downing.CanBeDowned(m) })
	}
	for _, m := range gone {
		d.Down = append(d.Down, m.Node)
	}
	return d, nil
}

// ask asks the witness once. The node that asked for the decision asks again.
func (w *witness) ask(ctx context.Context, r request) (a answer, err error) {
	body, err := json.Marshal(r)
	if err != nil {
		return a, err
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	got, err := http.DefaultClient.Do(post)
	if err != nil {
		return a, err
	}
	defer func() { _ = got.Body.Close() }()
	if got.StatusCode != http.StatusOK {
		return a, fmt.Errorf("it answers %s", got.Status)
	}
	err = json.NewDecoder(io.LimitReader(got.Body, 64<<10)).Decode(&a)
	return a, err
}

func main() { sdk.Serve(sdk.Downing(newWitness), sdk.WithName("witness"), sdk.WithVersion("1.0.0")) }
