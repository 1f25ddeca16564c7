// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Command approval is a join decider plugin that asks an endpoint of the operator before a node
// forms a new cluster. Whether the node may form one at all is decided by the built-in rule, the
// lowest address; a cluster that goes on is joined without asking. So a service whose data is in
// a cluster that cannot be reached does not begin anew without somebody who knows.
//
// The endpoint gets a POST with a [request], and answers 200 with an [answer], both in JSON.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/quorate/quorate/discovery/bootstrap"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/sdk"
)

const (
	maxAnswer = 64 << 10 // Bytes of an answer that are read.
	maxReason = 900      // Bytes of the operator's reason that are passed on.
)

// settings are the settings under plugins.<name>.settings.
type settings struct {
	URL       string        // The endpoint.
	TokenFile string        // An absolute path: the file holds a bearer token, and is read for each request; empty: no token is sent.
	Timeout   time.Duration // How long an answer may take: above 0, by default 3 s.
}

// SetDefaults sets the timeout.
func (s *settings) SetDefaults() { s.Timeout = 3 * time.Second }

// request asks whether a node may form a cluster; answer allows or refuses it.
type request struct {
	Service string   `json:"service"`
	Node    string   `json:"node"`   // The contact point that would form the cluster.
	Points  []string `json:"points"` // All contact points that were found, also those that do not answer.
}

type answer struct {
	Allowed *bool  `json:"allowed"` // Must be there: an answer of somebody else has none.
	Reason  string `json:"reason"`
}

type approval struct {
	settings
	client *http.Client
}

func newApproval(s settings) (bootstrap.JoinDecider, error) {
	u, err := url.Parse(s.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, plugins.SettingError{Key: "url", Reason: fmt.Sprintf("%q is no URL of an endpoint", s.URL)}
	case s.TokenFile != "" && !strings.HasPrefix(s.TokenFile, "/"):
		return nil, plugins.SettingError{Key: "token-file", Reason: fmt.Sprintf("%q is no absolute path", s.TokenFile)}
	case s.Timeout <= 0:
		return nil, plugins.SettingError{Key: "timeout", Reason: fmt.Sprintf("%v is not above 0s", s.Timeout)}
	}
	// The token goes to no other place than the one that is configured.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &approval{s, &http.Client{CheckRedirect: stay, Timeout: s.Timeout}}, nil
}

// Class promises nothing: the operator's mind may change.
func (a *approval) Class() bootstrap.Class { return bootstrap.Class{} }

// Decide asks the endpoint if the built-in rule lets this node form a cluster.
func (a *approval) Decide(ctx context.Context, o bootstrap.Observations) (bootstrap.Decision, error) {
	d := bootstrap.LowestAddress{}.DecideNow(o)
	if d.Action != bootstrap.Form {
		return d, nil
	}
	r := request{Service: o.Service, Node: o.Self.String()}
	for _, p := range o.Points {
		r.Points = append(r.Points, p.Point.String())
	}
	got, err := a.ask(ctx, r)
	if err != nil {
		return bootstrap.Decision{}, fmt.Errorf("no approval from %s: %w", a.URL, err)
	}
	reason := got.Reason[:min(len(got.Reason), maxReason)]
	if !*got.Allowed {
		return bootstrap.Decision{Reason: "the operator has not approved a new cluster: " + reason}, nil
	}
	d.Reason += ", and the operator approves: " + reason
	return d, nil
}

// ask asks the endpoint once. The node asks for another decision later.
func (a *approval) ask(ctx context.Context, r request) (got answer, err error) {
	body, err := json.Marshal(r)
	if err != nil {
		return got, err
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, a.URL, bytes.NewReader(body))
	if err != nil {
		return got, err
	}
	post.Header.Set("Content-Type", "application/json")
	if a.TokenFile != "" {
		token, err := os.ReadFile(a.TokenFile)
		if err != nil {
			return got, err
		}
		post.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	back, err := a.client.Do(post)
	if err != nil {
		return got, err
	}
	defer func() { _ = back.Body.Close() }()
	if back.StatusCode != http.StatusOK {
		return got, fmt.Errorf("it answers %s", back.Status)
	}
	if err := json.NewDecoder(io.LimitReader(back.Body, maxAnswer)).Decode(&got); err != nil {
		return got, fmt.Errorf("its answer: %w", err)
	}
	if got.Allowed == nil {
		return got, errors.New(`its answer has no field "allowed"`)
	}
	return got, nil
}

func main() {
	sdk.Serve(sdk.JoinDecider(newApproval), sdk.WithName("approval"), sdk.WithVersion("1.0.0"))
}
