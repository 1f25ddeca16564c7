// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package akka

import (
	"errors"
	"fmt"
	"math/big"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/tools/internal/hocon"
)

// Values of one side as the other writes them. Each function returns what stands in a file of Quorate: a text, a
// number, a truth value, or a list of texts; nil for a value that is the default there.

// value is a value, with what is put together of several.
type value struct {
	hocon.Setting

	more *parts
}

// parts are values that several settings make together.
type parts struct {
	hosts, ports map[string]string // By key.
	system       string            // The name of the actor system, from the seed nodes.
}

func scalar(v value) (string, error) {
	if v.Kind != hocon.Scalar {
		return "", errors.New("a list, where one value is needed")
	}
	return strings.TrimSpace(v.Text), nil
}

func text(v value) (any, error) {
	s, err := scalar(v)
	if s == "" {
		return nil, err
	}
	return s, err
}

func names(v value) (any, error) {
	switch v.Kind {
	case hocon.List:
		return v.List, nil
	case hocon.Scalar:
		return []string{v.Text}, nil
	default:
		return nil, errors.New("a list of objects, where names are needed")
	}
}

func count(v value) (any, error) {
	s, err := scalar(v)
	if err != nil || s == "off" || s == "none" {
		return nil, err
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%q is not a whole number", s)
	}
	return n, nil
}

func number(v value) (any, error) {
	s, err := scalar(v)
	if err != nil {
		return nil, err
	}
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return nil, fmt.Errorf("%q is not a number", s)
	}
	return x, nil
}

func yes(v value) (any, error) {
	s, err := scalar(v)
	if err != nil {
		return nil, err
	}
	switch s {
	case "true", "yes", "on":
		return true, nil
	case "false", "no", "off":
		return false, nil
	}
	return nil, fmt.Errorf("%q is neither on nor off", s)
}

// measured is a number with a unit.
var measured = regexp.MustCompile(`^(-?\d+(?:\.\d+)?)\s*([A-Za-zµ]*)$`)

// unitOf returns a unit of durations, 0 for none: the language takes milliseconds for a number without one.
func unitOf(name string) time.Duration {
	if len(name) > 2 && name != "nanos" && name != "micros" && name != "millis" {
		name = strings.TrimSuffix(name, "s")
	}
	return map[string]time.Duration{
		"ns": time.Nanosecond, "nano": time.Nanosecond, "nanos": time.Nanosecond, "nanosecond": time.Nanosecond,
		"us": time.Microsecond, "micro": time.Microsecond, "micros": time.Microsecond, "microsecond": time.Microsecond,
		"": time.Millisecond, "ms": time.Millisecond, "milli": time.Millisecond, "millis": time.Millisecond, "millisecond": time.Millisecond,
		"s": time.Second, "second": time.Second, "m": time.Minute, "minute": time.Minute, "h": time.Hour, "hour": time.Hour, "d": 24 * time.Hour, "day": 24 * time.Hour,
	}[name]
}

func duration(v value) (any, error) {
	s, err := scalar(v)
	if err != nil {
		return nil, err
	}
	parts := measured.FindStringSubmatch(s)
	if parts == nil || unitOf(parts[2]) == 0 {
		return nil, fmt.Errorf("%q is not a duration", s)
	}
	n, _ := new(big.Rat).SetString(parts[1])
	n.Mul(n, new(big.Rat).SetInt64(int64(unitOf(parts[2]))))
	if !n.IsInt() || !n.Num().IsInt64() {
		return nil, fmt.Errorf("%q is not a duration that can be measured", s)
	}
	return time.Duration(n.Num().Int64()).String(), nil
}

func durationOrOff(v value) (any, error) {
	if v.Kind == hocon.Scalar && (v.Text == "off" || v.Text == "infinite") {
		return "0s", nil
	}
	return duration(v)
}

