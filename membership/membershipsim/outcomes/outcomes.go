// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package outcomes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/membership/membershipsim"
	"github.com/quorate/quorate/simulation"
)

// A strategy is given ([Strategy]), Run has every case run by as many goroutines as there are
// processors, and adds the outcomes up in the order of the cases.

// MaxNodes is the largest number of nodes: the cases of seven would take an hour.
const MaxNodes = 6

// ErrOptions is wrapped by errors about [Options].
var ErrOptions = errors.New("outcomes: options")

// ErrTwo says that two parts of a cluster went on.
var ErrTwo = errors.New("two parts of the cluster go on")

// Strategy is the downing strategy that is looked at.
type Strategy struct {
	Name, Version, Parameters string
	Class                     downing.Class

	// Decide decides. It is called by one goroutine at a time.
	Decide func(downing.View) (downing.Decision, error)

	// Asked says that nodes ask the strategy by a call, as they ask one that may block.
	Asked bool

	misfit func([]*gossip.Member) string // See [downing.Fitted]; nil if any cluster will do.
	config Config                        // The defaults if it names no strategy.
	leased bool                          // Nodes ask a store of leases of their world.
}

// Config is the section downing of a configuration.
type Config = downing.Config

// DefaultConfig returns the defaults of the section, with names for a lease and its store that
// [ByLease] needs.
func DefaultConfig() Config {
	c := downing.Default()
	c.LeaseMajority.Store, c.LeaseMajority.Lease = "simulated", "simulated"
	return c
}

// BuiltIn returns the strategy of package downing that a configuration names, with its
// parameters. The error is that of [downing.Config.Validate], or names an unknown strategy.
func BuiltIn(cfg Config) (Strategy, error) {
	if err := cfg.Validate(); err != nil {
		return Strategy{}, err
	}
	made, parameters, err := downing.BuiltIns().New(cfg)
	if err != nil {
		return Strategy{}, err
	}
	s := Strategy{
		Name: cfg.Strategy, Version: "1", Parameters: cfg.Identify(parameters), Class: cfg.Promise(made.Class()),
		Decide: made.DecideNow, config: cfg,
	}
	if fitted, ok := made.(downing.Fitted); ok {
		s.misfit = fitted.Misfit
	}
	return s, nil
}

// LeaseMajority is the name of the strategy that decides by a lease.
const LeaseMajority = downing.LeaseMajorityName

// ByLease returns the strategy [LeaseMajority] with the parameters of a section, and a store of
// leases in the world of each case, whatever kind of store the section names. The families of
// [LeaseCases] are run besides. The error is that of [downing.Config.Validate].
func ByLease(cfg Config) (Strategy, error) {
	cfg.Strategy = LeaseMajority
	if err := cfg.Validate(); err != nil {
		return Strategy{}, err
	}
	d := (&membershipsim.Leases{Config: cfg}).Downing()
	return Strategy{
		Name: LeaseMajority, Version: d.Version, Parameters: d.Parameters, Class: d.Class, Asked: true, config: cfg, leased: true,
	}, nil
}

// BuiltIns returns the names of the strategies of package downing.
func BuiltIns() []string { return downing.BuiltIns().Names() }

// Asked returns a strategy that nodes ask, and that decides until ctx ends.
func Asked(ctx context.Context, name, version string, p downing.Provider) Strategy {
	return Strategy{
		Name: name, Version: version, Class: p.Class(), Asked: true,
		Decide: func(v downing.View) (downing.Decision, error) { return p.Decide(ctx, v) },
	}
}

// downing returns the strategy as nodes use it.
func (s *Strategy) downing() protocol.Downing {
	if s.leased {
		return (&membershipsim.Leases{Config: s.config}).Downing()
	}
	d := protocol.Downing{Config: s.config, Version: s.Version, Parameters: s.Parameters, Class: s.Class, Misfit: s.misfit}
	if s.config.Strategy == "" {
		d.Config = downing.Default()
	}
	d.Config.Strategy = s.Name
	if !s.Asked {
		d.Decide = s.Decide
	}
	return d
}

// serve has the nodes of a world ask the strategy. It returns the leases, if that asks for one.
func (s *Strategy) serve(w *simulation.World) *membershipsim.Leases {
	if s.leased {
		leases := &membershipsim.Leases{Config: s.config}
		leases.Serve(w)
		return leases
	}
	w.Strategies().Answer(protocol.CallDowning, func(_ *simulation.Node, request any) (any, error) {
		return s.Decide(request.(protocol.DowningRequest).View)
	})
	return nil
}

// Options say what is run.
type Options struct {
	Nodes    int // How many nodes, 2 to [MaxNodes].
	Strategy Strategy

	// Families are the names of the families that are run; nil for all.
	Families []string

	// Roles says of each role how many nodes have it: the oldest ones. The one that joins, in the
	// families with one, comes after all others.
	Roles map[string]int

	// Case, when not zero, is the number of the only case that is run.
	Case int

	// Trace receives every line of the trace of the only case, when it is not nil.
	Trace io.Writer

	// Progress, when not nil, is called after each case with how many are done, of how many.
	Progress func(done, of int)
}

