// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"cmp"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Where a node listens and which incarnation of it is meant: addresses and node ids,
// how they are parsed, validated, printed and ordered. The bounds of a state stand
// first, since every check uses them.

// Limits of the content of a state. A state that exceeds one is refused by
// [FromParts], before memory is allocated for it.
const (
	MaxHostBytes  = 255    // Bytes of a host.
	MaxMembers    = 20_000 // Members of a state, and tombstones of a state.
	MaxRoles      = 64     // Roles of a member.
	MaxRoleBytes  = 128    // Bytes of a role, a zone or an app version.
	MaxServices   = 256    // Services of a member.
	MaxLoaded     = 8      // Downing strategies that a member has loaded.
	MaxCauseBytes = 200    // Bytes of the reason for which a member was declared down.

	// MaxUnknownBytes bounds the fields of a later release in one record. They are kept by all members for as long as
	// the record, and a record with more is refused.
	MaxUnknownBytes = 1024
)

// Address is the host and port at which a node listens and other nodes dial it. The
// zero Address is no address.
type Address struct {
	Host string // A name or an IP address without brackets, 1 to 255 bytes.
	Port uint16 // 1 to 65535.
}

// ParseAddress parses "host:port", or "[host]:port" when the host contains a
// colon. An IP address is put into its canonical form and a name into lower case, so that
// one host has one spelling. The result satisfies [Address.Validate].
func ParseAddress(s string) (Address, error) {
	colon := strings.LastIndexByte(s, ':')
	if colon < 0 {
		return Address{}, fmt.Errorf("gossip: address %q has no port: want host:port", s)
	}
	port, err := strconv.ParseUint(s[colon+1:], 10, 16)
	if err != nil {
		return Address{}, fmt.Errorf("gossip: address %q: port is not a number from 1 to 65535", s)
	}
	host := s[:colon]
	switch bracketed := len(host) >= 2 && host[0] == '[' && host[len(host)-1] == ']'; {
	case bracketed:
		host = host[1 : len(host)-1]
	case strings.Contains(host, ":"):
		return Address{}, fmt.Errorf("gossip: address %q: a host with colons needs brackets", s)
	}
	a := Address{Host: canonical(host), Port: uint16(port)}
	if err := a.Validate(); err != nil {
		return Address{}, err
	}
	return a, nil
}

// canonical returns the one spelling of a host.
func canonical(host string) string {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().String()
	}
	if !utf8.ValidString(host) {
		return host // It is refused, and must not be mended before.
	}
	return strings.ToLower(host)
}

// Validate reports why a cannot be dialled: an empty, too long or malformed host, an
// unspecified IP address such as 0.0.0.0, or port 0. The errors unwrap to
// [ErrInvalid].
func (a Address) Validate() error {
	switch {
	case a.Host == "":
		return invalid(FaultAddress, NodeID{Address: a}, "empty host")
	case len(a.Host) > MaxHostBytes:
		return invalid(FaultAddress, NodeID{}, "host of %d bytes, at most %d", len(a.Host), MaxHostBytes)
	case !utf8.ValidString(a.Host):
		return invalid(FaultText, NodeID{}, "host %q is not UTF-8", a.Host)
	case strings.IndexFunc(a.Host, forbiddenInHost) >= 0:
		return invalid(FaultAddress, NodeID{}, "host %q has a character that no host has", a.Host)
	case a.Port == 0:
		return invalid(FaultAddress, NodeID{Address: a}, "port 0")
	}
	if strings.Trim(a.Host, "0.:") != "" {
		return nil // Only a host that looks unspecified is parsed, since parsing takes time.
	}
	if ip, err := netip.ParseAddr(a.Host); err != nil || ip.IsUnspecified() {
		return invalid(FaultAddress, NodeID{Address: a}, "host %s cannot be dialled", a.Host)
	}
	return nil
}

// forbiddenInHost reports whether a host must not have a character: hosts are
// printable and free of the characters that separate the parts of addresses, node ids
// and paths. Not printable are control characters, also those of the upper half, and
// marks that turn or hide text: a terminal or a page that shows a host would obey
// them.
func forbiddenInHost(r rune) bool {
	return r == ' ' || !unicode.IsPrint(r) || strings.ContainsRune("/\\#@?[]\"'<>", r)
}

