// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

// A store holds the objects of one selector: a watch puts objects in and takes them out, and a
// lookup turns them into contact points. First the store, then how a lookup chooses an address
// and a port of each endpoint, and counts the endpoints that it leaves out.

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/quorate/quorate/discovery"

	"github.com/quorate/quorate/config/field"
)

var errTooMany = fmt.Errorf("more than %d endpoints: write a narrower selector", discovery.MaxTargets)

// store holds the objects by name, with at most [discovery.MaxTargets] endpoints.
type store struct {
	where string // the kind, selector and namespace of the objects, in words

	mu      sync.Mutex // guards objects and held
	objects map[string]object
	held    int // the number of endpoints
}

func newStore(where string) *store {
	return &store{where: where, objects: make(map[string]object)}
}

// put adds an object, or replaces the object of the same name.
func (s *store) put(o object) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	earlier, known := s.objects[o.name]
	held := s.held - len(earlier.endpoints) + len(o.endpoints)
	if held > discovery.MaxTargets || !known && len(s.objects) == discovery.MaxTargets {
		return errTooMany
	}
	s.objects[o.name], s.held = o, held
	return nil
}

func (s *store) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held -= len(s.objects[name].endpoints)
	delete(s.objects, name)
}

// endpointFilter is what a lookup wants of each endpoint.
type endpointFilter struct {
	port      string
	protocol  string
	family    string
	readyOnly bool
}

// targets returns the contact points among the objects. Endpoints that all lack the
// port are an error: the name of the port is probably wrong, and an empty answer would say
// that there are no pods.
func (s *store) targets(want endpointFilter) (discovery.Targets, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := tally{found: make(map[string]discovery.Target), left: make(map[string]string), ports: make(map[string]bool)}
	for _, name := range slices.Sorted(maps.Keys(s.objects)) {
		for _, e := range s.objects[name].endpoints {
			t.add(e, want)
		}
	}
	for id := range t.found {
		delete(t.left, id) // Another slice has what the first one lacked.
	}
	if len(t.found) == 0 && t.portless > 0 {
		return discovery.Targets{}, fmt.Errorf("%s: %d found, none with a port %q; they have %s: "+
			"name the port in the manifest, or ask for its number", s.where, t.portless, field.Clip(want.port), t.portNames())
	}
	list := slices.SortedFunc(maps.Values(t.found), discovery.Target.Compare)
	return discovery.Targets{List: slices.Compact(list), Reason: s.where + ": " + t.String()}, nil
}

// tally counts endpoints by their id: a pod may be in several slices, one for each
// family of addresses and each set of ports.
type tally struct {
	found    map[string]discovery.Target
	left     map[string]string // why an endpoint was left out
	ports    map[string]bool   // the names of the ports of endpoints without the wanted port
	portless int               // how many endpoints lack the wanted port
}

func (t *tally) add(e endpoint, want endpointFilter) {
	target, reason := choose(e, want)
	earlier, known := t.found[e.id]
	switch {
	case reason == "" && (!known || better(target, earlier)):
		t.found[e.id] = target
	case reason == "":
	default:
		t.left[cmp.Or(e.id, "no id "+strconv.Itoa(len(t.left)))] = reason
	}
	if reason == withoutPort {
		t.portless++
		for _, p := range e.ports {
			t.ports[p.Name] = true
		}
	}
}

// better reports whether a contact point is to be preferred to an earlier one of the
// same endpoint: an address to a name, one of version 4 to one of version 6, and
// otherwise the lower one, so that the choice does not depend on the order of slices.
func better(t, earlier discovery.Target) bool {
	return t.IP.IsValid() && (!earlier.IP.IsValid() || t.IP.Less(earlier.IP))
}

// String gives the number of endpoints that were taken, and of those that were left out for
// each reason, in a fixed order.
func (t *tally) String() string {
	counts := make(map[string]int)
	for _, reason := range t.left {
		counts[reason]++
	}
	var reasons []string
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		reasons = append(reasons, fmt.Sprintf("%d %s", counts[reason], reason))
	}
	text := fmt.Sprintf("%d of %d", len(t.found), len(t.found)+len(t.left))
	if len(reasons) > 0 {
		text += ", left out " + strings.Join(reasons, ", ")
	}
	return text
}

// portNames lists some names of ports for a message.
func (t *tally) portNames() string {
	const shown = 10
	names := slices.Sorted(maps.Keys(t.ports))
	if len(names) == 0 {
		return "none"
	}
	for i, name := range names {
		names[i] = strconv.Quote(name)
	}
	return strings.Join(names[:min(shown, len(names))], ", ")
}

const (
	notReady    = "not ready"
	badAddress  = "with an address that is none"
	otherFamily = "without an address of the family"
	withoutPort = "without the port"
)

// choose returns the contact point of an endpoint, or why there is none.
func choose(e endpoint, want endpointFilter) (discovery.Target, string) {
	if e.leftOut != "" {
		return discovery.Target{}, e.leftOut
	}
	if want.readyOnly && !e.ready {
		return discovery.Target{}, notReady
	}
	number, ok := e.number(want)
	if !ok {
		return discovery.Target{}, withoutPort
	}
	for _, address := range e.addresses {
		target, err := parse(address, number)
		if err != nil {
			return discovery.Target{}, badAddress
		}
		if inFamily(target.IP, want.family) {
			return target, ""
		}
	}
	return discovery.Target{}, otherFamily
}

// number returns the number of the wanted port of an endpoint: 0 if no port is wanted, and the
// wanted number itself if it is one, since a port may be open without being declared. The name
// of a port must be declared.
func (e endpoint) number(want endpointFilter) (uint16, bool) {
	if want.port == "" {
		return 0, true
	}
	// The name of a port has a letter, so a number is no name.
	if number, err := strconv.ParseUint(want.port, 10, 16); err == nil && number > 0 {
		return uint16(number), true
	}
	number := e.find(want.port, want.protocol)
	return number, number > 0
}

func inFamily(ip netip.Addr, family string) bool {
	switch family {
	case FamilyIPv4:
		return ip.Is4()
	case FamilyIPv6:
		return ip.Is6()
	default:
		return true
	}
}

// parse reads the address of an endpoint, which may be a name in an EndpointSlice.
func parse(address string, number uint16) (discovery.Target, error) {
	t := discovery.Target{Host: strings.ToLower(address), Port: number}
	if ip, err := netip.ParseAddr(address); err == nil {
		ip = ip.Unmap()
		if ip.IsLoopback() || ip.Zone() != "" {
			return discovery.Target{}, errors.New("the address means another machine elsewhere")
		}
		t.Host, t.IP = ip.String(), ip
	}
	return t, t.Validate()
}
