// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/bootstrap"
	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/transport"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/machine/optional"
)

// The options of a node, and which of its strategies they are: a name in the configuration that is
// neither built in nor that of an option is refused ([unknown]).

// Option is a collaborator that only code can give.
type Option func(*options)

// TransportFactory builds the transport of a node.
type TransportFactory func(transport.Identity, transport.Config, func(transport.Notice)) (transport.Transport, error)

// options are the collaborators of a node.
type options struct {
	log       *slog.Logger
	transport TransportFactory
	downing   Downing
	detector  *ownDetector
	judge     *ownJudge
	methods   []discovery.Method
	decider   bootstrap.JoinDecider
	builtIns  downing.Catalogue
	settings  []Setting
	meters    metric.MeterProvider
	traces    trace.TracerProvider
	uid       gossip.UID
	rand      *rand.Rand
}

// WithLogger sets where the node logs: each decision at level info, trouble at
// warn and above. Its handler is called while decisions are taken and must not
// block for long. The default is [slog.Default].
func WithLogger(l *slog.Logger) Option { return func(o *options) { o.log = l } }

// WithTransport sets the transport between nodes. The default is gRPC.
func WithTransport(f TransportFactory) Option { return func(o *options) { o.transport = f } }

// WithDowning sets the downing strategy that the node begins with, in place of a built-in
// one. All nodes must use the same strategy, under the name that the configuration gives
// as downing.strategy: the name in d is that name, or empty. While the node runs,
// [Node.SetDowning] replaces the strategy.
func WithDowning(d Downing) Option { return func(o *options) { o.downing = d } }

// ownDetector is a failure detector of the program.
type ownDetector struct {
	name    string
	factory fd.Factory
}

// validate reports a detector that no configuration can select.
func (d *ownDetector) validate() error {
	if d != nil && (d.name == "" || d.factory == nil || slices.Contains(fd.BuiltIns(), d.name)) {
		return fmt.Errorf("membership: a failure detector of the program needs a factory, and a name that is not built in: it has the name %q", d.name)
	}
	if d == nil {
		return nil
	}
	if err := optional.Check(d.factory(), reflect.TypeFor[fd.Detector](), reflect.TypeFor[fd.Accrual](), reflect.TypeFor[fd.Resumer]()); err != nil {
		return fmt.Errorf("membership: failure detector: %w", err)
	}
	return nil
}

// make returns what makes the detectors that a configuration names.
func (d *ownDetector) make(c fd.Config) (fd.Factory, error) {
	if d != nil && d.name == c.Strategy {
		return d.factory, nil
	}
	factory, err := fd.NewFactory(c)
	if errors.Is(err, fd.ErrUnknownStrategy) {
		return nil, unknown("membership.failure-detector.strategy", c.Strategy, fd.BuiltIns(), "WithFailureDetector or WithJudge", err)
	}
	return factory, field.Within("membership.failure-detector", err)
}

// unknown is the fault of the name of a strategy that nothing in the program has, with the option
// by which the program could have given it.
func unknown(key, name string, builtIns []string, option string, err error) error {
	return &field.Error{Key: key, Err: err, Reason: fmt.Sprintf(
		"%q is neither built in (%s) nor the name of a plugin, and the program gives none of that name by %s: write the name of one that there is, or add a plugin to the section plugins",
		name, strings.Join(builtIns, ", "), option)}
}

// Given says what options give a node in place of what is built in.
type Given struct {
	// Downing, JoinDecider and Transport say that there is one, under whatever name the configuration gives it.
	Downing, JoinDecider, Transport bool

	// Detectors are the names of failure detectors and of judges.
	Detectors []string
}

// GivenBy returns what options give a node.
func GivenBy(opts ...Option) Given {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	g := Given{Downing: o.downing.Provider != nil, JoinDecider: o.decider != nil, Transport: o.transport != nil}
	if o.detector != nil {
		g.Detectors = append(g.Detectors, o.detector.name)
	}
	if o.judge != nil {
		g.Detectors = append(g.Detectors, o.judge.name)
	}
	return g
}

// WithFailureDetector adds a failure detector, under the name by which the configuration
// selects it as membership.failure-detector.strategy. A built-in name is an error. Start makes a detector to look at
// its methods. The factory is called on the goroutine of the node's machines, and so are the detectors: they
// must not block. Whatever they say, nobody is suspected before acceptable-heartbeat-pause,
// and everybody at max-silence.
func WithFailureDetector(name string, f fd.Factory) Option {
	return func(o *options) { o.detector = &ownDetector{name, f} }
}

// ownJudge is a judge of heartbeats of the program.
type ownJudge struct {
	name  string
	judge fd.Judge
}

// validate reports a judge that no configuration can select.
func (j *ownJudge) validate() error {
	if j != nil && (j.name == "" || j.judge == nil || slices.Contains(fd.BuiltIns(), j.name)) {
		return fmt.Errorf("membership: a judge of the program needs a name that is not built in: it has the name %q", j.name)
	}
	return nil
}

// judges reports whether a configuration selects the judge.
func (j *ownJudge) judges(c fd.Config) bool { return j != nil && j.name == c.Strategy }

// WithJudge adds a failure detector that may take its time, such as one in another process, under
// the name by which the configuration selects it as membership.failure-detector.strategy. A
// built-in name is an error. The judge is asked once each heartbeat-interval, one call at a time,
// and has half of that interval for an answer. Phi-accrual learns from the same heartbeats beside
// it, and decides while the judge does not answer. Whoever decides, nobody is suspected before
// acceptable-heartbeat-pause, and everybody at max-silence.
func WithJudge(name string, j fd.Judge) Option {
	return func(o *options) { o.judge = &ownJudge{name, j} }
}

// WithMeterProvider sets where the node's metrics go. The default is the global
// provider of OpenTelemetry, which does nothing until the program sets it. A
// metric that the provider refuses is logged, and missing.
func WithMeterProvider(p metric.MeterProvider) Option { return func(o *options) { o.meters = p } }

// WithTracerProvider sets where the spans of questions to strategies go, and of the decisions about downing that follow
// from them; it decides which traces are sampled. The default is the global provider of OpenTelemetry, which does
// nothing until the program sets it. A span of a decision is begun and ended on the goroutine that decides: its
// processors must not block.
func WithTracerProvider(p trace.TracerProvider) Option { return func(o *options) { o.traces = p } }

// WithSettings adds settings that members compare when a node joins, such as settings of
// a component that all nodes must share. The node must know them before the component is
// attached, because it may join earlier. If the option is given several times, all
// settings count.
func WithSettings(s ...Setting) Option {
	return func(o *options) { o.settings = append(o.settings, s...) }
}

// WithUID sets the uid of this incarnation, for tests. A uid must never be used twice at
// one address. The default is drawn from crypto/rand.
func WithUID(uid gossip.UID) Option { return func(o *options) { o.uid = uid } }

// WithRand sets the source of all random choices, for tests. The source belongs to the
// node. The default is seeded from crypto/rand.
func WithRand(r *rand.Rand) Option { return func(o *options) { o.rand = r } }
