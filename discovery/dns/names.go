// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/quorate/quorate/discovery"
)

const (
	// maxNameBytes is the longest name with the dot at its end (RFC 1035, section 2.3.4: 255
	// bytes with the lengths of its parts).
	maxNameBytes  = 254
	maxLabelBytes = 63
	// shownBytes is how many bytes an error shows of a name that was refused.
	shownBytes = 64
)

// wanted returns the name that a query is about, in lower case, and the type of the records
// to ask for. With the names of a port and a protocol, and for a service that is written as
// _port._protocol.name, that type is services (RFC 2782); otherwise it is addresses.
func wanted(q discovery.Query) (name string, kind dnsmessage.Type, err error) {
	name, kind = q.Service, dnsmessage.TypeA
	switch {
	case isService(name):
		kind = dnsmessage.TypeSRV
	case q.Port != "" && q.Protocol != "":
		name = "_" + strings.TrimPrefix(q.Port, "_") + "._" + strings.TrimPrefix(q.Protocol, "_") + "." + name
		kind = dnsmessage.TypeSRV
	}
	complete, err := absolute(name)
	if err != nil {
		return "", 0, err
	}
	if !strings.HasSuffix(name, ".") {
		complete = strings.TrimSuffix(complete, ".")
	}
	return complete, kind, nil
}

// isService reports whether a name looks like _port._protocol.name.
func isService(name string) bool {
	port, rest, _ := strings.Cut(name, ".")
	protocol, rest, _ := strings.Cut(rest, ".")
	return len(port) > 1 && port[0] == '_' && len(protocol) > 1 && protocol[0] == '_' && rest != ""
}

// absolute checks a name and returns it in lower case with the dot at its end.
func absolute(name string) (string, error) {
	if len(name) > maxNameBytes {
		return "", fmt.Errorf("the name %s has %d bytes, more than %d", shown(name), len(name), maxNameBytes)
	}
	trimmed := strings.TrimSuffix(name, ".")
	if trimmed == "" {
		return "", errors.New("the service has no name")
	}
	for label := range strings.SplitSeq(trimmed, ".") {
		if label == "" || len(label) > maxLabelBytes {
			return "", fmt.Errorf("the name %s has a part of %d bytes, not from 1 to %d", shown(name), len(label), maxLabelBytes)
		}
	}
	for i := range len(trimmed) {
		if c := trimmed[i]; !letter(c) && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' {
			return "", fmt.Errorf("the name %s has %q, allowed are letters, digits, hyphen, underscore and dot", shown(name), c)
		}
	}
	if len(trimmed) > maxNameBytes-1 {
		return "", fmt.Errorf("the name %s has %d bytes, more than %d", shown(name), len(trimmed), maxNameBytes-1)
	}
	return strings.ToLower(trimmed) + ".", nil
}

func letter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

func shown(name string) string {
	if len(name) > shownBytes {
		return strconv.QuoteToASCII(name[:shownBytes]) + "..."
	}
	return strconv.QuoteToASCII(name)
}
