// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package fd

import (
	"math"
	"time"
)

// MaxPhi is the highest degree of suspicion that is ever reported. A phi of 1000
// stands for a chance of one in 10^1000, beyond any meaning; the cap keeps the
// value finite and printable, and a threshold must be below it.
const MaxPhi = 1000

// sampleLongest is the longest interval from which a detector learns. It bounds the
// sums of the history, and with them the rounding of phi, so that phi is monotonic in
// steps of a nanosecond. No interval of an hour is one between heartbeats.
const sampleLongest = time.Hour

// PhiAccrual is the accrual failure detector of Hayashibara, Défago, Yared and
// Katayama, "The phi accrual failure detector" (SRDS 2004). The suspicion
// after a silence t is
//
//	phi(t) = -log10(1 - F(t))
//
// with F the cumulative distribution of a normal distribution that has the mean
// of the latest intervals plus the acceptable pause, and their deviation. So phi
// 1 means that a suspicion at this moment would be wrong in one case of 10, phi
// 8 in one of 10^8, if the intervals were normal and independent.
//
// F is taken by the logistic approximation of Bowling, Khasawneh, Kaewkuekool
// and Cho, "A logistic approximation to the cumulative normal distribution"
// (JIEM 2009), of which the greatest error is 0.00014:
//
//	F(y) = 1 / (1 + exp(-(1.5976 y + 0.070566 y^3))),   y = (t - mean) / deviation
//
// Then phi = log10(1 + exp(x)) with x = 1.5976 y + 0.070566 y^3, a form that
// neither overflows nor loses digits at either end.
//
// The first answer enters two intervals, a quarter below and a quarter above the
// heartbeat interval, in place of a history. The interval before an answer that
// ends an outage is not learnt from. The silence at phi 8 is 4.5 s for regular
// heartbeats each second with the defaults, and 14.5 s at a deviation of 2 s:
// phi alone has no upper bound, see [Bounded].
type PhiAccrual struct {
	config  Config
	history history
	mean    float64 // Mean of the intervals plus the acceptable pause, in nanoseconds.
	spread  float64 // The deviation, at least the configured minimum, in nanoseconds.
	last    time.Time
	heard   bool
}

var (
	_ Accrual = (*PhiAccrual)(nil)
	_ Resumer = (*PhiAccrual)(nil)
)

// NewPhiAccrual returns a detector that has seen no answer. It uses Threshold,
// MaxSampleSize, MinStdDeviation, AcceptableHeartbeatPause and HeartbeatInterval
// of the configuration, which must be valid.
func NewPhiAccrual(config Config) (*PhiAccrual, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	return newPhiAccrual(config), nil
}

func newPhiAccrual(config Config) *PhiAccrual {
	return &PhiAccrual{config: config, history: history{sizeMax: config.MaxSampleSize}}
}

// Heartbeat records an answer, and learns the interval since the latest one if
// the node was available until now.
func (p *PhiAccrual) Heartbeat(at time.Time) {
	p.arrive(at, p.Available(at))
}

// Resume records an answer that ends an outage, and learns nothing from it.
func (p *PhiAccrual) Resume(at time.Time) {
	p.arrive(at, false)
}

func (p *PhiAccrual) arrive(at time.Time, learn bool) {
	if !p.heard {
		p.bootstrap()
		p.last, p.heard = at, true
		return
	}
	interval := at.Sub(p.last)
	if interval < 0 {
		return
	}
	p.last = at
	if learn && interval <= sampleLongest {
		p.history.add(interval)
		p.learned()
	}
}

// bootstrap stands in for a history: the expected interval, with a deviation
// wide enough that the first few irregular answers raise no suspicion.
func (p *PhiAccrual) bootstrap() {
	quarter := p.config.HeartbeatInterval / 4
	p.history.add(p.config.HeartbeatInterval - quarter)
	p.history.add(p.config.HeartbeatInterval + quarter)
	p.learned()
}

func (p *PhiAccrual) learned() {
	mean, deviation := p.history.moments()
	p.mean = mean + float64(p.config.AcceptableHeartbeatPause)
	p.spread = max(deviation, float64(p.config.MinStdDeviation))
}

// Available reports whether phi is below the threshold.
func (p *PhiAccrual) Available(at time.Time) bool {
	return p.Phi(at) < p.config.Threshold
}

// Monitoring reports whether an answer has ever arrived.
func (p *PhiAccrual) Monitoring() bool { return p.heard }

// Phi is the degree of suspicion at this time, from 0 to MaxPhi.
func (p *PhiAccrual) Phi(at time.Time) float64 {
	if !p.heard {
		return 0
	}
	return phi(float64(at.Sub(p.last)), p.mean, p.spread)
}

// phi is log10(1 + exp(x)), see [PhiAccrual].
func phi(silence, mean, deviation float64) float64 {
	y := (silence - mean) / deviation
	x := y * (1.5976 + 0.070566*y*y)
	if x > 0 {
		return min((x+math.Log1p(math.Exp(-x)))/math.Ln10, MaxPhi)
	}
	return math.Log1p(math.Exp(x)) / math.Ln10
}
