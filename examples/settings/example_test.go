// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package settings_test

import (
	"flag"
	"fmt"
	"strings"
	"testing/fstest"
	"time"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/basicflag"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/providers/fs"
	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/providers/rawbytes"
	"github.com/knadh/koanf/providers/s3"
	"github.com/knadh/koanf/providers/structs"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"

	"github.com/quorate/quorate/cluster"
)

// base is what the examples lay their settings over. A program would name its file.
func base() cluster.Option {
	text := "cluster: {name: bank}\nnode: {address: 127.0.0.1:7946}\n"
	return cluster.WithProvider("base", rawbytes.Provider([]byte(text)), yaml.Parser())
}

// show prints some settings of a node with these options.
func show(opts ...cluster.Option) {
	c, err := cluster.Load(opts...)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Cluster.Name, c.Node.Roles, c.Membership.GossipInterval, c.Sharding.MailboxSize)
}

// Values of the program, under keys with points.
func Example_confmap() {
	values := map[string]any{"node.roles": []string{"backend"}, "membership.gossip-interval": 2 * time.Second}
	show(base(), cluster.WithProvider("program", confmap.Provider(values, "."), nil))
	// Output: bank [backend] 2s 1000
}

// A struct of the program.
func Example_structs() {
	type node struct {
		Roles []string `koanf:"roles"`
	}
	settings := struct {
		Node node `koanf:"node"`
	}{node{Roles: []string{"backend"}}}
	show(base(), cluster.WithProvider("program", structs.Provider(settings, "koanf"), nil))
	// Output: bank [backend] 1s 1000
}

// A file in a parser's format. The option WithFile reads YAML and JSON files by itself, and names the line of a fault.
func Example_file() {
	show(cluster.WithProvider("cluster.yaml", file.Provider("testdata/cluster.yaml"), yaml.Parser()))
	// Output: bank [backend] 1s 500
}

// A file that is compiled into the program, such as one of an embed.FS.
func Example_fs() {
	files := fstest.MapFS{"defaults.yaml": {Data: []byte("sharding: {mailbox-size: 500}\n")}}
	show(base(), cluster.WithProvider("defaults", fs.Provider(files, "defaults.yaml"), yaml.Parser()))
	// Output: bank [] 1s 500
}

// Flags of the standard library that were set; the text of a flag becomes what its setting needs.
func Example_basicflag() {
	flags := flag.NewFlagSet("bank", flag.ContinueOnError)
	flags.String("node.roles", "", "roles of the node")
	flags.String("sharding.mailbox-size", "", "messages that wait for an entity")
	if err := flags.Parse([]string{"-node.roles=backend,eu", "-sharding.mailbox-size=500"}); err != nil {
		fmt.Println(err)
		return
	}
	set := basicflag.ProviderWithValue(flags, ".", func(key, value string) (string, any) {
		if value == "" {
			return "", nil // It was not set.
		}
		return key, value
	})
	show(base(), cluster.WithProvider("flags", set, nil))
	// Output: bank [backend eu] 1s 500
}

// Flags with two dashes.
func Example_posflag() {
	flags := pflag.NewFlagSet("bank", pflag.ContinueOnError)
	flags.StringSlice("node.roles", nil, "roles of the node")
	flags.Duration("membership.gossip-interval", time.Second, "time between two rounds")
	if err := flags.Parse([]string{"--node.roles=backend,eu"}); err != nil {
		fmt.Println(err)
		return
	}
	show(base(), cluster.WithProvider("flags", posflag.Provider(flags, ".", koanf.New(".")), nil))
	// Output: bank [backend eu] 1s 1000
}

// The environment under names of one's own: BANK_NODE_ROLES. The names that begin with QUORATE_ are read in any case.
func Example_env() {
	own := env.Provider(".", env.Opt{
		Prefix: "BANK_",
		TransformFunc: func(name, value string) (string, any) {
			return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, "BANK_")), "_", "."), value
		},
		EnvironFunc: func() []string { return []string{"BANK_NODE_ROLES=backend", "HOME=/"} },
	})
	show(base(), cluster.WithProvider("environment", own, nil))
	// Output: bank [backend] 1s 1000
}

// An instance of koanf, of which the node has a part.
func Example_koanf() {
	k := koanf.New(".")
	if err := k.Load(confmap.Provider(map[string]any{"cluster.node.roles": []string{"backend"}, "shop.currency": "EUR"}, "."), nil); err != nil {
		fmt.Println(err)
		return
	}
	show(base(), cluster.WithKoanf(k.Cut("cluster")))
	show(base(), cluster.WithKoanf(k)) // All of it counts as settings.
	// Output:
	// bank [backend] 1s 1000
	// koanf: cluster.node: unknown key; did you mean "name"?
	// koanf: shop: unknown section
}

// A file in a bucket. Stores of keys, such as etcd and Consul, need config.Flat or config.Document, see
// docs/configuration.md.
func Example_s3() {
	server := s3With("/bank/cluster.yaml", "node: {roles: [backend]}\n")
	defer server.Close()
	object := s3.Provider(s3.Config{
		AccessKey: "key", SecretKey: "secret", Region: "eu-central-1", Bucket: "bank", ObjectKey: "cluster.yaml", Endpoint: server.URL,
	})
	show(base(), cluster.WithProvider("s3", object, yaml.Parser()))
	// Output: bank [backend] 1s 1000
}
