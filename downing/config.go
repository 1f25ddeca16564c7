// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downing

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/config/field"
)

// The section of the configuration and its faults; the catalogue of built-in
// strategies, from which a strategy is made by its name; and the stability margin,
// with the time that news takes to spread.

// Config chooses the downing strategy and says when it is asked.
type Config struct {
	// Strategy is the name of the strategy: "keep-majority", "static-quorum",
	// "keep-oldest", "lease-majority", "manual", "down-all", or the name of one that the
	// program adds. Names that are not built in are not refused here.
	Strategy string `koanf:"strategy" reload:"yes" known:"keep-majority|static-quorum|keep-oldest|lease-majority|manual|down-all"`
	// Mode says what becomes of decisions: "act" carries them out, "report" downs no
	// member, and says instead which the strategy would have downed, in the log and in
	// the topic downing-report of the decisions. A side without a majority stops its work
	// in either mode.
	Mode string `koanf:"mode" reload:"yes" oneof:"act|report"`
	// StaticQuorum configures the strategy static-quorum.
	StaticQuorum StaticQuorumConfig `koanf:"static-quorum" reload:"yes"`
	// KeepOldest configures the strategy keep-oldest.
	KeepOldest KeepOldestConfig `koanf:"keep-oldest" reload:"yes"`
	// LeaseMajority configures the strategy lease-majority.
	LeaseMajority LeaseMajorityConfig `koanf:"lease-majority" reload:"yes"`
	// StableAfter is how long the view must be unchanged before the strategy is
	// called; auto follows the number of nodes. At least the fence, up to 10 minutes.
	// If it is shorter than the nodes of one side take to notice the same failure,
	// decisions are taken on incomplete views; if it is shorter than twice the time in
	// which news reaches all nodes, one that joins over a broken link is downed instead
	// of waiting; if it is longer, failover takes longer by as much.
	StableAfter AutoDuration `koanf:"stable-after" known:"auto"`
	// DownOwnSideAfter is how long a side waits for a strategy that cannot answer
	// before the side downs itself: from 1 s to 1 h. It matters only for strategies
	// that depend on something outside the node.
	DownOwnSideAfter time.Duration `koanf:"down-own-side-after" range:"1s..1h"`
}

// The modes.
const (
	ModeAct    = "act"
	ModeReport = "report"
)

// StaticQuorumConfig configures [StaticQuorum].
type StaticQuorumConfig struct {
	// QuorumSize is how many members a side needs to be kept: more than half of the
	// members that the cluster, or the role, ever has. It must be set, from 1 to 10,000,
	// if the strategy is static-quorum.
	QuorumSize int `koanf:"quorum-size" unit:"members" range:"0..10000"`
	// Role is the role of the members that count; empty: all members count, and a side
	// needs a majority of the voters as well.
	Role string `koanf:"role"`
}

// KeepOldestConfig configures [KeepOldest].
type KeepOldestConfig struct {
	// DownIfAlone has the oldest member give up when it is alone, so that the others go
	// on if it dies. Without it the whole cluster ends with its oldest member.
	DownIfAlone bool `koanf:"down-if-alone"`
	// Role is the role of the members that count; empty: all members count.
	Role string `koanf:"role"`
}

// Bounds of the configuration.
const (
	maxQuorumSize  = 10_000
	maxStableAfter = 10 * time.Minute
)

// Default returns keep-majority, which acts, stable-after auto, and 30 s until a side
// without an answer downs itself; keep-oldest with down-if-alone, if it is chosen.
func Default() Config {
	return Config{
		Strategy: KeepMajorityName, Mode: ModeAct, StableAfter: Auto, DownOwnSideAfter: 30 * time.Second,
		KeepOldest:    KeepOldestConfig{DownIfAlone: true},
		LeaseMajority: LeaseMajorityConfig{MinorityDelay: 2 * time.Second, ReleaseAfter: 40 * time.Second},
	}
}

