// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
)

// Hello is the first answer of a peer.
type Hello struct {
	Address string `json:"address"`
}

// Peer starts a process and waits until it is ready.
func (k *Link) Peer(ctx context.Context, s Spec) (*Process, string, error) {
	p, err := k.Start(s)
	if err != nil {
		return nil, "", err
	}
	var first Hello
	if err := p.Answer(ctx, &first); err != nil {
		p.Kill()
		return nil, "", err
	}
	return p, first.Address, nil
}
