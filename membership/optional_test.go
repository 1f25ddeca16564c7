// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/transport"
)

type (
	oddProvider  struct{ downing.Provider }
	oddDetector  struct{ fd.Detector }
	oddDiscovery struct{ discovery.Discovery }
	oddTransport struct{ transport.Transport }
)

// closing is a transport that is only closed.
type closing struct{ transport.Transport }

func (closing) Close() error { return nil }

func (oddProvider) Keeps() string      { return "" }
func (oddDetector) Phi() float64       { return 0 }
func (oddDiscovery) Announce() error   { return nil }
func (oddTransport) Answer(string) int { return 0 }

// A node does not start with a policy that has a method with the name of an optional one and another signature: the
// method would never be called.
func TestAPolicyWithAnotherSignatureIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		found := config(1)
		found.Membership.Discovery.Methods, found.Membership.SeedNodes = []string{"odd"}, nil
		detected := config(1)
		detected.Membership.FailureDetector.Strategy = "odd"
		for method, c := range map[string]struct {
			cfg membership.Config
			opt membership.Option
		}{
			"method Keeps of membership_test.oddProvider":     {config(1), membership.WithDowning(membership.Downing{Provider: oddProvider{downing.KeepMajority{}}})},
			"method Phi of membership_test.oddDetector":       {detected, membership.WithFailureDetector("odd", func() fd.Detector { return oddDetector{} })},
			"method Announce of membership_test.oddDiscovery": {found, membership.WithDiscovery(discovery.Method{Name: "odd", Discovery: oddDiscovery{}})},
		} {
			_, err := membership.Start(t.Context(), c.cfg, append(p.options(), c.opt)...)
			require.ErrorContains(t, err, method)
			require.ErrorContains(t, err, "it would never be called")
		}
		odd := func(transport.Identity, transport.Config, func(transport.Notice)) (transport.Transport, error) {
			return oddTransport{closing{}}, nil
		}
		_, err := membership.Start(t.Context(), config(1), append(p.options(), membership.WithTransport(odd))...)
		require.ErrorContains(t, err, "method Answer of membership_test.oddTransport")
	})
}
