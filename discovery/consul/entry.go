// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package consul

// An answer becomes a list of entries, and these become contact points. Of each registration
// the address and the ports are kept. The answer is decoded one registration at a time, since
// the rest of it, checks and their output, is far longer than what is kept.

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"

	"github.com/quorate/quorate/discovery"
)

// portPrefix begins the keys of a registration's metadata that name further ports.
const portPrefix = "port-"

const (
	maxPorts     = 100 // more than Consul allows keys
	addressBytes = 253 // the longest name of a host
)

// entry is one registration.
type entry struct {
	host  string // not checked
	port  uint16 // 0 if there is none
	ports map[string]uint16
}

type entryJSON struct {
	Node struct {
		Address string
	}
	Service struct {
		Address string
		Port    uint16
		Meta    map[string]string
	}
}

// decode reads the registrations of an answer.
func decode(body io.Reader) ([]entry, error) {
	limited := &io.LimitedReader{R: body, N: maxAnswerBytes}
	decoder := json.NewDecoder(limited)
	entries, err := decodeAll(decoder)
	switch {
	case err == nil:
		return entries, nil
	case limited.N == 0:
		return nil, fmt.Errorf("%w: it has more than %d bytes", ErrMalformed, maxAnswerBytes)
	case errors.Is(err, errTooMany):
		return nil, err
	default:
		return nil, fmt.Errorf("%w: a list that cannot be read: %w", ErrMalformed, err)
	}
}

var errTooMany = fmt.Errorf("more than %d registrations: set tags", discovery.MaxTargets)

func decodeAll(decoder *json.Decoder) ([]entry, error) {
	if open, err := decoder.Token(); err != nil || open != json.Delim('[') {
		return nil, errors.Join(errors.New("no list"), err)
	}
	var entries []entry
	for decoder.More() {
		var given entryJSON
		if err := decoder.Decode(&given); err != nil {
			return nil, err
		}
		if len(entries) == discovery.MaxTargets {
			return nil, errTooMany
		}
		e, err := read(given)
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	if _, err := decoder.Token(); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more behind the list")
	}
	return entries, nil
}

// read takes the host and the ports of a registration. A registration without an address of
// its own is reached at the address of its node.
func read(given entryJSON) (entry, error) {
	e := entry{host: given.Service.Address, port: given.Service.Port}
	if e.host == "" {
		e.host = given.Node.Address
	}
	if len(e.host) > addressBytes {
		return entry{}, fmt.Errorf("an address of %d bytes", len(e.host))
	}
	for key, value := range given.Service.Meta {
		name, named := strings.CutPrefix(key, portPrefix)
		number, err := strconv.ParseUint(value, 10, 16)
		if !named || err != nil || number == 0 {
			continue
		}
		if e.ports == nil {
			e.ports = make(map[string]uint16)
		}
		if len(e.ports) == maxPorts || len(name) > maxNameBytes {
			return entry{}, errors.New("more or longer names of ports than Consul allows")
		}
		e.ports[name] = uint16(number)
	}
	return e, nil
}

// target returns the contact point of a registration. Its port is the given one if that is a
// number, the port of that name if the metadata has it, and otherwise the port of the
// registration.
func (e entry) target(port string) (discovery.Target, error) {
	number := e.port
	if asked, err := strconv.ParseUint(port, 10, 16); err == nil && asked > 0 {
		number = uint16(asked)
	} else if named, ok := e.ports[port]; ok {
		number = named
	}
	t := discovery.Target{Host: strings.ToLower(e.host), Port: number}
	if ip, err := netip.ParseAddr(e.host); err == nil {
		t.IP = ip.Unmap()
		t.Host = t.IP.String()
	}
	return t, t.Validate()
}

// targets returns the contact points of registrations. A registration without a valid address
// is left out and counted: its mistake says nothing about the others.
func targets(entries []entry, port string) ([]discovery.Target, int, error) {
	list := make([]discovery.Target, 0, len(entries))
	bad := 0
	for _, e := range entries {
		t, err := e.target(port)
		if err != nil {
			bad++
			continue
		}
		list = append(list, t)
	}
	list, err := discovery.Distinct(list)
	return list, bad, err
}
