// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package datadir

import (
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// ErrDamaged is wrapped by errors about a file whose content is not what was written.
var ErrDamaged = errors.New("damaged, or not written by a node")

// ErrForeign is wrapped by errors about an intact file of another cluster, or of a newer
// version.
var ErrForeign = errors.New("not of this node")

const (
	recordMagic   = "quorate-record"
	recordVersion = "1"

	// maxRecordBytes is above the size of the longest file: two sets of the largest
	// number of voters, with hosts of the largest length.
	maxRecordBytes = 16 << 20
)

// file is the content of a record's file: lines of a keyword and values. The last line is
// the check sum of those before (CRC-32, IEEE).
type file struct {
	cluster string // The name of the cluster.
	record  protocol.Record
}

// text returns the file as it is written.
func (f file) text() []byte {
	r := f.record
	b := fmt.Appendf(nil, "%s %s %s\n", recordMagic, recordVersion, strconv.QuoteToASCII(f.cluster))
	b = fmt.Appendf(b, "data %016x\npromise %d\nepochs %d\n", uint64(r.Data), r.Promise, r.EpochBorn)
	b = fmt.Appendf(b, "cluster %s\n", clusterText(r.Cluster))
	b = fmt.Appendf(b, "stamp %d %d %016x\n", r.Stamp.Born, r.Stamp.Gen, uint64(r.Stamp.By))
	for _, v := range r.Voters {
		b = fmt.Appendf(b, "voter %s %016x\n", v.Node, uint64(v.Data))
	}
	for _, v := range r.Previous {
		b = fmt.Appendf(b, "previous %s %016x\n", v.Node, uint64(v.Data))
	}
	if !r.Yielded.IsZero() {
		b = fmt.Appendf(b, "yielded %s\n", clusterText(r.Yielded.To))
	}
	for _, a := range r.Yielded.Addresses() {
		b = fmt.Appendf(b, "yielded-at %s\n", a)
	}
	return fmt.Appendf(b, "check %08x\n", crc32.ChecksumIEEE(b))
}

func clusterText(c gossip.ClusterID) string {
	return fmt.Sprintf("%d %016x %016x", c.Born, c.Nonce, c.Origin)
}

func parseCluster(text string, c *gossip.ClusterID) error {
	_, err := fmt.Sscanf(text, "%d %x %x", &c.Born, &c.Nonce, &c.Origin)
	return err
}

// parse is the inverse of [file.text]. The error wraps [ErrDamaged] or [ErrForeign].
func parse(text []byte) (file, error) {
	var f file
	lines := strings.Split(string(text), "\n")
	head := strings.SplitN(lines[0], " ", 3)
	if len(text) > maxRecordBytes || len(head) < 3 || head[0] != recordMagic {
		return f, fmt.Errorf("%w: %d bytes", ErrDamaged, len(text))
	}
	if head[1] != recordVersion {
		return f, fmt.Errorf("%w: its format is %q, this release knows %s", ErrForeign, head[1], recordVersion)
	}
	var err error
	if f.cluster, err = strconv.Unquote(head[2]); err != nil {
		return f, fmt.Errorf("%w: no name of a cluster", ErrDamaged)
	}
	for _, line := range lines[1:] {
		if err := f.line(line); err != nil {
			return f, fmt.Errorf("%w: %q: %w", ErrDamaged, line, err)
		}
	}
	if string(f.text()) != string(text) {
		return f, fmt.Errorf("%w: its check sum is wrong", ErrDamaged)
	}
	if err := f.record.Validate(); err != nil {
		return f, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return f, nil
}

// line parses one line. Lines that are out of order, doubled or missing are found by
// writing the result again.
func (f *file) line(line string) (err error) {
	r := &f.record
	key, rest, _ := strings.Cut(line, " ")
	switch key {
	case "data":
		_, err = fmt.Sscanf(rest, "%x", &r.Data)
	case "promise":
		_, err = fmt.Sscanf(rest, "%d", &r.Promise)
	case "epochs":
		_, err = fmt.Sscanf(rest, "%d", &r.EpochBorn)
	case "cluster":
		err = parseCluster(rest, &r.Cluster)
	case "yielded":
		err = parseCluster(rest, &r.Yielded.To)
	case "yielded-at":
		i := len(r.Yielded.Addresses())
		if i == len(r.Yielded.At) {
			return errors.New("too many addresses")
		}
		r.Yielded.At[i], err = gossip.ParseAddress(rest)
	case "stamp":
		_, err = fmt.Sscanf(rest, "%d %d %x", &r.Stamp.Born, &r.Stamp.Gen, &r.Stamp.By)
	case "voter", "previous":
		voters := &r.Voters
		if key == "previous" {
			voters = &r.Previous
		}
		var v protocol.Voter
		node, data, _ := strings.Cut(rest, " ")
		if v.Node, err = gossip.ParseNodeID(node); err == nil {
			_, err = fmt.Sscanf(data, "%x", &v.Data)
		}
		*voters = append(*voters, v)
	case "check", "":
	default:
		err = errors.New("no such line")
	}
	return err
}
