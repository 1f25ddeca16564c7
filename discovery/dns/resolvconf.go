// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// The file resolv.conf(5) says which servers to ask, and which complete names a short name
// may mean. It is read at each lookup, since a machine may get other servers while the
// program runs, and the file is small.

const (
	maxResolvConfBytes = 64 << 10
	maxServers         = 8
	maxSearch          = 32
	maxDots            = 15 // As in the C library.
	portDNS            = 53
)

// hostResolver says which servers to ask and how to complete names.
type hostResolver struct {
	servers []netip.AddrPort
	// search are domains for names that are not complete, each with the dot at its end.
	search []string
	// dots is how many dots a name needs to be tried as it is written before the search list.
	dots int
	// stream says that only TCP is to be used.
	stream bool
}

// readResolvConf reads a file of the form of resolv.conf. A file without a server means
// the server of this machine, as the manual says; a missing file is an error.
func readResolvConf(path string) (hostResolver, error) {
	file, err := os.Open(path)
	if err != nil {
		return hostResolver{}, fmt.Errorf("%w: name the servers in the configuration", err)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxResolvConfBytes+1))
	switch err := errors.Join(err, file.Close()); {
	case err != nil:
		return hostResolver{}, err
	case len(text) > maxResolvConfBytes:
		return hostResolver{}, fmt.Errorf("%s has more than %d bytes", path, maxResolvConfBytes)
	}
	return parseResolvConf(text), nil
}

// parseResolvConf skips the lines that it does not understand, as every resolver does.
func parseResolvConf(text []byte) hostResolver {
	r := hostResolver{dots: 1}
	for line := range bytes.Lines(text) {
		fields := strings.Fields(string(line))
		if len(fields) < 2 || strings.HasPrefix(fields[0], "#") || strings.HasPrefix(fields[0], ";") {
			continue
		}
		switch fields[0] {
		case "nameserver":
			ip, err := netip.ParseAddr(fields[1])
			if err == nil && len(r.servers) < maxServers {
				r.servers = append(r.servers, netip.AddrPortFrom(ip, portDNS))
			}
		case "domain":
			r.search = domains(fields[1:2])
		case "search": // The last line rules.
			r.search = domains(fields[1:])
		case "options":
			r.options(fields[1:])
		}
	}
	if len(r.servers) == 0 {
		r.servers = []netip.AddrPort{
			netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), portDNS),
			netip.AddrPortFrom(netip.IPv6Loopback(), portDNS),
		}
	}
	return r
}

func (r *hostResolver) options(options []string) {
	for _, option := range options {
		name, value, _ := strings.Cut(option, ":")
		switch name {
		case "ndots":
			if n, err := strconv.Atoi(value); err == nil {
				r.dots = min(max(n, 0), maxDots)
			}
		case "use-vc", "usevc", "tcp":
			r.stream = true
		}
	}
}

func domains(list []string) []string {
	var search []string
	for _, domain := range list {
		name, err := absolute(domain)
		if err == nil && len(search) < maxSearch {
			search = append(search, name)
		}
	}
	return search
}

// names lists the complete names that a name may mean, in the order in which they are to
// be tried. A dot at the end says that the name is complete.
func (r hostResolver) names(name string) []string {
	if strings.HasSuffix(name, ".") {
		return []string{name}
	}
	asItIs := name + "."
	var list []string
	if strings.Count(name, ".") >= r.dots {
		list = append(list, asItIs)
	}
	for _, domain := range r.search {
		if longer := asItIs + domain; len(longer) <= maxNameBytes {
			list = append(list, longer)
		}
	}
	if strings.Count(name, ".") < r.dots {
		list = append(list, asItIs)
	}
	return list
}
