// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"

	"github.com/quorate/quorate/management"
)

// Health is the command that asks a node for one of its health checks, for probes that run a command.
type Health struct {
	Check string `arg:"" optional:"" default:"ready" enum:"ready,live,startup" help:"What to ask: ready, live or startup (${default})."`

	RemoteFlags
}

// Help is the text after the one-line help.
func (*Health) Help() string {
	return `Asks a node whether it is ready, live, or has been up once, and ends with exit status
0 if it is, and 1 with the reasons if it is not, or does not answer. It is for probes
that run a command, in images without a shell and without curl, and for people.
A node that is live and not ready must not be restarted for that.

Examples:
  quorate health
  quorate health live -timeout 1s
  quorate health ready -node http://127.0.0.1:8081
  quorate --json health | jq -r '.reasons[]'`
}

// Run asks the node, and prints the answer.
func (c *Health) Run(s *Session) error {
	var got management.HealthStatus
	raw, err := c.get("/health/"+c.Check, nil, &got)
	if refused := new(refusedError); s.JSON && errors.As(err, &refused) {
		return errors.Join(s.PrintJSON(refused.raw), errSaid)
	}
	if err != nil {
		return err
	}
	if s.JSON {
		return s.PrintJSON(raw)
	}
	fmt.Fprintln(s.Stdout, s.Paint(32, printable(got.Status)))
	for _, warning := range got.Warnings {
		field(s.Stdout, "warning", warning)
	}
	return nil
}

// errSaid is the error of a command that has failed and has said so itself.
var errSaid = errors.New("")
