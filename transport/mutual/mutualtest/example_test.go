// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package mutualtest_test

import (
	"testing"

	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/mutual"
	"github.com/quorate/quorate/transport/mutual/mutualtest"
)

// Files for a node that shows its certificate, in a test: this is the body of
// func TestWithCertificates(t *testing.T).
func ExampleAuthority() {
	t := new(testing.T) // The parameter of the test.
	authority := mutualtest.NewAuthority(t, "bank")
	teller := authority.Issue(t, mutualtest.Leaf{Host: "127.0.0.1", Identities: []string{"quorate://bank/teller"}})
	cfg := transport.Default()
	cfg.TLS = authority.Write(t, t.TempDir(), teller)
	files, err := mutual.Open(cfg.TLS, func(c mutual.Change) { t.Log(c.Files, c.Err) })
	if err != nil {
		t.Fatal(err)
	}
	go files.Watch(t.Context()) // Ends with the test.
}
