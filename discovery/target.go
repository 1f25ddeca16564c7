// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Contact points: ParseTarget reads one from its text, which is checked in steps, the usual
// mistakes first, so that each error says what to write; Validate checks a target that a
// method made; Compare and String follow.

const (
	// maxAddressBytes is the length of the longest text that [ParseTarget] reads. It
	// leaves at most 253 bytes for the host, the longest name of the domain name system.
	maxAddressBytes = 255
	// maxLabelBytes is the length of the longest part of a name (RFC 1035, section 2.3.4).
	maxLabelBytes = 63
)

// ErrBadTarget is wrapped by every error about the form of a target.
var ErrBadTarget = errors.New("bad contact point")

// Target is one contact point. Targets are comparable; the zero value stands for none.
type Target struct {
	// Host is a name in lower case, or an IP address in its canonical form,
	// without brackets.
	Host string
	// Port is from 1 to 65535, or 0 if the method does not know the port.
	Port uint16
	// IP is the address of the host if the method knows the address, else the zero Addr.
	IP netip.Addr
}

// ParseTarget reads "host:port". The host is a name or an IP address, one of
// version 6 in brackets; the port is a number from 1 to 65535. Names are put into
// lower case, and addresses into their canonical form, so that one contact point
// has one spelling. Nothing is resolved. The error wraps [ErrBadTarget], quotes
// the text, and says what is wrong with it.
func ParseTarget(text string) (Target, error) {
	t, err := parse(text)
	if err != nil {
		return Target{}, fmt.Errorf("discovery: %w %s: %w", ErrBadTarget, quote(text), err)
	}
	return t, nil
}

func parse(text string) (Target, error) {
	if err := checkText(text); err != nil {
		return Target{}, err
	}
	host, port, err := split(text)
	if err != nil {
		return Target{}, err
	}
	number, err := parsePort(port)
	if err != nil {
		return Target{}, err
	}
	t, err := parseHost(host, strings.HasPrefix(text, "["))
	t.Port = number
	return t, err
}

// checkText refuses texts with a character that no address contains, with the advice that
// the usual mistakes need.
func checkText(text string) error {
	switch {
	case text == "":
		return errors.New("it is empty")
	case len(text) > maxAddressBytes:
		return fmt.Errorf("it has %d bytes, more than %d", len(text), maxAddressBytes)
	case strings.Contains(text, "://"):
		return errors.New("it has a scheme, write host:port alone")
	}
	for i := range len(text) {
		switch c := text[i]; {
		case c == ' ':
			return fmt.Errorf("it has a space at byte %d", i)
		case c < ' ' || c == 0x7f:
			return fmt.Errorf("it has the control character 0x%02x at byte %d", c, i)
		case c >= 0x80:
			return fmt.Errorf("it has a character that is not ASCII at byte %d, write the name in its xn-- form", i)
		case strings.IndexByte(`/\?#@`, c) >= 0:
			return fmt.Errorf("it has %q at byte %d, write host:port alone", c, i)
		}
	}
	return nil
}

// split separates host and port. It is not net.SplitHostPort because the errors
// of that function name the text a second time, and none says what to write.
func split(text string) (host, port string, err error) {
	if rest, ok := strings.CutPrefix(text, "["); ok {
		host, rest, ok = strings.Cut(rest, "]")
		if !ok {
			return "", "", errors.New("the bracket is not closed")
		}
		port, ok = strings.CutPrefix(rest, ":")
		if !ok {
			return "", "", errors.New("no port follows the bracket, write [address]:port")
		}
		return host, port, nil
	}
	i := strings.LastIndexByte(text, ':')
	if i < 0 {
		return "", "", errors.New("it has no port, write host:port")
	}
	if strings.IndexByte(text, ':') != i {
		return "", "", errors.New("it has several colons, write an IPv6 address in brackets: [address]:port")
	}
	return text[:i], text[i+1:], nil
}

