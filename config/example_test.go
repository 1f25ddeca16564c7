// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/config"
)

// A module's struct holds its defaults before it is decoded.
func ExampleFile_Decode() {
	type Sharding struct {
		NumberOfShards int           `koanf:"number-of-shards"`
		Interval       time.Duration `koanf:"rebalance-interval"`
	}
	file, err := config.Parse("cluster.yaml", []byte("sharding: {number-of-shards: 1000}"))
	if err != nil {
		fmt.Println(err)
		return
	}
	cfg := Sharding{NumberOfShards: 100, Interval: 10 * time.Second}
	fmt.Println(file.Decode("sharding", &cfg), cfg.NumberOfShards, cfg.Interval)
	// Output: <nil> 1000 10s
}

// All faults are reported at once, each in one line.
func ExampleErrors() {
	type Node struct {
		Address string        `koanf:"address"`
		Drain   time.Duration `koanf:"drain-time"`
	}
	file, err := config.Parse("cluster.yaml", []byte("node:\n  addrss: 127.0.0.1:7946\n  drain-time: 10\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(file.Decode("node", &Node{}))
	// Output:
	// cluster.yaml:2: node.addrss: unknown key; did you mean "address"?
	// cluster.yaml:3: node.drain-time: the number 10 is not a duration: write a number and a unit of ns, us, ms, s, m or h, such as "500ms" or "1h30m"
}

// The reference of a program's settings, and the settings that a reload would change.
func ExampleChanges() {
	type Limits struct {
		Size int           `koanf:"size" unit:"messages" range:"1..100" reload:"yes"`
		Wait time.Duration `koanf:"wait" range:">0s.."`
	}
	running := Limits{Size: 10, Wait: time.Second}
	settings, err := config.Settings(running)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range settings {
		fmt.Printf("%s: %s, default %s, %s\n", s.Key(), s.Type, s.Default, s.Range)
	}
	changes, err := config.Changes(running, Limits{Size: 20, Wait: time.Minute})
	fmt.Println(changes, err)
	// Output:
	// size: whole number, default 10, 1..100
	// wait: duration, default 1s, >0s..
	// [{size true} {wait false}] <nil>
}
