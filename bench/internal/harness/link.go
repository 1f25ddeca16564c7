// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"time"
)

// A child has a link to its parent, with which a peer says where it is and answers requests
// ([Link.Host]), and through which a process that measures starts peers of its own ([Link.Peer],
// [Peers]).

// Link is the connection of a process to its parent.
type Link struct {
	Launcher

	requests chan string // Closed when the parent process is gone.
	out      *json.Encoder
}

// exitOrphaned is the exit status of a process that did not end with its parent.
const exitOrphaned = 1

// NewLink returns a link over the standard streams. The context ends with the
// parent; a process that then does not end by itself is ended.
func NewLink(ctx context.Context, l Launcher, in io.Reader, out io.Writer) (context.Context, *Link) {
	ctx, cancel := context.WithCancelCause(ctx)
	k := &Link{Launcher: l, requests: make(chan string), out: json.NewEncoder(out)}
	// Owned by the process: ends with its standard input.
	go func() {
		lines := bufio.NewScanner(in)
		for lines.Scan() {
			k.requests <- lines.Text()
		}
		close(k.requests)
		cancel(errParentGone)
		time.AfterFunc(Patience/2, func() { os.Exit(exitOrphaned) })
	}()
	return ctx, k
}

var errParentGone = errors.New("the parent process has ended")

// Send sends an answer.
func (k *Link) Send(v any) error { return k.out.Encode(v) }

// Hello is the first answer of a peer.
type Hello struct {
	Address string `json:"address"`
}

// Answers has, for each request, what answers it.
type Answers map[string]func() (any, error)

// Host says hello from an address, and answers the parent's requests until the parent is gone.
func (k *Link) Host(address string, answers Answers) error {
	if err := k.Send(Hello{Address: address}); err != nil {
		return err
	}
	for request := range k.requests {
		answer := answers[request]
		if answer == nil {
			return fmt.Errorf("bench: request %q is not known", request)
		}
		v, err := answer()
		if err == nil {
			err = k.Send(v)
		}
		if err != nil {
			return err
		}
	}
	return nil
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

// Peers are the other nodes of a cluster, each in a process of its own, the oldest first.
type Peers struct {
	link *Link
	all  []*Process
	at   []string // Their addresses.
}

// Peers returns no peers yet.
func (k *Link) Peers() *Peers { return &Peers{link: k} }

// Add starts one more peer and waits until it is ready.
func (p *Peers) Add(ctx context.Context, s Spec) error {
	one, address, err := p.link.Peer(ctx, s)
	if err == nil {
		p.all, p.at = append(p.all, one), append(p.at, address)
	}
	return err
}

// Len returns how many peers there are.
func (p *Peers) Len() int { return len(p.all) }

// Address returns the address of the i-th peer.
func (p *Peers) Address(i int) string { return p.at[i] }

// Youngest returns the peer that was added last.
func (p *Peers) Youngest() *Process { return p.all[len(p.all)-1] }

// Take takes the i-th peer out, to be ended by the caller.
func (p *Peers) Take(i int) *Process {
	one := p.all[i]
	p.all, p.at = append(p.all[:i:i], p.all[i+1:]...), append(p.at[:i:i], p.at[i+1:]...)
	return one
}

// Stop ends all peers.
func (p *Peers) Stop() {
	for _, one := range p.all {
		one.Stop()
	}
}

// AskAll sends a request to each peer, one after the other, and returns the answers.
func AskAll[T any](ctx context.Context, p *Peers, request string) ([]T, error) {
	all := make([]T, p.Len())
	for i, one := range p.all {
		if err := one.Call(ctx, request, &all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Profile begins a profile of the processor time, if one is wanted, and returns the
// function that ends it.
func Profile(s Spec) (stop func(), err error) {
	if s.Profile == "" {
		return func() {}, nil
	}
	role := strings.ReplaceAll(s.Role, "/", "-")
	file, err := os.Create(filepath.Join(s.Profile, fmt.Sprintf("%s-%dB-%d.pprof", role, s.Size, os.Getpid())))
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