func parsePort(port string) (uint16, error) {
	if port == "" {
		return 0, errors.New("the port is empty")
	}
	for i := range len(port) {
		if port[i] < '0' || port[i] > '9' {
			return 0, fmt.Errorf("the port %q is not a number", port)
		}
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 {
		return 0, fmt.Errorf("the port %s is not in the range from 1 to 65535", port)
	}
	return uint16(number), nil
}

func parseHost(host string, bracketed bool) (Target, error) {
	ip, err := netip.ParseAddr(host)
	switch {
	case host == "":
		return Target{}, errors.New("the host is empty")
	case err != nil && bracketed:
		return Target{}, fmt.Errorf("%q in brackets is not an IPv6 address", host)
	case err != nil:
		host = strings.ToLower(host)
		return Target{Host: host}, checkName(host)
	case bracketed && !ip.Is6():
		return Target{}, fmt.Errorf("%s is not an IPv6 address, write it without brackets", host)
	}
	ip = ip.Unmap()
	if ip.IsUnspecified() || ip.IsMulticast() {
		return Target{}, fmt.Errorf("%s is not the address of one machine", ip)
	}
	return Target{Host: ip.String(), IP: ip}, nil
}

// checkName checks a host name in lower case. Underscores are allowed, since
// names in use have them.
func checkName(name string) error {
	labels := strings.Split(strings.TrimSuffix(name, "."), ".")
	for _, label := range labels {
		switch {
		case label == "":
			return fmt.Errorf("the host %q has an empty part", name)
		case len(label) > maxLabelBytes:
			return fmt.Errorf("the part %q of the host has %d bytes, more than %d", label, len(label), maxLabelBytes)
		case label[0] == '-' || label[len(label)-1] == '-':
			return fmt.Errorf("the part %q of the host begins or ends with a hyphen", label)
		}
		for i := range len(label) {
			if c := label[i]; !isLetter(c) && !isDigit(c) && c != '-' && c != '_' {
				return fmt.Errorf("the host %q has %q, allowed are letters, digits, hyphen, underscore and dot", name, c)
			}
		}
	}
	// A top-level name is never all digits (RFC 3696, section 2): such a host was meant
	// to be an IPv4 address.
	if last := labels[len(labels)-1]; strings.Trim(last, "0123456789") == "" {
		return fmt.Errorf("the host %q looks like an IPv4 address and is none", name)
	}
	return nil
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }

// Validate reports whether t is as [ParseTarget] would give it, except that the
// port may be 0 and that a name may have an IP. It is for targets that come from an unknown
// [Discovery]. The error wraps [ErrBadTarget].
func (t Target) Validate() error {
	if !t.IP.IsValid() && isPlainName(t.Host) {
		return nil
	}
	return t.validate()
}

// maxPlainBytes bounds the names that isPlainName knows. With any port they are shorter than maxAddressBytes.
const maxPlainBytes = 200

// isPlainName reports whether a host is a name in its canonical form, without allocating. False says nothing: the host
// may be a longer name, or an address.
func isPlainName(host string) bool {
	if len(host) > maxPlainBytes {
		return false
	}
	start, digits := 0, true // Of the last label.
	for i := range len(host) {
		c := host[i]
		switch {
		case c == '.' && (i == start || host[i-1] == '-'), c == '-' && i == start, i-start >= maxLabelBytes:
			return false
		case c == '.':
			start, digits = i+1, true
		case !isLetter(c) && !isDigit(c) && c != '-' && c != '_':
			return false
		default:
			digits = digits && isDigit(c)
		}
	}
	return start < len(host) && !digits && host[len(host)-1] != '-'
}

// validate is Validate for any target.
func (t Target) validate() error {
	port := t.Port
	if port == 0 {
		port = 1 // A text without a port could not be parsed, but 0 is a valid Port.
	}
	parsed, err := ParseTarget(Target{Host: t.Host, Port: port}.String())
	switch {
	case err != nil:
		return err
	case parsed.Host != t.Host:
		return fmt.Errorf("discovery: %w %s: the canonical form of the host is %q",
			ErrBadTarget, quote(t.Host), parsed.Host)
	case parsed.IP.IsValid() && t.IP.IsValid() && parsed.IP != t.IP:
		return fmt.Errorf("discovery: %w %s: its IP is %v", ErrBadTarget, quote(t.Host), t.IP)
	case t.IP.IsUnspecified() || t.IP.IsMulticast() || t.IP.Is4In6():
		return fmt.Errorf("discovery: %w %s: the IP %v is not the address of one machine in its canonical form",
			ErrBadTarget, quote(t.Host), t.IP)
	}
	return nil
}

// Compare orders targets by host as text, port as number, and IP. The order is
// total, and targets with an IP do not change the order of targets without.
func (t Target) Compare(u Target) int {
	return cmp.Or(cmp.Compare(t.Host, u.Host), cmp.Compare(t.Port, u.Port), t.IP.Compare(u.IP))
}

// repeated counts the contact points that are there already. It takes two bytes for each: the answer may be of another
// process.
func repeated(list []Target) (twice int) {
	order := make([]uint16, len(list)) // At most MaxTargets.
	for i := range order {
		order[i] = uint16(i)
	}
	slices.SortFunc(order, func(a, b uint16) int { return list[a].Compare(list[b]) })
	for i := 1; i < len(order); i++ {
		if list[order[i]] == list[order[i-1]] {
			twice++
		}
	}
	return twice
}

// String is "host:port", with an IPv6 address in brackets, and the host alone if
// the port is not known.
func (t Target) String() string {
	if t.Port == 0 {
		return t.Host
	}
	return net.JoinHostPort(t.Host, strconv.Itoa(int(t.Port)))
}

// quote shows a text of unknown origin: escaped, and cut when it is long.
func quote(text string) string {
	const shown = 64
	if len(text) > shown {
		return strconv.QuoteToASCII(text[:shown]) + "..."
	}
	return strconv.QuoteToASCII(text)
}
