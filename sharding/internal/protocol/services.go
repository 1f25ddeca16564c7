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

// VersionFrames is the first version of the protocol between nodes in which an envelope may have messages, or
// acknowledgements, of several shards.
const VersionFrames = 2

// VersionNumbers is the first version of the protocol between nodes in which such envelopes name streams by numbers.
const VersionNumbers = 3

// VersionReplies is the first version of the protocol between nodes in which an envelope may have several replies.
const VersionReplies = 4
