// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/cluster"
)

// CertEnds is the command that asks a running node when its certificates end.
type CertEnds struct {
	Left time.Duration `placeholder:"DURATION" help:"How long each must go on being valid, such as 336h."`

	RemoteFlags
}

// Help is the text after the one-line help.
func (*CertEnds) Help() string {
	return `Asks a node for the certificates that it has in use, its own and the authorities
of each section, and until when they are valid. The flags for certificate, key
and authorities are those by which the node is asked. The exit status is 0 when
all is well and 2 when one ends within -left or the node warns of it.

Examples:
  quorate cert ends -node http://10.0.0.7:8080
  quorate cert ends -left 336h
  quorate --json cert ends | jq -r '.certificates[].valid_until'`
}

// Run asks the node, and prints the answer.
func (c *CertEnds) Run(s *Session) error {
	var got cluster.Certificates
	raw, err := c.get("/v1/certificates", nil, &got)
	if err != nil {
		return err
	}
	if s.JSON {
		if err := s.PrintJSON(raw); err != nil {
			return err
		}
	}
	well := true
	for _, one := range got.Certificates {
		left := time.Until(one.ValidUntil)
		soon := one.Warning != "" || left < c.Left
		well = well && !soon
		if s.JSON {
			continue
		}
		what := "certificate"
		if one.Authority {
			what = "authority"
		}
		line := printable(fmt.Sprintf("%s %s %s: valid until %s, %s", one.Section, what, one.File, moment(one.ValidUntil), remaining(left)))
		if soon {
			line = s.Paint(31, line)
		}
		fmt.Fprintln(s.Stdout, line)
	}
	if len(got.Certificates) == 0 && !s.JSON {
		fmt.Fprintln(s.Stdout, "the node has no certificates")
	}
	if !well {
		return RejectedError{}
	}
	return nil
}
