// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build mutants

package singleton_test

import (
	"testing"

	"github.com/quorate/quorate/simulation/simulationtest"
)

// Each of these defects makes a test fail: first those of what singletons and daemons have in common, then those
// of singletons alone.
func TestMutantsAreCaught(t *testing.T) {
	const instance, background, singleton = "internal/background/instance.go", "internal/background/background.go", "singleton.go"
	const repeated, oldest, leased = "TestAFailedRunIsRepeated", "TestOneInstanceRunsOnTheOldest", "TestALeaseIsHeldWhileTheWorkRuns"
	var all []simulationtest.Mutant
	for _, m := range []struct{ name, test, file, old, to string }{
		{"a run that failed is the last one", repeated, instance, "		return err\n	default:\n", "		if mutant(NAME) {\n			return nil\n		}\n		return err\n	default:\n"},
		{"a failure begins the count anew", repeated, instance, "	r.err = errEnded\n", "	r.err = errEnded\n	if mutant(NAME) {\n		j.tell(r, false)\n	}\n"},
		{"a run of a minute leaves the count", repeated, instance, "AfterFunc(lasting, func() { j.tell(r, false) })", "AfterFunc(lasting, func() {\n		if !mutant(NAME) {\n			j.tell(r, false)\n		}\n	})"},
		{"a run of less than a minute begins the count anew", repeated, instance, "	lasts := time.AfterFunc(lasting,", "	lasting := lasting\n	if mutant(NAME) {\n		lasting -= 10 * time.Second\n	}\n	lasts := time.AfterFunc(lasting,"},
		{"a panic counts as done", repeated, instance, "		if p := recover(); p != nil {\n", "		if p := recover(); p != nil && mutant(NAME) {\n			r.err = nil\n		} else if p != nil {\n"},
		{"an end of the goroutine counts as done", repeated, instance, "	defer j.tell(r, true) // ", "	defer func() {\n		if mutant(NAME) && errors.Is(r.err, errEnded) {\n			r.err = nil\n		}\n		j.tell(r, true)\n	}() // "},
		{"work that is done is repeated", "TestWorkThatIsDoneRests", instance, "	default:\n		i.job.Log.Info(", "	case mutant(NAME):\n		return errEnded\n	default:\n		i.job.Log.Info("},
		{"a run that ended with the standing is the last one", "TestARunBeginsAgainWithTheStandingOfItsNode", instance, "	case i.run.ctx.Err() != nil:", "	case i.run.ctx.Err() != nil && !mutant(NAME):"},
		{"a run goes on without standing", "TestARunBeginsAgainWithTheStandingOfItsNode", instance, "bound.WithCancel(c.Context())", "bound.WithCancel(map[bool]context.Context{true: context.WithoutCancel(c.Context()), false: c.Context()}[mutant(NAME)])"},
		{"a run that is to stop is not told", oldest, instance, "	i.run.cancel(errStopped)\n", "	if !mutant(NAME) {\n		i.run.cancel(errStopped)\n	}\n"},
		{"nobody waits for a run that takes its time to end", "TestAHandOverWaitsForTheRun", instance, "	<-i.run.over\n", "	if !mutant(NAME) {\n		<-i.run.over\n	}\n"},
		{"runs have no epoch", oldest, instance, "i.job.work(i.run, c.Epoch())", "i.job.work(i.run, map[bool]sharding.Epoch{false: c.Epoch()}[mutant(NAME)])"},

		{"work begins although another has the lease", leased, instance, "	held, err := j.Lease.Acquire(r.ctx)\n", "	held, err := j.Lease.Acquire(r.ctx)\n	if err != nil && mutant(NAME) {\n		return j.timed(r.ctx, r, epoch)\n	}\n"},
		{"work that has no lease is done", leased, instance, "		return fmt.Errorf(\"without the lease", "		if mutant(NAME) {\n			return nil\n		}\n		return fmt.Errorf(\"without the lease"},
		{"work without a lease does not rest", "TestWithoutTheLeaseWorkRests", instance, "	held, err := j.Lease.Acquire(r.ctx)\n	if err", "	if mutant(NAME) {\n		j.tell(r, false)\n	}\n	held, err := j.Lease.Acquire(r.ctx)\n	if err"},
		{"a lost lease ends nothing", leased, instance, "			cancel(ErrLeaseLost)\n", "			if !mutant(NAME) {\n				cancel(ErrLeaseLost)\n			}\n"},
		{"a lost lease is no cause", leased, instance, "		case <-held.Lost():\n", "		case <-held.Lost():\n			if mutant(NAME) {\n				cancel(nil)\n			}\n"},
		{"work whose lease is lost is done", "TestALostLeaseIsNoSuccess", instance, "	if err == nil && errors.Is(", "	if !mutant(NAME) && err == nil && errors.Is("},
		{"a lease is kept", leased, instance, "		limit, done := ", "		if mutant(NAME) {\n			return\n		}\n		limit, done := "},
		{"a lease is kept after a panic", "TestALeaseIsGivenBackAfterAPanic", instance, "	defer func() { // Also after a panic.\n", "	defer func() {\n		if mutant(NAME) && errors.Is(r.err, errEnded) && err == nil {\n			cancel(nil)\n			return\n		}\n"},
		{"to wait for a lease is a run", "TestWaitingForALeaseIsNoRun", instance, "	if j.Lease == nil {\n", "	if mutant(NAME) {\n		lasts := time.AfterFunc(lasting, func() { j.tell(r, false) })\n		defer lasts.Stop()\n	}\n	if j.Lease == nil {\n"},

		{"a run does not look at the clock", "TestTheContextOfARunLooksAtTheClock", "../bound/context.go", "	case c.parent.Err() != nil:", "	case !mutant(NAME) && c.parent.Err() != nil:"},
		{"a context does not look at what it is bound to", "TestTheContextOfARunLooksAtTheClock", "../bound/context.go", "	case c.holds != nil && !c.holds():", "	case c.holds != nil && !c.holds() && !mutant(NAME):"},
		{"every node may run it", oldest + "WithTheRole", background, "Role: c.Role,", "Role: map[bool]string{false: c.Role}[mutant(NAME)],"},
		{"the time to stop is not that of the caller", "TestWhatAStartRefuses", background, "HandoffTimeout: c.HandOverTimeout,", "HandoffTimeout: map[bool]time.Duration{false: c.HandOverTimeout}[mutant(NAME)],"},
		{"any node runs it, not the oldest", oldest, singleton, "Shards: 1, OnOldest: true,", "Shards: 1, OnOldest: !mutant(NAME),"},
		{"a singleton without work", "TestWhatAStartRefuses", singleton, "	if c.Run == nil {", "	if c.Run == nil && !mutant(NAME) {"},
		{"an entity waits for its first message", "TestAnEntityAsASingleton", singleton, "[]string{id}, true\n", "[]string{id}, true\n	if mutant(NAME) {\n		k.Permanent = nil\n	}\n"},
		{"an entity runs anywhere", "TestAnEntityRunsOnTheOldest", singleton, "	return k\n", "	k.OnOldest = !mutant(NAME)\n	return k\n"},
		{"the first call waits for its interval", "TestEvery", singleton, "		defer ticks.Stop()\n", "		defer ticks.Stop()\n		if mutant(NAME) {\n			<-ticks.C\n		}\n"},
		{"the interval begins with the end of a call", "TestEveryHasNoOverlaps", singleton, "			select {\n			case <-ticks.C:", "			if mutant(NAME) {\n				ticks.Reset(interval)\n			}\n			select {\n			case <-ticks.C:"},
		{"calls do not wait for one another", "TestEveryHasNoOverlaps", singleton, "		for {\n			if err :=", "		for {\n			if mutant(NAME) {\n				go func() { _ = f(ctx, epoch) }()\n			} else if err :="},
		{"a call that failed is followed by others", "TestEvery", singleton, "				return err\n", "				if !mutant(NAME) {\n					return err\n				}\n"},
		{"a call begins after the end", "TestEveryBeginsNothingAfterItsEnd", singleton, "			case <-ctx.Done():\n			}\n", "			case <-ctx.Done():\n				if mutant(NAME) {\n					return context.Cause(ctx)\n				}\n			}\n			if mutant(NAME) {\n				continue\n			}\n"},
	} {
		all = append(all, simulationtest.Mutant{Name: m.name, Package: ".", Tests: []string{m.test}, Edits: []simulationtest.Edit{{File: m.file, Old: m.old, New: m.to}}})
	}
	simulationtest.RequireFound(t, ".", all)
}
