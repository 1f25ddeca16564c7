// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package component

import "github.com/quorate/quorate/machine"

// The service numbers of the components that come with this project, all of them in one
// place so that no two have the same. A component of yours takes a number from
// [ServiceFirstFree] on, the same one on all nodes of a cluster and in all its versions.
const (
	// ServiceMembership carries what members tell each other.
	ServiceMembership machine.Service = 1
	// ServiceSharding carries what coordinators and regions tell each other.
	ServiceSharding machine.Service = 3
	// ServiceEntities carries messages to entities, their replies and acknowledgements.
	ServiceEntities machine.Service = 4

	// ServiceFirstFree is the least number that this project never takes.
	ServiceFirstFree machine.Service = 64
)
