// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package component

import "github.com/quorate/quorate/machine"

// The service numbers of the components that come with this project, in one place so
// that no two have the same. A component of your own takes a number from
// [ServiceFirstFree] on, the same on all nodes of a cluster and in all versions of the
// component.
const (
	// ServiceMembership carries messages between members.
	ServiceMembership machine.Service = 1
	// ServiceSharding carries messages between coordinators and regions.
	ServiceSharding machine.Service = 3
	// ServiceEntities carries messages to entities, their replies and acknowledgements.
	ServiceEntities machine.Service = 4
	// ServiceData carries messages between the replicas of distributed data.
	ServiceData machine.Service = 5
	// ServicePubsub carries messages of topics to nodes with subscribers.
	ServicePubsub machine.Service = 6
	// ServiceSurvey carries questions about what all nodes host, and their answers.
	ServiceSurvey machine.Service = 7

	// ServiceFirstFree is the least number that this project will never use.
	ServiceFirstFree machine.Service = 64
)
