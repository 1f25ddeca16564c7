// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downing

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Config chooses the downing strategy and says when it is asked.
type Config struct {
	// Strategy is the name of the strategy: "keep-majority", "down-all", or the
	// name of one that the program adds. Names that are not built in are not
	// refused here.
	Strategy string `koanf:"strategy" reload:"yes" known:"keep-majority|down-all"`
	// StableAfter is for how long the view must be unchanged before the
	// strategy is asked; auto follows the number of nodes.
	// At least the fence, up to 10 minutes. Shorter than the nodes of one side
	// take to notice the same failure, and decisions are taken on halves of the
	// truth; longer, and failover takes longer by as much.
	StableAfter AutoDuration `koanf:"stable-after" known:"auto"`
	// DownOwnSideAfter is how long a side waits for a strategy that cannot
	// answer, before it downs itself: from 1 s to 1 h. It matters only for
	// strategies that ask something outside.
	DownOwnSideAfter time.Duration `koanf:"down-own-side-after" range:"1s..1h"`
}

// Bounds of the configuration.
const (
	stableAfterMost       = 10 * time.Minute
	downOwnSideAfterLeast = time.Second
	downOwnSideAfterMost  = time.Hour
)

// Default returns keep-majority, stable-after auto and 30 s before a side
// without an answer gives up.
func Default() Config {
	return Config{Strategy: KeepMajorityName, StableAfter: Auto, DownOwnSideAfter: 30 * time.Second}
}

// Validate returns all faults of the configuration, joined, each with its key.
// The fence belongs to another configuration: see [Config.ValidateFence].
func (c Config) Validate() error {
	var errs []error
	if c.Strategy == "" {
		errs = append(errs, &fieldError{"strategy", "is empty; the default is " + KeepMajorityName})
	}
	if d := time.Duration(c.StableAfter); d < 0 || d > stableAfterMost {
		errs = append(errs, &fieldError{"stable-after", fmt.Sprintf("%v is neither auto nor above 0 and up to %v", d, stableAfterMost)})
	}
	if d := c.DownOwnSideAfter; d < downOwnSideAfterLeast || d > downOwnSideAfterMost {
		errs = append(errs, &fieldError{"down-own-side-after", fmt.Sprintf("%v is not from %v to %v", d, downOwnSideAfterLeast, downOwnSideAfterMost)})
	}
	return errors.Join(errs...)
}

// ValidateFence returns an error if stable-after is given and shorter than the
// fence, the time within which a node that is cut off stops by itself. With a
// shorter one, the other side could decide while the node still works.
func (c Config) ValidateFence(fence time.Duration) error {
	if d := time.Duration(c.StableAfter); c.StableAfter != Auto && d < fence {
		return &fieldError{"stable-after", fmt.Sprintf("%v is shorter than the fence, %v; use auto or at least the fence", d, fence)}
	}
	return nil
}

// fieldError is a fault of one field.
type fieldError struct{ key, text string }

// Error describes the fault, beginning with the key of the field.
func (e *fieldError) Error() string { return e.key + ": " + e.text }

// Field returns the key of the field as in a configuration file.
func (e *fieldError) Field() string { return e.key }

// Stable returns stable-after in effect for n members: what was given, or for
// auto the result of [StableAfter].
func (c Config) Stable(n int, minSilence, maxSilence, fence time.Duration) time.Duration {
	if c.StableAfter != Auto {
		return time.Duration(c.StableAfter)
	}
	return StableAfter(n, minSilence, maxSilence, fence)
}

// New returns the built-in provider that the configuration names, or an error:
// a fault of the configuration, or [ErrUnknownStrategy] for a name that is not
// built in, which the caller may then look up elsewhere.
func New(c Config) (Immediate, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("downing: %w", err)
	}
	switch c.Strategy {
	case KeepMajorityName:
		return KeepMajority{}, nil
	case DownAllName:
		return All{}, nil
	default:
		return nil, fmt.Errorf("%w %q", ErrUnknownStrategy, c.Strategy)
	}
}

// StableAfter returns the stability margin for n members:
//
//	maxSilence - minSilence + spread(n) + 0.5 s, but at least the fence
//
// Observers of one failure mark it between minSilence and maxSilence after it,
// so their marks are at most the difference apart; [Spread] is what news needs
// to reach everybody, and half a second is for everything else.
func StableAfter(n int, minSilence, maxSilence, fence time.Duration) time.Duration {
	return max(fence, maxSilence-minSilence+Spread(n)+500*time.Millisecond)
}

// Spread returns how long news takes to reach all of n members when everybody
// who hears it pushes it to 4 random members, at most 10 times a second:
//
//	100 ms × ceil(log5(n) + ln(n)/4)
//
// The first term counts the rounds in which those who know multiply by 5, the
// second those in which the last ones are found (Pittel, On Spreading a Rumor,
// SIAM J. Appl. Math. 47, 1987). It is 200 ms for 5 members, 400 ms for 50 and
// 700 ms for 1,000, and 0 for fewer than two.
func Spread(n int) time.Duration {
	if n < 2 {
		return 0
	}
	const fanout = 4
	ln := math.Log(float64(n))
	rounds := math.Ceil(ln/math.Log(fanout+1) + ln/fanout)
	return time.Duration(rounds) * 100 * time.Millisecond
}
