// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package akka

// Rule says what becomes of one setting.
type Rule struct {
	From string // The key below akka or pekko; a "*" stands for any name.
	To   string // The key here; the "*" of From stands for the same name.
	// Note says in what the two differ, for people; empty if in nothing.
	Note string

	convert func(value) (any, error)
}

// Obsolete says of the settings below a key, or of the key itself, why they have no meaning here.
type Obsolete struct{ From, Why string }

// Rules are the settings that are translated, in the order in which people look for them.
func Rules() []Rule {
	const detector, resolver, sharding, bootstrap = "cluster.failure-detector.", "cluster.split-brain-resolver.", "cluster.sharding.", "management.cluster.bootstrap.contact-point-discovery."
	return []Rule{
		{"remote.artery.canonical.hostname", nodeAddress, "", host},
		{"remote.artery.canonical.port", nodeAddress, "", port},
		{"remote.artery.bind.hostname", transportBind, "", host},
		{"remote.artery.bind.port", transportBind, "", port},
		{"remote.artery.advanced.maximum-frame-size", "transport.max-frame-bytes", "256 KiB there, 4 MiB here", size},
		{"cluster.seed-nodes", "membership.seed-nodes", "none of them is special; the name of the system becomes cluster.name", seeds},
		{"cluster.roles", "node.roles", "", names},
		{"cluster.app-version", "node.app-version", "", text},
		{"cluster.min-nr-of-members", "membership.min-nr-of-members", "", count},
		{"cluster.role.*.min-nr-of-members", "membership.min-nr-of-members-of-role.*", "", count},
		{"cluster.gossip-interval", "membership.gossip-interval", "", duration},
		{"cluster.prune-gossip-tombstones-after", "membership.prune-gossip-tombstones-after", "", duration},
		{"cluster.retry-unsuccessful-join-after", "membership.retry-unsuccessful-join-after", "", duration},
		{"cluster.shutdown-after-unsuccessful-join-seed-nodes", "membership.shutdown-after-unsuccessful-join-seed-nodes", "off is 0s", durationOrOff},
		{detector + "threshold", "membership.failure-detector.threshold", "", number},
		{detector + "max-sample-size", "membership.failure-detector.max-sample-size", "", count},
		{detector + "min-std-deviation", "membership.failure-detector.min-std-deviation", "", duration},
		{detector + "acceptable-heartbeat-pause", "membership.failure-detector.acceptable-heartbeat-pause", "", duration},
		{detector + "heartbeat-interval", "membership.failure-detector.heartbeat-interval", "", duration},
		{detector + "expected-response-after", "membership.failure-detector.expected-response-after", "", duration},
		{detector + "monitored-by-nr-of-members", "membership.failure-detector.monitored-by-nr-of-members", "", count},
		{resolver + "active-strategy", "downing.strategy", "on without a provider class; lease-majority needs downing.lease-majority.store too", strategy},
		{resolver + "stable-after", "downing.stable-after", "20 s there; auto here, some seconds by the number of nodes", duration},
		{resolver + "keep-oldest.down-if-alone", "downing.keep-oldest.down-if-alone", "", yes},
		{resolver + "keep-oldest.role", "downing.keep-oldest.role", "", text},
		{resolver + "static-quorum.quorum-size", "downing.static-quorum.quorum-size", "", count},
		{resolver + "static-quorum.role", "downing.static-quorum.role", "", text},
		{resolver + "lease-majority.lease-implementation", "downing.lease-majority.store", "kubernetes, etcd or file", leases},
		{resolver + "lease-majority.lease-name", "downing.lease-majority.lease-name", "", text},
		{resolver + "lease-majority.role", "downing.lease-majority.role", "", text},
		{resolver + "lease-majority.acquire-lease-delay-for-minority", "downing.lease-majority.minority-delay", "", duration},
		{resolver + "lease-majority.release-after", "downing.lease-majority.release-after", "", duration},
		{sharding + "number-of-shards", "sharding.number-of-shards", "quorate reshard changes it later", count},
		{sharding + "passivate-idle-entity-after", "sharding.passivate-after", "", durationOrOff},
		{sharding + "passivation.default-idle-strategy.idle-entity.timeout", "sharding.passivate-after", "", durationOrOff},
		{sharding + "passivation.default-strategy.active-entity-limit", "sharding.passivation.active-entity-limit", "for a node, not for a region", count},
		{sharding + "handoff-timeout", "sharding.handoff-timeout", "", duration},
		{sharding + "least-shard-allocation-strategy.rebalance-absolute-limit", "sharding.allocation.least-shard.rebalance-absolute-limit", "0 there, 100 here", count},
		{sharding + "least-shard-allocation-strategy.rebalance-relative-limit", "sharding.allocation.least-shard.rebalance-relative-limit", "", number},
		{"cluster.distributed-data.gossip-interval", "ddata.gossip-interval", "2 s there, 1 s here", duration},
		{"cluster.distributed-data.role", "ddata.role", "", text},
		{"cluster.distributed-data.durable.keys", durableKeys, "with node.data-dir", names},
		{"management.http.hostname", managementAddress, "management.health.address is for probes", host},
		{"management.http.port", managementAddress, "", port},
		{bootstrap + "service-name", "membership.discovery.service", "", text},
		{bootstrap + "port-name", "membership.discovery.port-name", "", text},
		{bootstrap + "protocol", "membership.discovery.protocol", "", text},
		{bootstrap + "required-contact-point-nr", "membership.discovery.required-contact-point-nr", "", count},
		{bootstrap + "contact-with-all-contact-points", "membership.discovery.contact-with-all-contact-points", "", yes},
		{bootstrap + "interval", "membership.discovery.interval", "", duration},
		{bootstrap + "exponential-backoff-max", "membership.discovery.exponential-backoff-max", "", duration},
		{bootstrap + "resolve-timeout", "membership.discovery.resolve-timeout", "", duration},
		{bootstrap + "stable-margin", "membership.discovery.stable-margin", "", duration},
		{bootstrap + "discovery-method", "membership.discovery.methods", "", method},
		{"discovery.method", "membership.discovery.methods", "", method},
		{"management.cluster.bootstrap.new-cluster-enabled", "membership.discovery.form-new-cluster", "", yes},
	}
}

