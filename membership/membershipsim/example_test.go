// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim_test

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership/membershipsim"
	"github.com/quorate/quorate/simulation"
)

// Five members are cut in two for a minute. Those of the smaller side end and are started
// again; after the cut all five are one cluster.
func Example() {
	w := simulation.New(simulation.Options{Seed: 7})
	membershipsim.Serve(w)
	invariants := &membershipsim.Invariants{}
	invariants.Watch(w)
	all := addresses(0, 5)
	operator := &membershipsim.Operator{Seeds: all[:3], RestartAfter: 2 * time.Second}
	operator.Operate(w)
	member := membershipsim.Component(membershipsim.Config{})
	for _, a := range all {
		w.Start(a, func(env simulation.Env) []machine.Component { return []machine.Component{member(env)} })
	}
	w.At(30*time.Second, func() { w.Network().Split(all[:3], all[3:]) })
	w.At(90*time.Second, w.Network().Heal)
	if err := w.Run(3 * time.Minute); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("settled:", membershipsim.Settled(w) == nil, "fenced:", invariants.Fences > 0)
	for _, n := range w.Nodes() {
		fmt.Println(n.ID().Address.Host, n.Generation() > 0)
	}
	// Output:
	// settled: true fenced: true
	// n000 false
	// n001 false
	// n002 false
	// n003 true
	// n004 true
}