func size(v value) (any, error) {
	s, err := scalar(v)
	if err != nil {
		return nil, err
	}
	parts := measured.FindStringSubmatch(s)
	factor := map[string]int64{
		"": 1, "B": 1, "b": 1, "byte": 1, "bytes": 1, "kB": 1e3, "kilobyte": 1e3, "kilobytes": 1e3, "MB": 1e6, "megabyte": 1e6, "megabytes": 1e6,
		"K": 1 << 10, "k": 1 << 10, "Ki": 1 << 10, "KiB": 1 << 10, "kibibyte": 1 << 10, "kibibytes": 1 << 10,
		"M": 1 << 20, "m": 1 << 20, "Mi": 1 << 20, "MiB": 1 << 20, "mebibyte": 1 << 20, "mebibytes": 1 << 20, "G": 1 << 30, "g": 1 << 30, "Gi": 1 << 30, "GiB": 1 << 30,
	}
	if parts == nil || factor[parts[2]] == 0 {
		return nil, fmt.Errorf("%q is not a number of bytes", s)
	}
	n, _ := new(big.Rat).SetString(parts[1])
	n.Mul(n, new(big.Rat).SetInt64(factor[parts[2]]))
	if !n.IsInt() || !n.Num().IsInt64() {
		return nil, fmt.Errorf("%q is not a whole number of bytes", s)
	}
	return n.Num().Int64(), nil
}

// seed is the address of a seed node.
var seed = regexp.MustCompile(`^(?:akka|pekko)(?:\.tcp|\.ssl\.tcp)?://([^@/]+)@([^/]+)$`)

func seeds(v value) (any, error) {
	list, err := names(v)
	if err != nil {
		return nil, err
	}
	var addresses []string
	for _, s := range list.([]string) {
		parts := seed.FindStringSubmatch(s)
		if parts == nil {
			return nil, fmt.Errorf("%q is no address of a node, as in akka://bank@10.0.0.1:25520", s)
		}
		if v.more.system != "" && v.more.system != parts[1] {
			return nil, fmt.Errorf("two actor systems, %s and %s", v.more.system, parts[1])
		}
		v.more.system = parts[1]
		addresses = append(addresses, parts[2])
	}
	return addresses, nil
}

// strategy returns the name of a downing strategy.
func strategy(v value) (any, error) {
	s, err := scalar(v)
	switch s {
	case "keep-majority", "keep-oldest", "static-quorum", "lease-majority", "down-all":
		return s, err
	case "", "off":
		return nil, err
	}
	return nil, fmt.Errorf("%q is no strategy of the resolver", s)
}

// leases returns the store of a lease.
func leases(v value) (any, error) {
	s, err := scalar(v)
	if strings.HasSuffix(s, "lease.kubernetes") {
		return "kubernetes", err
	}
	if s == "" || err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("%q: of the stores of leases only that of Kubernetes is the same; choose kubernetes, etcd or file", s)
}

// method returns the method of discovery.
func method(v value) (any, error) {
	s, err := scalar(v)
	if err != nil {
		return nil, err
	}
	known := map[string]string{"akka-dns": "dns", "pekko-dns": "dns", "kubernetes-api": "kubernetes", "akka-consul": "consul", "pekko-consul": "consul"}
	switch {
	case known[s] != "":
		return []string{known[s]}, nil
	case s == "" || s == "<method>" || s == "akka.discovery" || s == "config":
		return nil, nil
	}
	return nil, fmt.Errorf("%q is no method that Quorate has: dns, kubernetes, consul, etcd, file, multicast", s)
}

// host notes the host of an address.
func host(v value) (any, error) {
	s, err := scalar(v)
	if strings.HasPrefix(s, "<") { // <getHostAddress>
		s = ""
	}
	v.more.hosts[v.Key()] = s
	return nil, err
}

// port notes the port of an address.
func port(v value) (any, error) {
	s, err := scalar(v)
	if err != nil {
		return nil, err
	}
	if _, err := strconv.ParseUint(s, 10, 16); err != nil && s != "" {
		return nil, fmt.Errorf("%q is no port", s)
	}
	v.more.ports[v.Key()] = s
	return nil, nil
}

// address puts an address together, of a port that is usual there if none is given; "" without a host.
func (p *parts) address(at string, usual string) string {
	hostname, number := p.hosts[at+".hostname"], p.ports[at+".port"]
	if number == "" {
		number = usual
	}
	if hostname == "" || number == "" || number == "0" {
		return ""
	}
	return net.JoinHostPort(hostname, number)
}