// ObsoleteKeys are the settings that have no meaning here.
func ObsoleteKeys() []Obsolete {
	const goroutines = "goroutines take the place of dispatchers and mailboxes; sharding has bounds of its own"
	return []Obsolete{
		{"actor.provider", "a program that starts a node is in a cluster"},
		{"actor.allow-java-serialization", "there is no serialization by class name"},
		{"actor.serializers", "messages are Protobuf, or what a codec of the kind makes of them"},
		{"actor.serialization-bindings", "messages are Protobuf, or what a codec of the kind makes of them"},
		{"actor.serialization-identifiers", "messages are Protobuf, or what a codec of the kind makes of them"},
		{"serialization", "messages are Protobuf, or what a codec of the kind makes of them"},
		{"actor", goroutines},
		{"cluster.downing-provider-class", "downing is on from the start; downing.strategy chooses another one, and a plugin is another program"},
		{"cluster.down-removal-margin", "membership.fence is the bound here: it holds from the start, and is not a margin before a removal"},
		{"cluster.allow-weakly-up-members", "there are no such members: a member that joins is up or waits"},
		{"cluster.split-brain-resolver.down-all-when-unstable", "downing.down-own-side-after is the bound, and always on"},
		{"cluster.split-brain-resolver.keep-majority.role", "the majority is that of the voters, whose role is membership.voter-role"},
		{"cluster.use-dispatcher", goroutines},
		{"cluster.multi-data-center", "one cluster for each region"},
		{"cluster.sharding.rebalance-interval", "moves begin when regions change; sharding.rebalance.idle-check looks besides"},
		{"cluster.sharding.remember-entities", "the kind says in code that its entities are remembered"},
		{"cluster.sharding.state-store-mode", "the coordinator keeps its state in replicated data, always"},
		{"cluster.sharding.role", "the kind says in code on which nodes it is hosted"},
		{"cluster.sharding.use-dispatcher", goroutines},
		{"cluster.singleton", "a singleton is configured in code"},
		{"cluster.client", "clients that are no members ask a gateway, which is a section of its own"},
		{"coordinated-shutdown", "four phases share one deadline: shutdown.deadline"},
		{"discovery.config", "addresses in the file are membership.seed-nodes"},
		{"loggers", "the program gives the node its log, a slog.Logger"},
		{"loglevel", "the program gives the node its log, a slog.Logger"},
		{"log-dead-letters", "what is not handled is counted, and an ask ends with an error"},
		{"log-dead-letters-during-shutdown", "what is not handled is counted, and an ask ends with an error"},
		{"logging-filter", "the program gives the node its log, a slog.Logger"},
		{"stdout-loglevel", "the program gives the node its log, a slog.Logger"},
		{"log-config-on-start", "quorate config explain asks a node for its settings"},
		{"jvm-exit-on-fatal-error", "a panic ends the process"},
		{"jvm-shutdown-hooks", "Node.Run listens for signals"},
		{"remote.artery.enabled", "there is one transport"},
		{"remote.artery.transport", "there is one transport: TCP, with TLS where the section transport says so"},
		{"remote.artery.ssl", "certificates are PEM files: transport.tls.certificate, key and authorities"},
		{"remote.artery.large-message-destinations", "large values have a lane of their own"},
		{"remote.artery.advanced", "the transport has bounds of its own, in the section transport"},
		{"remote.classic", "there is one transport"},
		{"persistence", "an entity that declares its state has a store: the section states"},
		{"projection", "there are no streams of events"},
		{"http", "there is no HTTP server; use that of Go"},
		{"stream", "there are no streams"},
		{"test", "the package clustertest runs whole clusters in virtual time"},
	}
}
