// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package plugintest

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/host"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// A plugin is connected to without its host, which would refuse to send most of what is sent here
// ([connected]). It gets requests that no host sends ([badRequests]), and after each of them one
// that is right.

// method is a method of the contract, with a request that has an answer and one whose numbers
// point at nothing.
type method struct {
	name           string
	right, nowhere proto.Message
}

// methods has a row for each policy that hosts run.
func methods() map[plugins.Policy]method {
	const absent = 99 // Of the nodes, regions and counts of these requests none has so many.
	return map[plugins.Policy]method{
		plugins.Downing: {
			"/quorate.plugin.v1.Downing/Decide",
			&pluginv1.DowningDecideRequest{
				Nodes: &pluginv1.Nodes{Host: []string{"a"}, Port: []uint32{1}, Uid: []uint64{1}},
				Members: &pluginv1.Members{
					Status: []pluginv1.MemberStatus{pluginv1.MemberStatus_MEMBER_STATUS_UP}, UpNumber: []uint64{1},
					Zone: []uint32{0}, AppVersion: []uint32{0}, Roles: []uint32{0}, Text: []string{""}, RoleSets: []*pluginv1.RoleSet{{}},
				},
				Seen: []uint32{0}, Base: []*pluginv1.Voters{{Node: []uint32{0}}},
			},
			&pluginv1.DowningDecideRequest{
				Nodes: &pluginv1.Nodes{Host: []string{"a"}, Port: []uint32{1 << 20}, Uid: []uint64{1}},
				Members: &pluginv1.Members{
					Status: []pluginv1.MemberStatus{absent}, UpNumber: []uint64{0}, Zone: []uint32{absent}, AppVersion: []uint32{absent}, Roles: []uint32{absent},
				},
				Self: absent, Seen: []uint32{absent}, Base: []*pluginv1.Voters{nil, {Node: []uint32{absent}}},
				Complaints:  &pluginv1.Complaints{Observer: []uint32{absent}, Subject: []uint32{absent, 0}, Reach: []pluginv1.Reach{absent}},
				StableNanos: -1, UnstableNanos: -1,
			},
		},
		plugins.Allocation: {
			"/quorate.plugin.v1.Allocation/Allocate",
			&pluginv1.AllocateRequest{
				Kind: "k", Shard: []uint32{1},
				Regions: &pluginv1.Regions{
					Id: []string{"a"}, Zone: []uint32{0}, AppVersion: []uint32{0}, Roles: []uint32{0}, Condition: []uint32{0}, Capacity: []uint32{0},
					Load: []float64{0}, ShardCount: []uint32{0}, Text: []string{""}, RoleSets: []*pluginv1.RoleSet{{}},
				},
			},
			&pluginv1.AllocateRequest{
				Shard: []uint32{1, 1}, Requester: []uint32{absent},
				Regions: &pluginv1.Regions{
					Id: []string{"a", "a"}, Zone: []uint32{absent}, AppVersion: []uint32{absent}, Roles: []uint32{absent},
					Load: []float64{-1}, ShardCount: []uint32{absent, 1 << 31}, Shard: []uint32{1},
				},
			},
		},
		plugins.FailureDetector: {
			"/quorate.plugin.v1.FailureDetector/Judge",
			&pluginv1.JudgeRequest{Number: 1, Node: []string{"a"}, Available: []bool{true}, AnswerCount: []uint32{1}, AgeNanos: []int64{1}},
			&pluginv1.JudgeRequest{Number: 1, ElapsedNanos: -1, Node: []string{"a", "a"}, AnswerCount: []uint32{absent, 1 << 31}, AgeNanos: []int64{-1}},
		},
		plugins.JoinDecider: {
			"/quorate.plugin.v1.JoinDecider/Decide",
			&pluginv1.JoinDeciderDecideRequest{
				Service: "example", Self: "127.0.0.1:7001", RequiredContactPoints: 2, ContactPoint: []string{"127.0.0.1:7001"},
				AnsweredNanos: []int64{0}, SeedNodeCount: []uint32{0},
			},
			&pluginv1.JoinDeciderDecideRequest{Self: "?", ContactPoint: []string{"?"}, AnsweredNanos: []int64{-1, -1}, SeedNodeCount: []uint32{absent, 1 << 31}},
		},
		plugins.Discovery: {
			"/quorate.plugin.v1.Discovery/Lookup",
			&pluginv1.LookupRequest{Service: "example"},
			&pluginv1.LookupRequest{Service: "\x00/../..", Port: "-1", Protocol: "\n"},
		},
	}
}

const configureMethod = "/quorate.plugin.v1.Plugin/Configure"

// badRequest is a request that no host sends.
type badRequest struct {
	name, method string
	bytes        []byte
	unserved     bool // Only an error is a right answer.
}

// hugeBytes is the size of the largest bad request, four times of what hosts send at most.
const hugeBytes = 4 * plugins.MaxRequestBytes