// Validate returns all faults of the configuration, joined, each a [field.Error].
// The fence belongs to another configuration: see [Config.ValidateFence].
func (c Config) Validate() error {
	var faults field.Faults
	faults.Refuse(c.Strategy == "", "strategy", "is empty; the default is %s", KeepMajorityName)
	faults.Refuse(c.Mode != ModeAct && c.Mode != ModeReport, "mode", "%q is neither %s nor %s", c.Mode, ModeAct, ModeReport)
	faults.Add(field.Within("static-quorum", c.StaticQuorum.validate(c.Strategy)))
	faults.Add(field.Within("lease-majority", c.LeaseMajority.validate(c.Strategy)))
	stable := time.Duration(c.StableAfter)
	faults.Refuse(stable < 0 || stable > maxStableAfter,
		"stable-after", "%v is neither auto nor above 0 and up to %v", stable, maxStableAfter)
	faults.Add(field.Ranges(c))
	return faults.Err()
}

// validate returns the fault of the quorum size, which must be set if the strategy needs it.
func (c StaticQuorumConfig) validate(strategy string) error {
	var faults field.Faults
	faults.Refuse(c.QuorumSize < 0 || c.QuorumSize > maxQuorumSize, "quorum-size", "%d is not from 1 to %d", c.QuorumSize, maxQuorumSize)
	faults.Refuse(c.QuorumSize == 0 && strategy == StaticQuorumName, "quorum-size",
		"must be set for %s: more than half of the members that the cluster, or the role, ever has, such as 3 of 5", StaticQuorumName)
	return faults.Err()
}

// reportOnly begins the parameters of a strategy that only reports.
const reportOnly = "mode=" + ModeReport

// Identify returns the parameters of a strategy with the mode, which is one of them: a
// cluster changes from one to the other like from strategy to strategy.
func (c Config) Identify(parameters string) string {
	switch {
	case c.Mode != ModeReport:
		return parameters
	case parameters == "":
		return reportOnly
	default:
		return reportOnly + " " + parameters
	}
}

// Promise returns what a strategy of the class promises with the mode. No side is kept by
// one that only reports, so a side without a majority has to stop by itself.
func (c Config) Promise(class Class) Class {
	class.MajorityOnly = class.MajorityOnly || c.Mode == ModeReport
	return class
}

// OnlyReports reports whether these are the parameters of a strategy that only reports,
// see [Config.Identify].
func OnlyReports(parameters string) bool {
	return parameters == reportOnly || strings.HasPrefix(parameters, reportOnly+" ")
}

// ValidateFence returns an error if stable-after is set and shorter than the fence,
// the time within which a node that is cut off stops by itself. With a shorter
// stable-after, the other side could decide while the node still works.
func (c Config) ValidateFence(fence time.Duration) error {
	if d := time.Duration(c.StableAfter); c.StableAfter != Auto && d < fence {
		return field.Errorf("stable-after", "%v is shorter than the fence, %v; use auto or at least the fence", d, fence)
	}
	return nil
}

// Stable returns the stability margin for n members: the configured one, or for auto
// the result of [StableAfter].
func (c Config) Stable(n int, minSilence, maxSilence, fence time.Duration) time.Duration {
	if c.StableAfter != Auto {
		return time.Duration(c.StableAfter)
	}
	return StableAfter(n, minSilence, maxSilence, fence)
}

// BuiltIn is a strategy that a node has without a plugin: a row of [BuiltIns].
type BuiltIn struct {
	// Name is the name of the strategy in a configuration.
	Name string

	// New makes the strategy from a section that is valid and names it.
	New func(Config) Immediate

	// Parameters returns the canonical text of the settings by which the strategy
	// decides. Two nodes decide alike only if their texts are equal, so members
	// compare them. Nil: the strategy decides by the view alone.
	Parameters func(Config) string
}

// Catalogue is a list of strategies with different names.
type Catalogue []BuiltIn