// Outcome is what came of a case.
type Outcome struct {
	Case   int    `json:"case"`
	Family string `json:"family"`
	Text   string `json:"text"`

	// Sides is into how many sides the fault splits the nodes, 0 if it is no split. Lead is how
	// long before the fault an edit of the members began, one of [Leads]; 0 if none did.
	Sides int           `json:"sides,omitempty"`
	Lead  time.Duration `json:"lead_ns,omitempty"`

	// Hosts are the nodes that go on in the end, sorted, and Waits those that run and wait
	// for a decision or for the others.
	Hosts []int `json:"hosts"`
	Waits []int `json:"waits,omitempty"`

	// Needless says that nobody hosts in the end, although a side has a majority of the members
	// of before the edit that was under way, or of those of after it.
	Needless bool `json:"needless,omitempty"`

	// After is how long after the fault it was settled who hosts.
	After time.Duration `json:"after_ns"`
}

// Row is the sum of a family.
type Row struct {
	Family string `json:"family"`
	About  string `json:"about"`
	Cases  int    `json:"cases"`

	// Whole counts cases after which all nodes of the beginning go on; of the others, Majority
	// those after which more than half of them do, and Smaller those after which fewer do.
	Whole    int `json:"whole"`
	Majority int `json:"majority"`
	Smaller  int `json:"smaller"`

	// Waits counts cases after which nobody hosts and somebody waits, Nobody those after
	// which nobody is left.
	Waits  int `json:"waits"`
	Nobody int `json:"nobody"`

	// Needless counts the cases of the last two sorts with [Outcome.Needless].
	Needless int `json:"needless"`

	// Slowest is the longest [Outcome.After].
	Slowest time.Duration `json:"slowest_ns"`
}

// Table is what came of all cases.
type Table struct {
	Strategy   string `json:"strategy"`
	Version    string `json:"version,omitempty"`
	Parameters string `json:"parameters,omitempty"`
	// Pure and MajorityOnly are what the strategy promises, see [downing.Class].
	Pure         bool `json:"pure"`
	MajorityOnly bool `json:"majority_only"`
	// Misfit says what is wrong with the parameters for the cluster of the beginning; empty if
	// nothing is. See [downing.Fitted].
	Misfit   string    `json:"misfit,omitempty"`
	Nodes    int       `json:"nodes"`
	Rows     []Row     `json:"rows"`
	Outcomes []Outcome `json:"outcomes"`
}

// CaseError says in which case an invariant did not hold.
type CaseError struct {
	Case Case
	Err  error
}

// Error names the case.
func (e *CaseError) Error() string {
	return fmt.Sprintf("case %d (%s: %s): %v", e.Case.Number, e.Case.Family, e.Case.Text, e.Err)
}

// Unwrap returns the violation.
func (e *CaseError) Unwrap() error { return e.Err }

// Run runs the cases. The error is [ErrOptions], that of the context, or a [*CaseError] for
// the first case, by number, in which an invariant did not hold.
func Run(ctx context.Context, o Options) (Table, error) {
	t := Table{
		Strategy: o.Strategy.Name, Version: o.Strategy.Version, Parameters: o.Strategy.Parameters,
		Pure: o.Strategy.Class.Pure, MajorityOnly: o.Strategy.Class.MajorityOnly, Nodes: o.Nodes,
	}
	cases, err := o.cases()
	if err != nil {
		return t, err
	}
	if o.Strategy.misfit != nil {
		t.Misfit = o.Strategy.misfit(o.members())
	}
	if !o.Strategy.leased {
		o.Strategy.Decide = oneAtATime(o.Strategy.Decide)
	}
	if t.Outcomes, err = o.all(ctx, cases); err != nil {
		return t, err
	}
	t.sum()
	return t, nil
}

// cases returns the cases that the options ask for.
func (o *Options) cases() ([]Case, error) {
	if o.Nodes < 2 || o.Nodes > MaxNodes {
		return nil, fmt.Errorf("%w: %d nodes: want 2 to %d", ErrOptions, o.Nodes, MaxNodes)
	}
	for role, n := range o.Roles {
		if role == "" || n < 1 {
			return nil, fmt.Errorf("%w: %d nodes with the role %q: want a name, and at least one node", ErrOptions, n, role)
		}
	}
	if o.Strategy.Decide == nil && !o.Strategy.leased || o.Strategy.Name == "" {
		return nil, fmt.Errorf("%w: no strategy", ErrOptions)
	}
	all, names := Cases(o.Nodes), familyNames(families())
	if o.Strategy.leased {
		all, names = append(all, LeaseCases(o.Nodes)...), append(names, familyNames(leaseFamilies())...)
	}
	for _, f := range o.Families {
		if !slices.Contains(names, f) {
			return nil, fmt.Errorf("%w: no family %q, there are %v", ErrOptions, f, names)
		}
	}
	if o.Case != 0 {
		if o.Case < 1 || o.Case > len(all) {
			return nil, fmt.Errorf("%w: case %d of %d nodes: want 1 to %d", ErrOptions, o.Case, o.Nodes, len(all))
		}
		return all[o.Case-1 : o.Case], nil
	}
	if o.Trace != nil {
		return nil, fmt.Errorf("%w: a trace is that of one case", ErrOptions)
	}
	if o.Families != nil {
		all = slices.DeleteFunc(all, func(c Case) bool { return !slices.Contains(o.Families, c.Family) })
	}
	return all, nil
}

