// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package plugintest

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/host"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

const describeMethod = "/quorate.plugin.v1.Plugin/Describe"

// describesItself checks what the plugin says of itself before it is configured and after it: the same, with a schema
// that takes the settings with which it is tested. A plugin of an earlier release says nothing.
func describesItself(tb testing.TB, c plugins.Config) {
	tb.Helper()
	d := connected(tb, c)
	before, ok := d.describe(tb)
	if !ok {
		tb.Log("it does not serve Describe: its settings are known to nobody before it gets them")
		return
	}
	schema := before.GetSettingsSchema()
	if len(schema) > 0 {
		accepts(tb, schema, c)
	}
	d.configure(tb, c.Settings)
	after, ok := d.describe(tb)
	if before.GetClass() == nil {
		before.Class = after.GetClass()
	}
	if !ok || !proto.Equal(before, after) {
		tb.Fatalf("it describes itself in another way once it is configured: %v, before %v", after, before)
	}
}

// accepts checks a schema.
func accepts(tb testing.TB, text []byte, c plugins.Config) {
	tb.Helper()
	schema, err := host.ReadSchema(text)
	if err != nil {
		tb.Fatalf("no host can use the schema of its settings: %v", err)
	}
	if err := schema.Check(c.Settings); err != nil {
		tb.Fatalf("the schema refuses the settings that the plugin is to be configured with: %v", err)
	}
}

// describe asks the plugin what it says of itself; false if it does not serve the call.
func (d *direct) describe(tb testing.TB) (*pluginv1.DescribeResponse, bool) {
	tb.Helper()
	said := &pluginv1.DescribeResponse{}
	err := d.answer(tb, describeMethod, &pluginv1.DescribeRequest{}, said)
	if status.Code(err) == codes.Unimplemented {
		return nil, false
	}
	if err != nil {
		tb.Fatalf("it does not say what it is: %v", err)
	}
	return said, true
}
