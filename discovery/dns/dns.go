// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/quorate/quorate/discovery"
)

// A lookup, from the query to the contact points: Lookup tries the complete names that
// may be meant, in order. hosts finds the addresses of a complete name; services finds the
// services of a complete name, and then the addresses of their hosts. resolve answers a
// question about a name and a type, from memory or by ask, which follows aliases. Every
// query to a server goes through exchange.

// Method is the name by which a configuration selects this method.
const Method = "dns"

// questionsAtOnce is how many questions of one lookup are under way at the same time.
const questionsAtOnce = 16

// Discovery finds contact points in the domain name system. It is safe for concurrent
// use and need not be closed: between lookups it holds answers, and no socket.
type Discovery struct {
	config  Config
	servers hostResolver // The servers that the configuration names; empty if it names none.
	memory  *memory
}

var _ discovery.Discovery = (*Discovery)(nil)

// Option sets a part of a [Discovery] that only a program can give, and no file.
type Option func(*Discovery)

// WithClock sets the clock by which the time to live of answers runs, in place of
// [time.Now]. The function is called from any goroutine.
func WithClock(now func() time.Time) Option {
	return func(d *Discovery) { d.memory.now = now }
}

// New returns the method with these settings. It asks no server and reads no file. The
// error is that of [Config.Validate].
func New(config Config, options ...Option) (*Discovery, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	d := &Discovery{config: config, memory: newMemory(time.Now)}
	for _, text := range config.Servers {
		server, err := parseServer(text)
		if err != nil {
			return nil, err
		}
		d.servers.servers = append(d.servers.servers, server)
	}
	for _, option := range options {
		option(d)
	}
	return d, nil
}

// Lookup finds the contact points of the service that the query names. With Port and
// Protocol, or a Service of the form _port._protocol.name, it asks for services (SRV)
// and gives their hosts, ports and addresses by priority, weight and name; otherwise it asks
// for addresses. A name without a dot at its end is completed by the search list.
//
// If the name does not exist or has no such records, the answer is empty. A lookup is an
// error if no server has an answer, and also if a part of the answer cannot be had: for a
// name of the search list, one of two families of addresses, or one host of many.
func (d *Discovery) Lookup(ctx context.Context, q discovery.Query) (discovery.Targets, error) {
	if err := ctx.Err(); err != nil {
		return discovery.Targets{}, fmt.Errorf("dns: %w", err)
	}
	name, kind, err := wanted(q)
	if err != nil {
		return discovery.Targets{}, fmt.Errorf("dns: %w", err)
	}
	r, err := d.hostResolver()
	if err != nil {
		return discovery.Targets{}, fmt.Errorf("dns: %w", err)
	}
	find := d.hosts
	if kind == dnsmessage.TypeSRV {
		find = d.services
	}
	names := r.names(name)
	until := d.memory.now().Add(d.config.MaxTTL)
	for _, complete := range names {
		found, err := find(ctx, r, complete)
		switch {
		case err != nil && len(names) > 1:
			// A later name of the list would belong to another service, if this name exists.
			return discovery.Targets{}, fmt.Errorf("dns: %w (a name that is complete ends with a dot)", err)
		case err != nil:
			return discovery.Targets{}, fmt.Errorf("dns: %w", err)
		}
		until = earlier(until, found.until)
		if len(found.list) > 0 {
			return d.targets(found.list, found.reason, until)
		}
	}
	return d.targets(nil, fmt.Sprintf("no records of %s", strings.Join(names, ", ")), until)
}

func (d *Discovery) targets(list []discovery.Target, reason string, until time.Time) (discovery.Targets, error) {
	list, err := discovery.Distinct(list)
	if err != nil {
		return discovery.Targets{}, fmt.Errorf("dns: %w", err)
	}
	return discovery.Targets{List: list, Reason: reason, TTL: max(0, until.Sub(d.memory.now()))}, nil
}