// members returns the members of a cluster that has formed.
func (o *Options) members() []*gossip.Member {
	all := make([]*gossip.Member, o.Nodes)
	for i := range all {
		all[i] = &gossip.Member{Node: gossip.NodeID{Address: address(i), UID: 1}, Status: gossip.Up, UpNumber: 1, Roles: o.rolesOf(i)}
	}
	return all
}

// rolesOf returns the roles of a node, sorted.
func (o *Options) rolesOf(i int) []string {
	var roles []string
	for role, n := range o.Roles {
		if i < n {
			roles = append(roles, role)
		}
	}
	slices.Sort(roles)
	return roles
}

// oneAtATime lets one goroutine at a time decide.
func oneAtATime(decide func(downing.View) (downing.Decision, error)) func(downing.View) (downing.Decision, error) {
	var mu sync.Mutex
	return func(v downing.View) (downing.Decision, error) {
		mu.Lock()
		defer mu.Unlock()
		return decide(v)
	}
}

// all runs cases, several at a time.
func (o *Options) all(ctx context.Context, cases []Case) ([]Outcome, error) {
	var (
		outcomes = make([]Outcome, len(cases))
		failed   = make([]error, len(cases))
		mu       sync.Mutex
		next     int
		done     int
		broken   bool
		workers  sync.WaitGroup
	)
	take := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		if next == len(cases) || broken || ctx.Err() != nil {
			return 0, false
		}
		next++
		return next - 1, true
	}
	finish := func(i int) {
		mu.Lock()
		defer mu.Unlock()
		done++
		broken = broken || failed[i] != nil
		if o.Progress != nil {
			o.Progress(done, len(cases))
		}
	}
	for range min(runtime.GOMAXPROCS(0), len(cases)) {
		workers.Go(func() {
			for i, ok := take(); ok; i, ok = take() {
				outcomes[i], failed[i] = o.one(&cases[i])
				finish(i)
			}
		})
	}
	workers.Wait()
	for _, err := range failed {
		if err != nil {
			return nil, err
		}
	}
	return outcomes, ctx.Err()
}

// one runs a case.
func (o *Options) one(c *Case) (out Outcome, err error) {
	defer func() { // A machine asserts its invariants.
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
		if err != nil {
			err = &CaseError{*c, err}
		}
	}()
	out = Outcome{Case: c.Number, Family: c.Family, Text: c.Text, Sides: len(c.sides), Lead: c.lead, Hosts: []int{}}
	k, err := form(o, c, uint64(c.Number))
	if err != nil {
		return out, err
	}
	began := k.world.Now()
	c.strike(k)
	k.watch()
	after := ends
	if !o.Strategy.Class.MajorityOnly || o.Strategy.Asked {
		after = endsWaiting
	}
	if err := k.world.Run(after + c.acts); err != nil {
		return out, err
	}
	if parts := k.parts(); len(parts) > 1 {
		k.world.Fail(fmt.Errorf("%w: %v and %v", ErrTwo, parts[0][0].ID(), parts[1][0].ID()))
		return out, k.world.Failure()
	}
	for i := range c.nodes + 1 {
		switch n := k.world.Node(address(i)); {
		case n == nil:
		case k.invariants.Hosts(n):
			out.Hosts = append(out.Hosts, i)
		default:
			out.Waits = append(out.Waits, i)
		}
	}
	out.Needless = len(out.Hosts) == 0 && c.could()
	out.After = max(k.changed-began, 0)
	return out, nil
}

// sum adds the outcomes up by family.
func (t *Table) sum() {
	for _, f := range slices.Concat(families(), leaseFamilies()) {
		r := Row{Family: f.name, About: f.about}
		for _, o := range t.Outcomes {
			if o.Family == f.name {
				r.add(t.Nodes, &o)
			}
		}
		if r.Cases > 0 {
			t.Rows = append(t.Rows, r)
		}
	}
}

func (r *Row) add(nodes int, o *Outcome) {
	r.Cases++
	r.Slowest = max(r.Slowest, o.After)
	if o.Needless {
		r.Needless++
	}
	old := 0 // Those who host and were there in the beginning.
	for _, i := range o.Hosts {
		if i < nodes {
			old++
		}
	}
	switch {
	case old == nodes:
		r.Whole++
	case 2*old > nodes:
		r.Majority++
	case len(o.Hosts) > 0:
		r.Smaller++
	case len(o.Waits) > 0:
		r.Waits++
	default:
		r.Nobody++
	}
}