// badRequests returns the requests for a plugin of a policy.
func badRequests(tb testing.TB, policy plugins.Policy) []badRequest {
	tb.Helper()
	all := methods()
	own := all[policy]
	encoded := encode(tb, own.right)
	bad := []badRequest{
		{name: "all fields missing", method: own.name},
		{name: "numbers that point at nothing", method: own.name, bytes: encode(tb, own.nowhere)},
		{name: "bytes that are no message", method: own.name, bytes: []byte{0xff, 0xff, 0xff, 0xff}},
		{name: "a message that is cut off", method: own.name, bytes: encoded[:len(encoded)-1]},
		{name: "64 MiB", method: own.name, bytes: lengthened(encoded, hugeBytes)},
		{name: "settings that are no JSON", method: configureMethod, bytes: encode(tb, &pluginv1.ConfigureRequest{Settings: []byte("{")})},
		{name: "a method that is not there", method: own.name + "Nothing", unserved: true},
	}
	for _, other := range slices.Sorted(maps.Keys(all)) {
		if other != policy {
			bad = append(bad, badRequest{name: "the service of the policy " + string(other), method: all[other].name, bytes: encode(tb, all[other].right), unserved: true})
		}
	}
	return bad
}

// encode returns the bytes of a message.
func encode(tb testing.TB, m proto.Message) []byte {
	tb.Helper()
	encoded, err := proto.Marshal(m)
	if err != nil {
		tb.Fatal(err)
	}
	return encoded
}

// lengthened adds a field that the contract does not have, with so many bytes.
func lengthened(encoded []byte, n int) []byte {
	const tag = 1000<<3 | 2 // Field 1000, a string of bytes.
	longer := slices.Clone(encoded)
	for _, number := range []int{tag, n} {
		for ; number >= 0x80; number >>= 7 {
			longer = append(longer, byte(number)|0x80)
		}
		longer = append(longer, byte(number))
	}
	return append(longer, make([]byte, n)...)
}

// direct is a plugin that runs without a host's supervision, until the end of the test.
type direct struct{ process *host.Process }

// connected starts the plugin as a host does, and does not configure it.
func connected(tb testing.TB, c plugins.Config) *direct {
	tb.Helper()
	p, err := host.Launch(tb.Context(), tested, c, heard(tb)...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := p.Close(); err != nil {
			tb.Errorf("the plugin was not closed: %v", err)
		}
	})
	return &direct{p}
}

// call sends a request, and waits for its answer within [Limit].
func (d *direct) call(tb testing.TB, method string, request []byte) error {
	tb.Helper()
	_, err := d.process.Call(patience.Expiring(tb, Limit), method, request)
	return err
}

// answer sends a message, and reads the answer to it.
func (d *direct) answer(tb testing.TB, method string, request, answer proto.Message) error {
	tb.Helper()
	encoded, err := d.process.Call(patience.Expiring(tb, Limit), method, encode(tb, request))
	if err != nil {
		return err
	}
	return proto.Unmarshal(encoded, answer)
}

// ended reports whether the process has ended.
func (d *direct) ended() bool {
	select {
	case <-d.process.Exited():
		return true
	default:
		return false
	}
}

// configure hands the plugin its settings, and returns what it finds wrong with them.
func (d *direct) configure(tb testing.TB, settings map[string]any) []*pluginv1.SettingError {
	tb.Helper()
	request, configured := &pluginv1.ConfigureRequest{Name: tested}, &pluginv1.ConfigureResponse{}
	if len(settings) > 0 {
		text, err := json.Marshal(settings)
		if err != nil {
			tb.Fatal(err)
		}
		request.Settings = text
	}
	if err := d.answer(tb, configureMethod, request, configured); err != nil {
		tb.Fatalf("the plugin does not take its settings: %v", err)
	}
	return configured.GetErrors()
}

// survivesBadRequests sends the plugin what no host sends. It may answer or refuse, at once, and
// goes on.
func survivesBadRequests(tb testing.TB, c plugins.Config) {
	tb.Helper()
	d, own := connected(tb, c), methods()[c.Policy]
	d.configure(tb, c.Settings)
	right := encode(tb, own.right)
	newer := lengthened(right, 1)
	if err := d.call(tb, own.name, newer); err != nil {
		tb.Fatalf("a field of a future version: it has to be passed over, but %v", err)
	}
	for _, bad := range badRequests(tb, c.Policy) {
		err := d.call(tb, bad.method, bad.bytes)
		switch code := status.Code(err); {
		case code == codes.DeadlineExceeded:
			tb.Fatalf("%s: no answer within %v", bad.name, Limit)
		case d.ended():
			tb.Fatalf("%s: the process has ended: %v", bad.name, d.process.Err())
		case bad.unserved && err == nil:
			tb.Fatalf("%s: it is answered, not refused", bad.name)
		}
		if err := d.call(tb, own.name, right); err != nil {
			tb.Fatalf("after %s, a right request has no answer: %v", bad.name, err)
		}
	}
}