// hostResolver returns whom to ask and how names are completed at this moment.
func (d *Discovery) hostResolver() (hostResolver, error) {
	if d.config.ResolvConf == "" {
		return d.servers, nil
	}
	r, err := readResolvConf(d.config.ResolvConf)
	switch {
	case len(d.config.Servers) == 0:
		return r, err
	case err != nil:
		return d.servers, nil //nolint:nilerr // The servers are known; without the file there is no search list.
	}
	r.servers = d.servers.servers
	return r, nil
}

// nameTargets are the contact points of one complete name.
type nameTargets struct {
	list   []discovery.Target
	reason string
	until  time.Time
}

// hosts finds the addresses of a name.
func (d *Discovery) hosts(ctx context.Context, r hostResolver, name string) (nameTargets, error) {
	answers, err := d.resolveAll(ctx, r, d.families(name))
	if err != nil {
		return nameTargets{}, err
	}
	found := nameTargets{reason: "the addresses of " + name, until: soonest(answers)}
	for _, a := range answers {
		for _, rec := range a.records {
			found.list = append(found.list, discovery.Target{
				Host: rec.ip.String(), Port: uint16(d.config.Port),
				IP: rec.ip,
			})
		}
	}
	return found, nil
}

// families lists the questions for the addresses of a name.
func (d *Discovery) families(name string) []question {
	switch d.config.Family {
	case FamilyIPv4:
		return []question{{name, dnsmessage.TypeA}}
	case FamilyIPv6:
		return []question{{name, dnsmessage.TypeAAAA}}
	default:
		return []question{{name, dnsmessage.TypeA}, {name, dnsmessage.TypeAAAA}}
	}
}

// services finds the services of a name and the addresses of their hosts.
func (d *Discovery) services(ctx context.Context, r hostResolver, name string) (nameTargets, error) {
	services, err := d.resolve(ctx, r, question{name, dnsmessage.TypeSRV})
	if err != nil {
		return nameTargets{}, err
	}
	found := nameTargets{reason: "the services of " + name, until: services.until}
	addresses, until, err := d.addresses(ctx, r, services)
	if err != nil {
		return nameTargets{}, err
	}
	found.until = earlier(found.until, until)
	slices.SortFunc(services.records, func(a, b record) int {
		return cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(b.weight, a.weight),
			cmp.Compare(a.target, b.target), cmp.Compare(a.port, b.port))
	})
	var homeless int
	for _, service := range services.records {
		ips := addresses[service.target]
		if len(ips) == 0 {
			homeless++
		}
		for _, rec := range ips {
			found.list = append(found.list, discovery.Target{
				Host: strings.TrimSuffix(service.target, "."), Port: service.port, IP: rec.ip,
			})
		}
		// Thousands of services on a host with thousands of addresses are millions.
		if len(found.list) > discovery.MaxTargets {
			return nameTargets{}, fmt.Errorf("%s has more than %d contact points", name, discovery.MaxTargets)
		}
	}
	if homeless > 0 {
		found.reason += fmt.Sprintf(", %d of %d without an address", homeless, len(services.records))
	}
	return found, nil
}

// addresses finds the addresses of the hosts of services, in the order of the answers:
// from what came with the services, else by asking.
func (d *Discovery) addresses(ctx context.Context, r hostResolver, services answer) (map[string][]record, time.Time, error) {
	found := map[string][]record{}
	for _, rec := range services.extra {
		if d.counts(rec.kind) {
			found[rec.name] = append(found[rec.name], rec)
		}
	}
	var questions []question
	for _, service := range services.records {
		// The addresses of a host are given together or not at all (RFC 2181, section 9):
		// where some came along with the services, there are no others.
		if len(found[service.target]) == 0 && service.target != "." {
			questions = append(questions, d.families(service.target)...)
		}
	}
	slices.SortFunc(questions, func(a, b question) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.kind, b.kind)) })
	questions = slices.Compact(questions)
	answers, err := d.resolveAll(ctx, r, questions)
	if err != nil {
		return nil, time.Time{}, err
	}
	until := services.until
	for i, a := range answers {
		found[questions[i].name] = append(found[questions[i].name], a.records...)
		until = earlier(until, a.until)
	}
	return found, until, nil
}

