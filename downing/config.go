// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downing

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/quorate/quorate/config/field"
)

// The section of the configuration and its faults; the catalogue of built-in
// strategies, from which a strategy is made by its name; and the stability margin,
// with the time that news takes to spread.

// Config chooses the downing strategy and says when it is asked.
type Config struct {
	// Strategy is the name of the strategy: "keep-majority", "down-all", or the
	// name of one that the program adds. Names that are not built in are not
	// refused here.
	Strategy string `koanf:"strategy" reload:"yes" known:"keep-majority|down-all"`
	// StableAfter is how long the view must be unchanged before the strategy is
	// called; auto follows the number of nodes. At least the fence, up to 10 minutes.
	// If it is shorter than the nodes of one side take to notice the same failure,
	// decisions are taken on incomplete views; if it is longer, failover takes longer
	// by as much.
	StableAfter AutoDuration `koanf:"stable-after" known:"auto"`
	// DownOwnSideAfter is how long a side waits for a strategy that cannot answer
	// before the side downs itself: from 1 s to 1 h. It matters only for strategies
	// that depend on something outside the node.
	DownOwnSideAfter time.Duration `koanf:"down-own-side-after" range:"1s..1h"`
}

// Bounds of the configuration.
const (
	stableAfterMost       = 10 * time.Minute
	downOwnSideAfterLeast = time.Second
	downOwnSideAfterMost  = time.Hour
)

// Default returns keep-majority, stable-after auto, and 30 s until a side without an
// answer downs itself.
func Default() Config {
	return Config{Strategy: KeepMajorityName, StableAfter: Auto, DownOwnSideAfter: 30 * time.Second}
}

// Validate returns all faults of the configuration, joined, each a [field.Error].
// The fence belongs to another configuration: see [Config.ValidateFence].
func (c Config) Validate() error {
	var faults field.Faults
	faults.Refuse(c.Strategy == "", "strategy", "is empty; the default is %s", KeepMajorityName)
	stable := time.Duration(c.StableAfter)
	faults.Refuse(stable < 0 || stable > stableAfterMost,
		"stable-after", "%v is neither auto nor above 0 and up to %v", stable, stableAfterMost)
	faults.Refuse(c.DownOwnSideAfter < downOwnSideAfterLeast || c.DownOwnSideAfter > downOwnSideAfterMost,
		"down-own-side-after", "%v is not from %v to %v", c.DownOwnSideAfter, downOwnSideAfterLeast, downOwnSideAfterMost)
	return faults.Err()
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
// name in the tag of [Config.Strategy], and a field of [Config] for each of its
// parameters.
func BuiltIns() Catalogue {
	return Catalogue{
		{Name: KeepMajorityName, New: func(Config) Immediate { return KeepMajority{} }},
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
// parameters, empty if it has none. The error is a fault of the configuration, or
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
	return l[i].New(c), parameters, nil
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
// has it pushes it to 4 random members, at most 10 times a second:
//
//	100 ms × ceil(log5(n) + ln(n)/4)
//
// The first term counts the rounds in which the number of informed members grows by a
// factor of 5, the second the rounds in which the last members are reached (Pittel, On
// Spreading a Rumor, SIAM J. Appl. Math. 47, 1987). The result is 200 ms for 5
// members, 400 ms for 50 and 700 ms for 1,000, and 0 for fewer than two.
func Spread(n int) time.Duration {
	if n < 2 {
		return 0
	}
	const fanout = 4
	ln := math.Log(float64(n))
	rounds := math.Ceil(ln/math.Log(fanout+1) + ln/fanout)
	return time.Duration(rounds) * 100 * time.Millisecond
}
