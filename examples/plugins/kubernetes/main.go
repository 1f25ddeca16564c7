// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Command kubernetes is a downing plugin that downs a lost member only when Kubernetes says that its machine is dead:
// its node, or its pod, is gone, or the node has not been ready for some time. Keep-majority decides which side goes
// on, so no minority does, whatever Kubernetes says. A lost member on a machine that is well stays a member: it comes
// back with the network, or an operator downs it.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/sdk"
)

// First the settings; then the decision; then how the API server is asked for the machines.

const (
	account   = "/var/run/secrets/kubernetes.io/serviceaccount/"
	maxAnswer = 64 << 20 // Bytes of a list that are read; a longer one is a fault.
	maxNamed  = 900      // Bytes of the reason that name members.
)

// settings are the settings under plugins.<name>.settings.
type settings struct {
	URL       string        // The API server; by default https://kubernetes.default.svc.
	TokenFile string        // An absolute path, read for each request; by default that of the pod's service account.
	CAFile    string        `json:"ca-file"` // Who signs for the server, likewise; empty: whom the system trusts.
	Namespace string        // Where the members' pods are; empty: members listen on the addresses of their machines.
	NotReady  time.Duration // How long a node must not have been ready: 0 to 1 h, by default 1 min.
	Timeout   time.Duration // How long the answers may take together: above 0 to 4 s, by default 3 s.
}

// SetDefaults sets what a pod has.
func (s *settings) SetDefaults() {
	*s = settings{
		URL: "https://kubernetes.default.svc", TokenFile: account + "token", CAFile: account + "ca.crt",
		NotReady: time.Minute, Timeout: 3 * time.Second,
	}
}

type provider struct {
	settings
	client *http.Client
	now    func() time.Time
}

func newProvider(s settings) (downing.Provider, error) {
	wrong := func(key, format string, args ...any) (downing.Provider, error) {
		return nil, plugins.SettingError{Key: key, Reason: fmt.Sprintf(format, args...)}
	}
	u, err := url.Parse(s.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return wrong("url", "%q is no URL of an API server", s.URL)
	case !strings.HasPrefix(s.TokenFile, "/"):
		return wrong("token-file", "%q is no absolute path", s.TokenFile)
	case s.NotReady < 0 || s.NotReady > time.Hour:
		return wrong("not-ready", "%v is not from 0s to 1h", s.NotReady)
	case s.Timeout <= 0 || s.Timeout > 4*time.Second: // A call of a plugin ends after 5 s.
		return wrong("timeout", "%v is not above 0s, up to 4s", s.Timeout)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}
	if s.CAFile != "" {
		pem, err := os.ReadFile(s.CAFile)
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		if err != nil || !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem) {
			return wrong("ca-file", "%s has no certificates: %v", s.CAFile, err)
		}
	}
	// The token goes to no other place than the one that is configured.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &provider{s, &http.Client{Transport: transport, CheckRedirect: stay}, time.Now}, nil
}

// Class says that no side goes on without a majority; what Kubernetes says may change.
func (p *provider) Class() downing.Class { return downing.Class{MajorityOnly: true} }

// Decide has keep-majority decide. Of those whom it would down on a side that goes on, only those on dead machines go.
func (p *provider) Decide(ctx context.Context, v downing.View) (downing.Decision, error) {
	d, err := downing.KeepMajority{}.DecideNow(v)
	if err != nil || d.Verdict != downing.KeepSide {
		return d, err
	}
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	dead, err := p.machines(ctx)
	if err != nil {
		return downing.Decision{}, fmt.Errorf("nothing is known of the machines: %w", err)
	}
	// If not even this node is known, the lists are of something else, and everybody would be gone.
	if own := v.Self.Address.Host; !dead.known(own) {
		return downing.Decision{}, fmt.Errorf("kubernetes knows no node or pod with the address %s, which is this node's own: set namespace", own)
	}
	var waits, why []string
	d.Down = slices.DeleteFunc(d.Down, func(id gossip.NodeID) bool {
		reason := dead.why(id.Address.Host)
		if reason == "" {
			waits = append(waits, id.Address.String())
			return true
		}
		why = append(why, id.Address.String()+": "+reason)
		return false
	})
	if len(d.Down) == 0 {
		return downing.Decision{Reason: fmt.Sprintf("kubernetes: the machines of lost members are well: %.*s", maxNamed, strings.Join(waits, ", "))}, nil
	}
	d.Reason = fmt.Sprintf("kubernetes: %.*s; %d others wait", maxNamed, strings.Join(why, ", "), len(waits))
	return d, nil
}

// machines are the addresses that Kubernetes knows, each with the reason why its machine is dead; empty where it is
// well.
type machines map[string]string

func (m machines) known(host string) bool { _, ok := m[host]; return ok }

func (m machines) why(host string) string {
	if reason, ok := m[host]; ok {
		return reason
	}
	return "its node or pod is gone"
}

// nodeList and podList are what is read of the lists of the API.
type nodeList struct {
	Items []struct {
		Metadata struct{ Name string }
		Status   struct {
			Addresses  []struct{ Address string }
			Conditions []struct {
				Type, Status       string
				LastTransitionTime time.Time
			}
		}
	}
}

type podList struct {
	Items []struct {
		Spec   struct{ NodeName string }
		Status struct {
			Phase  string
			PodIPs []struct{ IP string }
		}
	}
}

// machines asks for the nodes, and then for the pods: a pod that comes between is on a node that is known.
func (p *provider) machines(ctx context.Context) (machines, error) {
	var all nodeList
	if err := p.list(ctx, "/api/v1/nodes", &all); err != nil {
		return nil, err
	}
	if len(all.Items) == 0 {
		return nil, errors.New("the list of nodes is empty")
	}
	byName, byAddress := machines{}, machines{}
	for _, n := range all.Items {
		reason := ""
		for _, c := range n.Status.Conditions {
			if since := p.now().Sub(c.LastTransitionTime); c.Type == "Ready" && c.Status != "True" && !c.LastTransitionTime.IsZero() && since > p.NotReady {
				reason = fmt.Sprintf("its node %s has not been ready for %v", n.Metadata.Name, since.Round(time.Second))
			}
		}
		byName[n.Metadata.Name] = reason
		for _, a := range n.Status.Addresses {
			byAddress[a.Address] = reason
		}
	}
	if p.Namespace == "" {
		return byAddress, nil
	}
	var members podList
	if err := p.list(ctx, "/api/v1/namespaces/"+url.PathEscape(p.Namespace)+"/pods", &members); err != nil {
		return nil, err
	}
	for _, pod := range members.Items {
		if pod.Status.Phase == "Succeeded" || pod.Status.Phase == "Failed" {
			continue // Its process has ended, and another pod may have its address.
		}
		for _, ip := range pod.Status.PodIPs {
			byAddress[ip.IP] = byName.why(pod.Spec.NodeName)
		}
	}
	return byAddress, nil
}

// list gets a list of the API.
func (p *provider) list(ctx context.Context, path string, into any) error {
	token, err := os.ReadFile(p.TokenFile)
	if err != nil {
		return err
	}
	get, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL+path, nil)
	if err != nil {
		return err
	}
	get.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	got, err := p.client.Do(get)
	if err != nil {
		return err
	}
	defer func() { _ = got.Body.Close() }()
	if got.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", path, got.Status)
	}
	if err := json.NewDecoder(io.LimitReader(got.Body, maxAnswer)).Decode(into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func main() {
	sdk.Serve(sdk.Downing(newProvider), sdk.WithName("kubernetes"), sdk.WithVersion("1.0.0"))
}