// String returns "host:port", with brackets when the host contains a colon,
// and "" for the zero Address.
func (a Address) String() string {
	if a.IsZero() {
		return ""
	}
	return string(a.append(nil))
}

// AppendText implements [encoding.TextAppender]. It never fails.
func (a Address) AppendText(b []byte) ([]byte, error) { return a.append(b), nil }

func (a Address) append(b []byte) []byte {
	if a.IsZero() {
		return b
	}
	if strings.IndexByte(a.Host, ':') >= 0 {
		b = append(b, '[')
		b = append(b, a.Host...)
		b = append(b, ']')
	} else {
		b = append(b, a.Host...)
	}
	b = append(b, ':')
	return strconv.AppendUint(b, uint64(a.Port), 10)
}

// Compare orders addresses by host as plain strings, so that 10.0.0.10 comes
// before 10.0.0.2, then by port as numbers.
func (a Address) Compare(b Address) int {
	if c := strings.Compare(a.Host, b.Host); c != 0 {
		return c
	}
	return cmp.Compare(a.Port, b.Port)
}

// IsZero reports whether a is no address.
func (a Address) IsZero() bool { return a == Address{} }

// UID distinguishes the incarnations at one address. A process draws a random one when
// it starts. Zero is none.
type UID uint64

// NodeID is the identity of one incarnation of a node: two processes that ran
// at the same address one after the other have different NodeIDs. It is
// comparable. The zero NodeID is no node.
type NodeID struct {
	Address Address // Where the node is reached.
	UID     UID     // Tells the processes at one address apart.
}

// UIDUnknown stands for the incarnation of a seed node that was listed when a
// cluster was founded and has not voted. No process has it.
const UIDUnknown = ^UID(0)

// ParseNodeID parses what [NodeID.String] returns: "host:port#hex".
func ParseNodeID(s string) (NodeID, error) {
	text, hex, ok := strings.Cut(s, "#")
	if !ok {
		return NodeID{}, fmt.Errorf("gossip: node id %q has no uid: want host:port#hex", s)
	}
	a, err := ParseAddress(text)
	if err != nil {
		return NodeID{}, err
	}
	uid, err := strconv.ParseUint(hex, 16, 64)
	if err != nil || uid == 0 {
		return NodeID{}, fmt.Errorf("gossip: node id %q: uid is not a hexadecimal number above 0", s)
	}
	return NodeID{Address: a, UID: UID(uid)}, nil
}

// Validate reports whether n can name a node: a valid address and a uid.
func (n NodeID) Validate() error {
	if n.UID == 0 {
		return invalid(FaultUID, n, "uid 0")
	}
	return n.Address.Validate()
}

// String returns "host:port#hex", and "" for the zero NodeID.
func (n NodeID) String() string {
	if n.IsZero() {
		return ""
	}
	return string(n.append(nil))
}

// AppendText implements [encoding.TextAppender]. It never fails.
func (n NodeID) AppendText(b []byte) ([]byte, error) { return n.append(b), nil }

func (n NodeID) append(b []byte) []byte {
	if n.IsZero() {
		return b
	}
	b = n.Address.append(b)
	b = append(b, '#')
	return strconv.AppendUint(b, uint64(n.UID), 16)
}

// Compare orders node ids by address, then by uid as numbers. All sorted
// lists of this package are in this order.
func (n NodeID) Compare(o NodeID) int { return compareNodes(&n, &o) }

// compareNodes is Compare without copying the ids; it is on the path of every
// merge.
func compareNodes(a, b *NodeID) int {
	if c := strings.Compare(a.Address.Host, b.Address.Host); c != 0 {
		return c
	}
	if a.Address.Port != b.Address.Port {
		return cmp.Compare(a.Address.Port, b.Address.Port)
	}
	return cmp.Compare(a.UID, b.UID)
}

// IsZero reports whether n is no node.
func (n NodeID) IsZero() bool { return n == NodeID{} }

// Hash returns the position of n on a hash ring: the two halves of the uid combined.
// It does not depend on the address, so that neighbours in a rack are not neighbours
// on the ring.
func (n NodeID) Hash() uint32 { return uint32(n.UID) ^ uint32(n.UID>>32) }
