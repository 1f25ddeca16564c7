// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import "github.com/quorate/quorate/machine/component"

// Service is the number under which the messages between the control machines of
// two nodes travel, on the control lane.
const Service = component.ServiceSharding

// MessageService is the number under which messages to entities, their replies
// and acknowledgements travel, on the message lane.
const MessageService = component.ServiceEntities

// VersionFrames is the version of the protocol between nodes from which on messages of several
// shards travel in one envelope, and acknowledgements too.
const VersionFrames = 2

// VersionNumbers is the version of the protocol between nodes from which on streams have numbers in
// such envelopes.
const VersionNumbers = 3

// VersionReplies is the version of the protocol between nodes from which on several replies travel
// in one envelope.
const VersionReplies = 4
