// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/meter"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// The spans of messages: a [Kind] begins one where a message is sent, and one around the Receive of the entity, if
// the message has a trace context that is sampled. Their names are those of the semantic conventions for RPC and for
// messaging. What travels in an envelope is in headers.go.

// The attributes of spans. Unlike the attributes of metrics they may name the entity.
const (
	attrEntity = attribute.Key("quorate.entity")
	attrShard  = attribute.Key("quorate.shard")
	attrNode   = attribute.Key("quorate.node")
)

// system is the name of the RPC system, and of the messaging system.
const system = "quorate"

// other takes the place of the name of a method that is not known, as the conventions want it.
const other = "_OTHER"

// Kind begins the spans of the messages of one kind. Each role has a template, for each method of a kind of a service.
//
//	Ask   "M"       client ─────────────────────────┐ until the reply
//	        └─> "M"         server, around Receive ───┘
//	Tell  "send K"  producer, until it is accepted
//	        └─> "process K"   consumer, around Receive
//
// M is the full name of the method, such as bank.v1.Accounts/Deposit, and K/ask of a kind K that has no methods. An ask
// has a span, the first of a trace if the asker has none. A tell joins the
// trace of its sender and begins none: there are millions of them a second, and
// each would be a decision of a sampler. A trace that is not sampled is passed on
// without spans, so that the decision is kept on the way.
type Kind struct {
	tracing *Tracing
	name    string
	self    gossip.NodeID
	node    string // Self as a text.

	untyped *roles            // Of messages that are no calls of methods.
	methods map[string]*roles // By the full names of methods.
	unknown *roles            // Of methods that are not among them.
	method  func(message any) string
}

// Role is what the one who begins a span has to do with the message.
type Role uint8

// The roles.
const (
	Client Role = iota
	Server
	Producer
	Consumer
)

// roles are the templates of all roles.
type roles [Consumer + 1]template

// template holds what the spans of one role have in common. The attributes are set
// once a span is known to be recorded: most spans are not, and must cost little.
type template struct {
	name  string
	role  []trace.SpanStartOption
	attrs []attribute.KeyValue
}

// Methods are those that the messages of a kind call.
type Methods interface {
	// Methods returns the full names of all, such as bank.v1.Accounts/Deposit.
	Methods() []string
	// MethodOf returns the full name of the method that a message calls, which may be none of them; empty if the
	// message is no call.
	MethodOf(message any) string
}

// NewKind returns what begins the spans of a kind on a node. Methods are nil if its messages are no calls.
func (t *Tracing) NewKind(kind string, self gossip.NodeID, methods Methods) *Kind {
	k := &Kind{
		tracing: t, name: kind, self: self, node: self.String(), methods: map[string]*roles{},
		method: func(any) string { return "" },
	}
	k.untyped, k.unknown = k.roles(kind+"/ask"), k.roles(other)
	if methods != nil {
		k.method = methods.MethodOf
		for _, m := range methods.Methods() {
			k.methods[m] = k.roles(m)
			for _, role := range []Role{Producer, Consumer} {
				k.methods[m][role].attrs = append(k.methods[m][role].attrs, semconv.RPCMethod(m))
			}
		}
	}
	return k
}

// roles returns the templates for a method.
func (k *Kind) roles(method string) *roles {
	of := func(name string, role trace.SpanKind, attrs ...attribute.KeyValue) template {
		return template{name, []trace.SpanStartOption{trace.WithSpanKind(role)}, append(attrs, attrKind.String(k.name), attrNode.String(k.node))}
	}
	call := func(role trace.SpanKind) template {
		return of(method, role, semconv.RPCSystemNameKey.String(system), semconv.RPCMethod(method))
	}
	message := func(operation string, role trace.SpanKind) template {
		return of(operation+" "+k.name, role,
			semconv.MessagingSystemKey.String(system), semconv.MessagingDestinationName(k.name),
			semconv.MessagingOperationName(operation), semconv.MessagingOperationTypeKey.String(operation))
	}
	return &roles{
		Client: call(trace.SpanKindClient), Server: call(trace.SpanKindServer),
		Producer: message("send", trace.SpanKindProducer), Consumer: message("process", trace.SpanKindConsumer),
	}
}

// of returns the templates for a message, and the name of its method if that is not known.
func (k *Kind) of(message any) (of *roles, unknown string) {
	method := k.method(message)
	if method == "" {
		return k.untyped, ""
	}
	if of = k.methods[method]; of != nil {
		return of, ""
	}
	return k.unknown, method
}

// Tracing makes the spans of a node.
type Tracing struct{ *meter.Tracer }

// NewTracing returns the tracing of a node.
func NewTracing(t meter.Tracing) *Tracing {
	return &Tracing{meter.NewTracer(t, "github.com/quorate/quorate/sharding")}
}

// Begin begins a span about a message to an entity of a shard. Asker is who has sent it, for who handles it.
func (k *Kind) Begin(ctx context.Context, role Role, id string, shard uint32, message any, asker gossip.NodeID) (context.Context, trace.Span) {
	of, unknown := k.of(message)
	ctx, span := k.tracing.Start(ctx, of[role].name, of[role].role...)
	if !span.IsRecording() {
		return ctx, span
	}
	span.SetAttributes(of[role].attrs...)
	span.SetAttributes(attrEntity.String(protocol.Clip(id)), attrShard.Int(int(shard)))
	if unknown != "" {
		span.SetAttributes(semconv.RPCMethodOriginal(protocol.Clip(unknown)))
	}
	if role == Server || role == Consumer {
		serves(span, k.self)
		span.SetAttributes(semconv.ClientAddress(asker.Address.Host), semconv.ClientPort(int(asker.Address.Port)))
	}
	return ctx, span
}

// Finish ends the span of a sender. Home is where the entity lives as far as the sender knows, zero if it does not.
func (k *Kind) Finish(span trace.Span, home gossip.NodeID, fault, text string) {
	if span.IsRecording() && !home.IsZero() {
		serves(span, home)
	}
	Finish(span, fault, text)
}

// serves says in a span which node handles the message.
func serves(span trace.Span, node gossip.NodeID) {
	span.SetAttributes(semconv.ServerAddress(node.Address.Host), semconv.ServerPort(int(node.Address.Port)))
}

// Finish ends a span, with the fault and its text if the fault is not empty.
func Finish(span trace.Span, fault, text string) {
	if fault != "" && span.IsRecording() {
		span.SetAttributes(meter.Fault.String(fault))
		span.SetStatus(codes.Error, text)
	}
	span.End()
}