func (d *Discovery) counts(kind dnsmessage.Type) bool {
	return kind == dnsmessage.TypeA && d.config.Family != FamilyIPv6 ||
		kind == dnsmessage.TypeAAAA && d.config.Family != FamilyIPv4
}

// resolveAll answers several questions, some at a time. The first question that fails
// ends the others, since the lookup is an error without it.
func (d *Discovery) resolveAll(ctx context.Context, r hostResolver, questions []question) ([]answer, error) {
	found := make([]answer, len(questions))
	if len(questions) == 0 {
		return found, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(questionsAtOnce, len(questions)) {
		// Started here, ended by the end of the questions, and waited for below.
		workers.Go(func() {
			for i := range next {
				var err error
				if found[i], err = d.resolve(ctx, r, questions[i]); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := range questions {
		next <- i
	}
	close(next)
	workers.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return found, nil
}

// resolve answers one question, from memory where the answer still holds.
func (d *Discovery) resolve(ctx context.Context, r hostResolver, q question) (answer, error) {
	if err := ctx.Err(); err != nil {
		return answer{}, err
	}
	found, err := d.memory.answer(ctx, q, func() (answer, error) { return d.ask(ctx, r, q) })
	if err != nil {
		return answer{}, fmt.Errorf("%s of %s: %w", kindText(q.kind), q.name, err)
	}
	found.records = slices.Clone(found.records) // Other lookups read the records in memory.
	return found, nil
}

func kindText(kind dnsmessage.Type) string { return strings.TrimPrefix(kind.String(), "Type") }

// ask puts a question to the servers. If the answer ends at an alias, ask puts the question
// again for the name to which the alias leads.
func (d *Discovery) ask(ctx context.Context, r hostResolver, q question) (answer, error) {
	holds := d.config.MaxTTL
	name, aliases := q.name, 0
	for {
		complete, err := dnsmessage.NewName(name)
		if err != nil {
			return answer{}, err
		}
		message, err := d.exchange(ctx, r, dnsmessage.Question{Name: complete, Type: q.kind, Class: dnsmessage.ClassINET})
		if err != nil {
			return answer{}, err
		}
		f, err := message.follow(name, q.kind)
		if err != nil {
			return answer{}, err
		}
		aliases += f.aliases
		switch {
		case len(f.records) > 0:
			holds = min(holds, f.ttl)
			extra := companions(f.records, message.extra)
			for _, rec := range extra {
				holds = min(holds, rec.ttl)
			}
			return d.until(f.records, extra, holds), nil
		case f.aliases == 0 || message.code == dnsmessage.RCodeNameError:
			return d.until(nil, nil, min(holds, message.negative, d.config.MaxNegativeTTL)), nil
		case aliases > maxAliases:
			return answer{}, fmt.Errorf("%w behind %s", errAliasChain, q.name)
		case f.end == q.name:
			return answer{}, fmt.Errorf("%w at %s", errAliasLoop, q.name)
		}
		holds, name = min(holds, f.ttl), f.end
	}
}

// companions returns the addresses of the hosts of services. All other records that come with
// an answer were not asked for, and are not believed.
func companions(services, extra []record) []record {
	hosts := map[string]bool{}
	for _, service := range services {
		if service.kind == dnsmessage.TypeSRV {
			hosts[service.target] = true
		}
	}
	return slices.DeleteFunc(extra, func(rec record) bool {
		return !hosts[rec.name] || rec.kind != dnsmessage.TypeA && rec.kind != dnsmessage.TypeAAAA
	})
}

func (d *Discovery) until(records, extra []record, holds time.Duration) answer {
	return answer{records: records, extra: extra, until: d.memory.now().Add(max(holds, d.config.MinTTL))}
}

func soonest(answers []answer) time.Time {
	until := answers[0].until
	for _, a := range answers {
		until = earlier(until, a.until)
	}
	return until
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