// BuiltIns returns the strategies of this package. A new strategy is a row here, its
// name in the tag of [Config.Strategy], a field of [Config] for each of its parameters,
// and a row of the strategies that are under the laws in strategies_test.go.
func BuiltIns() Catalogue {
	return Catalogue{
		{Name: KeepMajorityName, New: func(Config) Immediate { return KeepMajority{} }},
		{
			Name: StaticQuorumName,
			New: func(c Config) Immediate {
				return StaticQuorum{Quorum: c.StaticQuorum.QuorumSize, Role: c.StaticQuorum.Role}
			},
			Parameters: func(c Config) string {
				return fmt.Sprintf("quorum-size=%d role=%q", c.StaticQuorum.QuorumSize, c.StaticQuorum.Role)
			},
		},
		{
			Name: KeepOldestName,
			New:  func(c Config) Immediate { return KeepOldest(c.KeepOldest) },
			Parameters: func(c Config) string {
				return fmt.Sprintf("down-if-alone=%t role=%q", c.KeepOldest.DownIfAlone, c.KeepOldest.Role)
			},
		},
		{Name: ManualName, New: func(Config) Immediate { return Manual{} }},
		{Name: DownAllName, New: func(Config) Immediate { return All{} }},
	}
}

// Names returns the names, in the order of the list.
func (l Catalogue) Names() []string {
	names := make([]string, len(l))
	for i, b := range l {
		names[i] = b.Name
	}
	return names
}

// New returns the strategy that the configuration names, and the canonical text of its
// parameters, the mode included, empty if it has none. The error is a fault of the configuration, or
// [ErrUnknownStrategy] for a name that is not in the list, which the caller may then
// look up elsewhere.
func (l Catalogue) New(c Config) (strategy Immediate, parameters string, err error) {
	if err := c.Validate(); err != nil {
		return nil, "", fmt.Errorf("downing: %w", err)
	}
	i := slices.IndexFunc(l, func(b BuiltIn) bool { return b.Name == c.Strategy })
	if i < 0 {
		return nil, "", fmt.Errorf("%w %q", ErrUnknownStrategy, c.Strategy)
	}
	if l[i].Parameters != nil {
		parameters = l[i].Parameters(c)
	}
	return l[i].New(c), c.Identify(parameters), nil
}

// New returns the strategy of [BuiltIns] that the configuration names; the error is
// that of [Catalogue.New].
func New(c Config) (Immediate, error) {
	strategy, _, err := BuiltIns().New(c)
	return strategy, err
}

// StableAfter returns the stability margin for n members:
//
//	maxSilence - minSilence + spread(n) + 0.5 s, but at least the fence
//
// Observers of one failure mark the failed node between minSilence and maxSilence
// after it, so their marks are at most the difference apart; [Spread] is the time in
// which news reaches every member, and half a second covers everything else.
func StableAfter(n int, minSilence, maxSilence, fence time.Duration) time.Duration {
	return max(fence, maxSilence-minSilence+Spread(n)+500*time.Millisecond)
}

// Spread returns how long news takes to reach all of n members when every member that
// has it pushes it to 4 random members, at most 10 times a second: 100 ms for each of
// [Rounds]. The result is 200 ms for 5 members, 400 ms for 50 and 700 ms for 1,000, and 0
// for fewer than two.
func Spread(n int) time.Duration {
	return time.Duration(Rounds(n, 4)) * 100 * time.Millisecond
}

// Rounds returns in how many rounds news reaches all of n members, when in each every member
// that has it pushes it to fanout random members, 1 or more:
//
//	ceil(log(n)/log(fanout+1) + ln(n)/fanout)
//
// The first term counts the rounds in which the number of informed members grows by a
// factor of fanout+1, the second the rounds in which the last members are reached (Pittel,
// On Spreading a Rumor, SIAM J. Appl. Math. 47, 1987). The result is 0 for fewer than two.
func Rounds(n, fanout int) int {
	if n < 2 {
		return 0
	}
	ln, f := math.Log(float64(n)), float64(fanout)
	return int(math.Ceil(ln/math.Log(f+1) + ln/f))
}
