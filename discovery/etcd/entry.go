// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/quorate/quorate/discovery"

	"github.com/quorate/quorate/config/field"
)

const (
	maxValueBytes = 4096 // the longest value that is read, far longer than any that this package writes
	maxPorts      = 20
)

// Entry is what a node registers: the address and the ports at which it can be reached.
type Entry struct {
	// Service is the name of the service that the node belongs to: letters, digits,
	// hyphens, underscores and dots.
	Service string `json:"-"`
	// Host is a name in lower case, or an IP address, at which other nodes reach this node.
	Host string `json:"host"`
	// Port is the port that a lookup finds which names no port, or a port that is not in
	// Ports.
	Port uint16 `json:"port"`
	// Ports are further ports by their names, at most 20.
	Ports map[string]uint16 `json:"ports,omitempty"`
}

// Validate reports what is wrong with e.
func (e Entry) Validate() error {
	if !isName(e.Service) {
		return fmt.Errorf("%q is no name of a service", field.Clip(e.Service))
	}
	return e.check()
}

// check reports what is wrong with the value.
func (e Entry) check() error {
	if len(e.Ports) > maxPorts {
		return fmt.Errorf("%d ports are more than %d", len(e.Ports), maxPorts)
	}
	for name, number := range e.Ports {
		if !isName(name) || number == 0 {
			return fmt.Errorf("the port %q with the number %d", field.Clip(name), number)
		}
	}
	if e.Port == 0 {
		return errors.New("the port is 0")
	}
	return e.target("").Validate()
}

// key returns the key of e below a prefix. The key ends with the address, so that a node
// that comes back replaces the entry that it has left.
func (e Entry) key(prefix string) string {
	return servicePrefix(prefix, e.Service) + e.target("").String()
}

func servicePrefix(prefix, service string) string { return prefix + service + "/" }

func (e Entry) value() (string, error) {
	data, err := json.Marshal(e)
	return string(data), err
}

// decode reads a value.
func decode(data []byte) (Entry, error) {
	if len(data) > maxValueBytes {
		return Entry{}, fmt.Errorf("a value of %d bytes is longer than %d", len(data), maxValueBytes)
	}
	var e Entry
	if err := json.Unmarshal(data, &e); err != nil {
		return Entry{}, err
	}
	if err := e.check(); err != nil {
		return Entry{}, err
	}
	return e, nil
}

// target returns the contact point of an entry. Its port is the given one if that is a number,
// the port of that name if the entry has it, and otherwise the port of the entry.
func (e Entry) target(port string) discovery.Target {
	t := discovery.Target{Host: e.Host, Port: e.Port}
	if number, err := strconv.ParseUint(port, 10, 16); err == nil && number > 0 {
		t.Port = uint16(number)
	} else if number, ok := e.Ports[port]; ok {
		t.Port = number
	}
	if ip, err := netip.ParseAddr(e.Host); err == nil {
		t.IP = ip
	}
	return t
}
